// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/fleet/fleet_summary.h"
#include "common/json_text.h"
#include "formats/note_json.h"
#include "plan/named_times.h"
#include "report/figures.h"

// The JSON of `perseus fleet plan` (docs/reference/files.md).
namespace perseus::cli {
namespace {

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
  const site::SiteJob& job = summary.site.file.jobs[j];
  const site::JobModel& model = *summary.site.models[j];
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

std::string FormatFleetJson(const FleetSummary& summary) {
  const FleetAnswer& answer = summary.plan.answer;
  Json json = {
      {"schema_version", kFleetSchemaVersion},
      {"feasible", true},
      {"objective_name", site::ObjectiveName(summary.site.file.objective)},
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

std::string FormatShortagesJson(const site::Site& site, const std::vector<PowerShortage>& shortages,
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
