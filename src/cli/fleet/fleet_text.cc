// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/fleet/fleet_summary.h"
#include "cli/framework/table.h"
#include "cli/planning/summary.h"
#include "common/json_text.h"
#include "common/located_error.h"
#include "formats/plan_json.h"
#include "plan/named_times.h"
#include "report/text.h"

// The answer of `perseus fleet plan`, as text and as JSON (docs/reference/files.md).
namespace perseus::cli {
namespace {

constexpr double kWattsPerKilowatt = 1000;

// The limit of a job's speed, as far as its plan is concerned.
enum class HeldBy : std::uint8_t {
  kNothing,    // It is as fast as its clocks allow.
  kStraggler,  // It is as fast as its late pipeline.
  kOwner,      // It is as slow as its owner accepts, so that others get the power.
  kLimit       // A limit of power.
};
struct Holder {
  HeldBy by = HeldBy::kNothing;
  std::size_t node = 0;  // Of kLimit: the nearest one that binds.
};

Holder HolderOf(const fleet::Site& site, const FleetAnswer& answer, std::size_t job) {
  // There are only some plans, so the nearest one to a limit is at it.
  constexpr double kNear = 1e-3;
  const FleetJob& in = site.power.jobs[job];
  const double seconds = answer.plans.jobs[job].time_seconds;
  double fastest = in.frontier.front().time_seconds;
  bool is_late = false;
  for (const LatePipeline& late : in.late) {
    is_late = is_late || late.point.time_seconds > fastest;
    fastest = std::max(fastest, late.point.time_seconds);
  }
  if (seconds <= fastest * (1 + kNear)) {
    return {is_late ? HeldBy::kStraggler : HeldBy::kNothing, 0};
  }
  if (in.slowest_seconds && seconds >= *in.slowest_seconds * (1 - kNear)) {
    return {HeldBy::kOwner, 0};
  }
  std::vector<std::size_t> starts;
  for (const PowerShare& share : in.shares) starts.push_back(share.node);
  if (starts.empty()) starts.push_back(0);
  for (std::size_t start : starts) {
    for (std::size_t node = start;; node = *site.power.nodes[node].parent) {
      if (answer.bound.nodes[node].price_per_watt > 0) return {HeldBy::kLimit, node};
      if (!site.power.nodes[node].parent) break;
    }
  }
  return {HeldBy::kLimit, 0};
}

// The power of the whole site at the meter with all clocks at maximum.
double FullSpeedWatts(const fleet::Site& site) {
  double watts = 0;
  for (std::size_t j = 0; j < site.models.size(); ++j) {
    const IterationPoint& full = site.models[j]->full_speed;
    watts += site.file.jobs[j].pipelines * full.energy_joules / full.time_seconds +
             site.file.jobs[j].fixed_watts;
  }
  return watts * site.file.power_usage_effectiveness;
}

// One unit for all powers of an answer, with four digits of the budget.
struct PowerText {
  double scale = 1;
  std::string_view unit = "W";
  int decimals = 1;

  explicit PowerText(double budget_watts) {
    if (budget_watts >= kWattsPerKilowatt) {
      scale = kWattsPerKilowatt;
      unit = "kW";
    }
    constexpr int kDigits = 4;
    const double shown = budget_watts / scale;
    decimals = std::clamp(kDigits - 1 - static_cast<int>(std::floor(std::log10(shown))), 1, 3);
  }

  std::string Number(double watts) const { return WithThousands(watts / scale, decimals); }
  std::string Text(double watts) const { return fmt::format("{} {}", Number(watts), unit); }
};

double SumOfWeights(const fleet::SiteFile& file) {
  double sum = 0;
  for (const fleet::SiteJob& job : file.jobs) sum += job.weight;
  return sum;
}

// How an objective reads: what its number is a share of.
struct ObjectiveText {
  std::string_view name;   // "Work"
  std::string_view what;   // "the jobs do {} of their work at maximum clocks"
  std::string_view price;  // "1 kW more is worth {} of the work."
  double whole = 1;
};
ObjectiveText TextOf(const fleet::SiteFile& file) {
  switch (file.objective) {
    case FleetObjective::kThroughput:
      return {"Work", "the jobs together do {} of their weighted work at maximum clocks",
              "1 kW more is worth {} of the work.", SumOfWeights(file)};
    case FleetObjective::kMaxMin:
      return {"Work",
              "each job has at least {} of its speed at maximum clocks for each unit of its weight",
              "1 kW more adds {} to the share of the jobs that the budget holds back.", 1};
    case FleetObjective::kMaxMinTenants:
      return {"Work", "each tenant has at least {} of its speed at maximum clocks",
              "1 kW more adds {} to the share of the jobs that the budget holds back.", 1};
  }
  return {"Work", "{}", "{}", 1};
}

std::string HolderText(const FleetSummary& summary, std::size_t job) {
  const Holder holder = HolderOf(summary.site, summary.plan.answer, job);
  switch (holder.by) {
    case HeldBy::kNothing:
      return "nothing";
    case HeldBy::kStraggler:
      return "straggler";
    case HeldBy::kOwner:
      return "max_slowdown";
    case HeldBy::kLimit:
      return summary.site.file.nodes[holder.node].name;
  }
  return "";
}

std::string JobsTable(const FleetSummary& summary, const PowerText& power, const Style& style) {
  const fleet::Site& site = summary.site;
  double drawn = 0;
  for (const JobShare& share : summary.plan.answer.plans.jobs) drawn += share.watts;
  const std::string unit = fmt::format("power {}", power.unit);
  Table table({"job", "pipelines", "time s", "slowdown", unit, "share", "max clocks", "held by"},
              {Align::kLeft, Align::kRight, Align::kRight, Align::kRight, Align::kRight,
               Align::kRight, Align::kRight, Align::kLeft});
  for (std::size_t j = 0; j < site.models.size(); ++j) {
    const JobShare& share = summary.plan.answer.plans.jobs[j];
    const fleet::JobModel& model = *site.models[j];
    const double full = model.full_speed.time_seconds;
    const bool runs = std::isfinite(share.time_seconds);
    const double at_full = site.file.jobs[j].pipelines * model.full_speed.energy_joules / full +
                           site.file.jobs[j].fixed_watts;
    table.AddRow({site.file.jobs[j].name, std::to_string(site.file.jobs[j].pipelines),
                  runs ? WithThousands(share.time_seconds, 4) : "waits",
                  runs ? FormatSignedPercent(report::PercentOver(share.time_seconds, full), 2) : "",
                  power.Number(share.watts),
                  FormatPercent(drawn > 0 ? 100 * share.watts / drawn : 0, 1),
                  power.Number(at_full), HolderText(summary, j)});
  }
  return table.Format(style.rule());
}

std::string LimitsTable(const FleetSummary& summary, const PowerText& power,
                        const ObjectiveText& objective, const Style& style) {
  const std::vector<PowerNode>& nodes = summary.site.file.nodes;
  if (nodes.size() == 1) return "";
  Table table({"limit", "in", fmt::format("limit {}", power.unit),
               fmt::format("drawn {}", power.unit), "1 kW more"},
              {Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight});
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const double price = summary.plan.answer.bound.nodes[n].price_per_watt;
    table.AddRow(
        {nodes[n].name, nodes[n].parent ? nodes[*nodes[n].parent].name : "",
         power.Number(nodes[n].limit_watts), power.Number(summary.plan.answer.plans.nodes[n].watts),
         price > 0 ? FormatSignedPercent(100 * price * kWattsPerKilowatt / objective.whole, 3)
                   : ""});
  }
  return "\n" + table.Format(style.rule());
}

std::string FleetFigures(const FleetSummary& summary, const PowerText& power, const Style& style) {
  const fleet::Site& site = summary.site;
  const FleetAnswer& answer = summary.plan.answer;
  const ObjectiveText objective = TextOf(site.file);
  const double budget = site.file.nodes.front().limit_watts;
  const double drawn = answer.plans.nodes.front().watts;
  std::string out = Fact("Drawn",
                         fmt::format("{}, {} of the budget; with all clocks at maximum it would be "
                                     "{}.",
                                     power.Text(drawn), FormatPercent(100 * drawn / budget, 2),
                                     power.Text(FullSpeedWatts(site))),
                         style);
  const double gap = report::PercentSaved(answer.plans.objective, answer.bound.objective);
  out += Fact(
      objective.name,
      fmt::format("{}. No division of this power can do more than {} (gap {}).",
                  fmt::format(fmt::runtime(objective.what),
                              FormatPercent(100 * answer.plans.objective / objective.whole, 3)),
                  FormatPercent(100 * answer.bound.objective / objective.whole, 3),
                  FormatPercent(report::ShownGap(gap), 3)),
      style);
  const double price = answer.bound.nodes.front().price_per_watt;
  out += Fact("Price",
              price > 0
                  ? fmt::format(fmt::runtime(objective.price),
                                FormatPercent(100 * price * kWattsPerKilowatt / objective.whole, 3))
                  : std::string("the budget of the site holds no job back: more power is "
                                "worth nothing."),
              style);
  out += "\n" + JobsTable(summary, power, style) + LimitsTable(summary, power, objective, style);
  out += "\n";
  out += Wrap(
      "Time: of an iteration. Slowdown: against all clocks at maximum. Power: of all pipelines of "
      "the job, with its fixed power; max clocks: the same without Perseus. Held by: the limit "
      "that keeps the job from being faster, what its owner accepts (max_slowdown), or nothing.",
      style.columns, 0);
  return out + "\n";
}

using Json = nlohmann::ordered_json;

constexpr int kFleetSchemaVersion = 1;
// Null where a job only waits: an iteration of it never ends.
Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

const char* HolderName(HeldBy by) {
  switch (by) {
    case HeldBy::kNothing:
      return "clocks";
    case HeldBy::kStraggler:
      return "straggler";
    case HeldBy::kOwner:
      return "max_slowdown";
    case HeldBy::kLimit:
      return "limit";
  }
  return "";
}

// After the plan, until the iteration's time.
Json WaitingSeconds(const JobShare& share, const Plan& plan) {
  if (plan::SameTime(share.time_seconds, plan.iteration_time_seconds)) return 0.0;
  return Finite(share.time_seconds - plan.iteration_time_seconds);
}

Json ShareJson(const JobShare& share) {
  return {{"iteration_time_s", Finite(share.time_seconds)},
          {"power_w", share.watts},
          {"speed", share.speed}};
}

Json FleetJobJson(const FleetSummary& summary, std::size_t j) {
  const fleet::SiteJob& job = summary.site.file.jobs[j];
  const fleet::JobModel& model = *summary.site.models[j];
  const JobShare& share = summary.plan.answer.plans.jobs[j];
  const Plan* const plan = summary.plan.plans[j].get();
  const double full = model.full_speed.time_seconds;
  const Holder holder = HolderOf(summary.site, summary.plan.answer, j);
  Json json = {{"name", job.name},
               {"tenant", job.tenant.empty() ? Json(nullptr) : Json(job.tenant)},
               {"pipelines", job.pipelines},
               {"gpus", static_cast<long long>(model.gpus) * job.pipelines},
               {"weight", job.weight},
               {"iteration_time_s", Finite(share.time_seconds)},
               {"slowdown_percent", Finite(report::PercentOver(share.time_seconds, full))},
               {"speed", share.speed},
               {"power_w", share.watts},
               {"fixed_power_w", job.fixed_watts},
               {"energy_j", Finite((share.watts - job.fixed_watts) * share.time_seconds)},
               {"max_clocks_power_w",
                job.pipelines * model.full_speed.energy_joules / full + job.fixed_watts},
               {"held_by", HolderName(holder.by)},
               {"held_by_limit", holder.by == HeldBy::kLimit
                                     ? Json(summary.site.file.nodes[holder.node].name)
                                     : Json(nullptr)},
               {"planned", plan != nullptr}};
  if (plan != nullptr) {
    json["plan"] = {{"iteration_time_s", plan->iteration_time_seconds},
                    {"energy_j", plan->energy_joules},
                    {"gap_percent", plan->gap_percent},
                    {"waiting_s", WaitingSeconds(share, *plan)}};
  }
  json["bound"] = ShareJson(summary.plan.answer.bound.jobs[j]);
  return json;
}

Json LimitsJson(const FleetSummary& summary) {
  Json limits = Json::array();
  const std::vector<PowerNode>& nodes = summary.site.file.nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const NodeShare& bound = summary.plan.answer.bound.nodes[n];
    limits.push_back(
        {{"name", nodes[n].name},
         {"parent", nodes[n].parent ? Json(nodes[*nodes[n].parent].name) : Json(nullptr)},
         {"limit_w", Finite(nodes[n].limit_watts)},
         {"power_w", summary.plan.answer.plans.nodes[n].watts},
         {"price_per_kw", bound.price_per_watt * kWattsPerKilowatt}});
  }
  return limits;
}

}  // namespace

std::string FormatFleet(const FleetSummary& summary, const Style& style) {
  const fleet::SiteFile& file = summary.site.file;
  const PowerText power(file.nodes.front().limit_watts);
  long long gpus = 0;
  for (std::size_t j = 0; j < file.jobs.size(); ++j) {
    gpus += static_cast<long long>(summary.site.models[j]->gpus) * file.jobs[j].pipelines;
  }
  std::string budget =
      fmt::format("{} for {} on {}", power.Text(file.nodes.front().limit_watts),
                  CountOf(static_cast<long long>(file.jobs.size()), "job"), CountOf(gpus, "GPU"));
  if (file.power_usage_effectiveness != 1) {
    budget += fmt::format(", at the meter (pue {:g})", file.power_usage_effectiveness);
  }
  std::string out =
      Fact("Site", std::filesystem::path(file.path).filename().string() + ".", style) +
      Fact("Budget", budget + ".", style) + FormatNotes(summary.notes, style);
  out += FleetFigures(summary, power, style);
  if (!summary.output_directory.empty()) {
    out += Fact("Written",
                fmt::format("{}: fleet.json, and for each job that was planned JOB/plan.json, as "
                            "'perseus plan -o' writes it.",
                            summary.output_directory),
                style);
  }
  return out;
}

Error ShortageError(const fleet::Site& site, const std::vector<PowerShortage>& shortages) {
  const PowerShortage& worst = *std::max_element(
      shortages.begin(), shortages.end(), [](const PowerShortage& a, const PowerShortage& b) {
        return a.missing_watts < b.missing_watts;
      });
  const PowerNode& node = site.file.nodes[worst.node];
  const PowerText power(node.limit_watts);
  std::vector<std::string> names;
  for (const std::size_t job : worst.suspend)
    names.push_back(fmt::format("'{}'", site.file.jobs[job].name));
  const JobPlace& place = site.file.node_places[worst.node];
  // Rounded up: advice must work when followed.
  const double unit = power.scale / std::pow(10, power.decimals);
  const double missing = std::ceil(worst.missing_watts / unit) * unit;
  Error error = ErrorAt(
      place.file, place.line, place.column,
      fmt::format("the limit '{}' of {} cannot be kept: even as slow as their owners accept, its "
                  "jobs need {} more{}; raise the limit, accept more slowdown, or suspend {}{}",
                  node.name, power.Text(node.limit_watts), power.Text(missing),
                  shortages.size() > 1
                      ? fmt::format(" (and {} more limits cannot be kept)", shortages.size() - 1)
                      : "",
                  names.size() > 1 ? "all of " : "",
                  names.empty() ? std::string("jobs") : fmt::format("{}", fmt::join(names, ", "))));
  error.code = ErrorCode::kInfeasible;
  return error;
}

std::string FormatFleetJson(const FleetSummary& summary) {
  const FleetAnswer& answer = summary.plan.answer;
  Json json = {
      {"schema_version", kFleetSchemaVersion},
      {"feasible", true},
      {"objective_name", fleet::ObjectiveName(summary.site.file.objective)},
      {"objective", answer.plans.objective},
      {"objective_bound", answer.bound.objective},
      {"gap_percent", report::PercentSaved(answer.plans.objective, answer.bound.objective)},
      {"price_per_kw", answer.bound.nodes.front().price_per_watt * kWattsPerKilowatt},
      {"budget_w", summary.site.file.nodes.front().limit_watts},
      {"power_w", answer.plans.nodes.front().watts},
      {"max_clocks_power_w", FullSpeedWatts(summary.site)},
      {"pue", summary.site.file.power_usage_effectiveness},
      {"plans_made", summary.plan.plans_made}};
  Json jobs = Json::array();
  for (std::size_t j = 0; j < summary.site.models.size(); ++j)
    jobs.push_back(FleetJobJson(summary, j));
  json["jobs"] = std::move(jobs);
  json["limits"] = LimitsJson(summary);
  json["notes"] = Json::parse(formats::NotesJson(summary.notes));
  return FormatByLine(json);
}

std::string FormatShortagesJson(const fleet::Site& site,
                                const std::vector<PowerShortage>& shortages,
                                const std::string& sentence) {
  Json list = Json::array();
  for (const PowerShortage& shortage : shortages) {
    Json suspend = Json::array();
    for (const std::size_t job : shortage.suspend) suspend.push_back(site.file.jobs[job].name);
    list.push_back({{"limit", site.file.nodes[shortage.node].name},
                    {"missing_w", shortage.missing_watts},
                    {"suspend", std::move(suspend)}});
  }
  return FormatByLine({{"schema_version", kFleetSchemaVersion},
                       {"feasible", false},
                       {"sentence", sentence},
                       {"budget_w", site.file.nodes.front().limit_watts},
                       {"shortages", std::move(list)}});
}

}  // namespace perseus::cli
