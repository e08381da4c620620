// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/planning/checked_plan.h"
#include "cli/planning/summary.h"
#include "common/belief.h"
#include "common/file.h"
#include "common/json_text.h"
#include "fleet/site.h"
#include "formats/plan_json.h"
#include "model/plan_figures.h"
#include "perseus/note.h"
#include "perseus/plan.h"
#include "perseus/plan_file.h"
#include "perseus/result.h"
#include "report/document.h"
#include "report/text.h"

namespace perseus::cli {
namespace {

std::string ComputationText(const PlannedComputation& planned) {
  return fmt::format("{} of stage {}, microbatch {}", TypeText(planned.id, planned.fused),
                     planned.id.stage, planned.id.microbatch);
}

// The first thing in which the jobs of the plans differ: its name, and what each has.
struct JobDifference {
  std::string what;
  std::string before;
  std::string after;
};

std::optional<JobDifference> OrderDifference(const PlanDocument& before,
                                             const PlanDocument& after) {
  for (std::size_t rank = 0; rank < before.ranks.size(); ++rank) {
    const auto& first = before.ranks[rank].computations;
    const auto& second = after.ranks[rank].computations;
    const auto text_at = [](const std::vector<PlannedComputation>& run, std::size_t at) {
      return at < run.size() ? ComputationText(run[at]) : std::string("nothing");
    };
    for (std::size_t i = 0; i < first.size() || i < second.size(); ++i) {
      if (i < first.size() && i < second.size() && first[i].id == second[i].id &&
          first[i].fused == second[i].fused) {
        continue;
      }
      return JobDifference{fmt::format("computation {} of rank {}", i, rank), text_at(first, i),
                           text_at(second, i)};
    }
  }
  return std::nullopt;
}

std::optional<JobDifference> DifferenceOfJobs(const PlanDocument& before,
                                              const PlanDocument& after) {
  const std::pair<std::string_view, int PlanDocument::*> counts[] = {
      {"stages", &PlanDocument::stages},
      {"virtual stages", &PlanDocument::virtual_stages},
      {"microbatches", &PlanDocument::microbatches},
      {"tensor-parallel GPUs a rank", &PlanDocument::tensor_parallel},
  };
  for (const auto& [what, count] : counts) {
    if (before.*count == after.*count) continue;
    return JobDifference{std::string(what), fmt::format("{}", before.*count),
                         fmt::format("{}", after.*count)};
  }
  if (before.knobs_are_numbers != after.knobs_are_numbers) {
    const auto kind = [](const PlanDocument& plan) {
      return std::string(plan.knobs_are_numbers ? "clocks in MHz" : "knobs that are labels");
    };
    return JobDifference{"what is set", kind(before), kind(after)};
  }
  if (before.ranks.size() != after.ranks.size()) {
    return JobDifference{"ranks", fmt::format("{}", before.ranks.size()),
                         fmt::format("{}", after.ranks.size())};
  }
  return OrderDifference(before, after);
}

bool SameKnob(const PlanDocument& plan, const Knob& first, const Knob& second) {
  return plan.knobs_are_numbers ? first.number == second.number : first.label == second.label;
}

bool SameKnob(const PlanDocument& plan, const std::optional<Knob>& first,
              const std::optional<Knob>& second) {
  if (!first || !second) return first.has_value() == second.has_value();
  return SameKnob(plan, *first, *second);
}

void Count(const PlanDocument& plan, const Knob& before, const Knob& after, Moved* moved) {
  ++moved->of;
  if (SameKnob(plan, before, after)) return;
  ++moved->moved;
  if (!plan.knobs_are_numbers) return;
  ++(after.number < before.number ? moved->lower : moved->higher);
}

}  // namespace

Result<PlanDiff> ComparePlans(const NamedPlan& before, const NamedPlan& after) {
  const PlanDocument& old_plan = *before.plan;
  const PlanDocument& new_plan = *after.plan;
  if (const auto difference = DifferenceOfJobs(old_plan, new_plan)) {
    return InvalidInput(fmt::format(
        "{} and {} are plans of different jobs ({}: {} and {}); give two plans of one job",
        before.name, after.name, difference->what, difference->before, difference->after));
  }
  PlanDiff diff;
  std::map<std::pair<int, std::string>, KindDiff> kinds;
  for (std::size_t r = 0; r < old_plan.ranks.size(); ++r) {
    const PlannedRank& old_rank = old_plan.ranks[r];
    const PlannedRank& new_rank = new_plan.ranks[r];
    Moved moved;
    for (std::size_t i = 0; i < old_rank.computations.size(); ++i) {
      const PlannedComputation& was = old_rank.computations[i];
      const PlannedComputation& is = new_rank.computations[i];
      KindDiff& kind = kinds[{was.id.stage, TypeText(was.id, was.fused)}];
      for (Moved* counted : {&diff.all, static_cast<Moved*>(&kind), &moved}) {
        Count(old_plan, was.knob, is.knob, counted);
      }
      kind.old_mean_knob += was.knob.number;
      kind.new_mean_knob += is.knob.number;
      kind.old_seconds += was.duration_seconds;
      kind.new_seconds += is.duration_seconds;
      kind.old_joules += was.energy_joules;
      kind.new_joules += is.energy_joules;
      if (was.work != is.work || was.fused_work != is.fused_work) ++diff.other_work;
    }
    diff.ranks.push_back(
        {moved.moved, !SameKnob(old_plan, old_rank.waiting_knob, new_rank.waiting_knob)});
  }
  for (auto& [key, kind] : kinds) {
    kind.stage = key.first;
    kind.type = key.second;
    kind.old_mean_knob /= kind.of;
    kind.new_mean_knob /= kind.of;
    diff.kinds.push_back(std::move(kind));
  }
  return diff;
}

// How a PlanDiff is written, for people and for programs.

namespace {

using Json = nlohmann::ordered_json;

std::string ChangeText(double before, double after, int decimals) {
  return FormatSignedPercent(PercentOver(after, before), decimals);
}

// "2.00 % longer", "as long".
std::string Compared(double before, double after, std::string_view more, std::string_view less,
                     std::string_view same) {
  const double percent = PercentOver(after, before);
  const std::string text = FormatPercent(std::abs(percent), 2);
  if (text == FormatPercent(0, 2)) return std::string(same);
  return fmt::format("{} {}", text, percent > 0 ? more : less);
}

std::string ResultText(const PlanDiff& diff, const PlanDocument& before,
                       const PlanDocument& after) {
  const std::string time = Compared(before.iteration_time_seconds, after.iteration_time_seconds,
                                    "longer", "shorter", "as long");
  const std::string energy = Compared(before.energy_joules, after.energy_joules, "more energy",
                                      "less energy", "as much energy");
  if (diff.all.moved == 0) {
    return fmt::format(
        "all clocks are the same; with the new plan an iteration takes {} and uses "
        "{}.",
        time, energy);
  }
  return fmt::format("with the new plan an iteration takes {} and uses {}.", time, energy);
}

double Slowdown(const PlanDocument& plan) {
  return PercentOver(plan.iteration_time_seconds, plan.baseline.iteration_time_seconds);
}

std::string FiguresTable(const PlanDocument& before, const PlanDocument& after,
                         const Style& style) {
  Table table({"", "old", "new", "change"}, {Align::kLeft});
  const double scale = before.iteration_time_seconds < 0.1 ? 1e3 : 1;
  const double joules = before.energy_joules < 1 ? 1e3 : 1;
  const auto amount = [&](std::string_view name, double was, double is, int decimals) {
    table.AddRow({std::string(name), WithThousands(was, decimals), WithThousands(is, decimals),
                  ChangeText(was, is, 2)});
  };
  const auto percent = [&](std::string_view name, double was, double is, int decimals) {
    const std::string sign = is - was >= 0 ? "+" : "";
    table.AddRow({std::string(name), FormatPercent(was, decimals), FormatPercent(is, decimals),
                  fmt::format("{}{} points", sign, WithThousands(is - was, decimals))});
  };
  const auto count = [&](std::string_view name, double was, double is, int decimals) {
    const std::string sign = is - was >= 0 ? "+" : "";
    table.AddRow({std::string(name), WithThousands(was, decimals), WithThousands(is, decimals),
                  sign + WithThousands(is - was, decimals)});
  };
  amount(scale == 1 ? "iteration time, s" : "iteration time, ms",
         before.iteration_time_seconds * scale, after.iteration_time_seconds * scale, 4);
  percent("slowdown", Slowdown(before), Slowdown(after), 2);
  amount(joules == 1 ? "energy, J" : "energy, mJ", before.energy_joules * joules,
         after.energy_joules * joules, 1);
  percent("saving", before.saving_percent, after.saving_percent, 2);
  amount("power, W", before.average_power_watts, after.average_power_watts, 1);
  count("changes of clock", before.knob_changes, after.knob_changes, 0);
  count("distinct clocks", before.distinct_knobs, after.distinct_knobs, 0);
  // Under the conditions of each, where it has some.
  const auto emulated = [&](std::string_view name, double ExpectedFigures::*figure,
                            const auto& write) {
    const auto text = [&](const PlanDocument& plan) {
      return plan.expected ? write((*plan.expected).*figure) : std::string("n/a");
    };
    table.AddRow({std::string(name), text(before), text(after)});
  };
  if (before.expected || after.expected) {
    const auto percent_text = [](double value) { return FormatPercent(value, 2); };
    emulated("emulated slowdown", &ExpectedFigures::slowdown_percent, percent_text);
    emulated("emulated saving", &ExpectedFigures::saving_percent, percent_text);
    emulated("emulated clock calls", &ExpectedFigures::clock_calls,
             [](double calls) { return WithThousands(calls, 0); });
  }
  return table.Format(style.rule());
}

std::string KindsTable(const PlanDiff& diff, bool knobs_are_numbers, const Style& style) {
  std::vector<std::string> header = {"stage", "computation", "moved", "busy time", "energy"};
  std::vector<Align> alignment = {Align::kRight, Align::kLeft};
  if (knobs_are_numbers) {
    const std::vector<std::string> clocks = {"lower", "higher", "mean MHz"};
    header.insert(header.begin() + 3, clocks.begin(), clocks.end());
  }
  Table table(std::move(header), std::move(alignment));
  for (const KindDiff& kind : diff.kinds) {
    if (kind.moved == 0) continue;
    std::vector<std::string> row = {fmt::format("{}", kind.stage), kind.type,
                                    fmt::format("{} of {}", kind.moved, kind.of)};
    if (knobs_are_numbers) {
      row.push_back(fmt::format("{}", kind.lower));
      row.push_back(fmt::format("{}", kind.higher));
      row.push_back(fmt::format("{} -> {}", WithThousands(kind.old_mean_knob, 0),
                                WithThousands(kind.new_mean_knob, 0)));
    }
    row.push_back(ChangeText(kind.old_seconds, kind.new_seconds, 2));
    row.push_back(ChangeText(kind.old_joules, kind.new_joules, 2));
    table.AddRow(std::move(row));
  }
  return table.Format(style.rule());
}

// "0-3, 5" of those for which `is` holds.
std::string RanksText(const std::vector<RankDiff>& ranks,
                      const std::function<bool(const RankDiff&)>& is) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < ranks.size(); ++first) {
    if (!is(ranks[first])) continue;
    std::size_t last = first;
    while (last + 1 < ranks.size() && is(ranks[last + 1])) ++last;
    runs.push_back(first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last));
    first = last;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

std::string ClocksText(const PlanDiff& diff, bool knobs_are_numbers) {
  if (diff.all.moved == 0) return fmt::format("all {} keep theirs.", diff.all.of);
  std::string text =
      fmt::format("{} of {} get another one", diff.all.moved, CountOf(diff.all.of, "computation"));
  if (knobs_are_numbers) {
    text += fmt::format(": {} a lower one, {} a higher one", diff.all.lower, diff.all.higher);
  }
  return text + ".";
}

std::string RanksSentence(const PlanDiff& diff) {
  const auto moved = std::count_if(diff.ranks.begin(), diff.ranks.end(),
                                   [](const RankDiff& rank) { return rank.moved > 0; });
  const auto all = static_cast<long long>(diff.ranks.size());
  std::string text =
      moved == 0 ? std::string("no rank gets other clocks.")
      : moved == all
          ? fmt::format("each of the {} gets other clocks.", CountOf(all, "rank"))
          : fmt::format("{} of {} get other clocks: {}.", moved, CountOf(all, "rank"),
                        RanksText(diff.ranks, [](const RankDiff& rank) { return rank.moved > 0; }));
  const std::string waiting =
      RanksText(diff.ranks, [](const RankDiff& rank) { return rank.waits_elsewhere; });
  if (!waiting.empty()) text += fmt::format(" Waiting at another clock: {}.", waiting);
  return text;
}

std::string ConditionsSentence(const std::optional<Conditions>& conditions) {
  return conditions ? ConditionsInWords(*conditions)
                    : std::string("every clock comes in time, and nothing varies.");
}

std::string ConstraintsSentence(const PlanConstraints& constraints) {
  std::vector<std::string> parts;
  for (const model::Constraint& each : model::Constraints()) {
    if (!each.IsIn(constraints)) continue;
    const std::string value = each.On(constraints, [](const auto& held) -> std::string {
      if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Granularity>) {
        return std::string(GranularityName(held));
      } else if constexpr (std::is_same_v<std::decay_t<decltype(held)>, double>) {
        return fmt::format("{}", held);
      } else {
        return fmt::format("{}", held.value_or(0));
      }
    });
    parts.push_back(fmt::format("{} = {}", each.field, value));
  }
  return parts.empty() ? "none." : fmt::format("{}.", fmt::join(parts, ", "));
}

bool SameConditions(const PlanDocument& before, const PlanDocument& after) {
  return before.conditions == after.conditions;
}

bool SameConstraints(const PlanDocument& before, const PlanDocument& after) {
  return ConstraintsSentence(before.constraints) == ConstraintsSentence(after.constraints);
}

bool SameProfile(const PlanDocument& before, const PlanDocument& after) {
  return before.profile_sha256 == after.profile_sha256;
}

// Differences between the inputs of the two plans.
std::string Differences(const PlanDiff& diff, const PlanDocument& before, const PlanDocument& after,
                        const Style& style) {
  std::string out;
  const auto both = [&](std::string_view name, const std::string& was, const std::string& is) {
    out += Fact(name, fmt::format("old: {} New: {}", was, is), style);
  };
  if (!SameProfile(before, after)) {
    out += Fact("Profile",
                fmt::format("another one ({} and {}): times and energies differ also where clocks "
                            "do not. At maximum clocks: {}, {} and {}, {}.",
                            before.profile_source, after.profile_source,
                            FormatSeconds(before.baseline.iteration_time_seconds),
                            FormatJoules(before.baseline.energy_joules),
                            FormatSeconds(after.baseline.iteration_time_seconds),
                            FormatJoules(after.baseline.energy_joules)),
                style);
  }
  if (diff.other_work > 0) {
    out += Fact("Work",
                fmt::format("{} of {} have another amount of work.", diff.other_work,
                            CountOf(diff.all.of, "computation")),
                style);
  }
  if (!SameConditions(before, after)) {
    both("Made for", ConditionsSentence(before.conditions), ConditionsSentence(after.conditions));
    out += Fact("", "Emulated figures are under the plan's own conditions, all others without.",
                style);
  }
  if (!SameConstraints(before, after)) {
    both("Limits", ConstraintsSentence(before.constraints), ConstraintsSentence(after.constraints));
  }
  const auto source = [](const PlanDocument& plan) {
    return plan.profile_modelled.empty() ? "measured." : plan.profile_modelled;
  };
  if (before.profile_modelled != after.profile_modelled) {
    both("Note", source(before), source(after));
  } else if (!after.profile_modelled.empty()) {
    out += Fact("Note", "the profile: " + source(after), style);
  }
  if (before.data_parallel != after.data_parallel) {
    both("Pipelines", fmt::format("{}.", before.data_parallel),
         fmt::format("{}.", after.data_parallel));
  }
  return out;
}

Json SideJson(const NamedPlan& side) {
  const PlanDocument& plan = *side.plan;
  Json json = {{"file", side.name},
               {"profile_source", plan.profile_source},
               {"profile_sha256", plan.profile_sha256},
               {"data_parallel", plan.data_parallel},
               {"baseline_iteration_time_s", plan.baseline.iteration_time_seconds},
               {"baseline_energy_j", plan.baseline.energy_joules}};
  for (const model::FigureValue& figure : model::FigureValues(plan)) {
    if (!figure.known) continue;
    Json& place = figure.group.empty() ? json : json[std::string(figure.group)];
    if (figure.whole) {
      place[std::string(figure.name)] = static_cast<std::int64_t>(figure.value);
    } else {
      place[std::string(figure.name)] = figure.value;
    }
  }
  json["notes"] = Json::parse(formats::NotesJson(plan.notes));
  if (!plan.profile_modelled.empty()) json["profile_modelled"] = plan.profile_modelled;
  if (plan.conditions) json["conditions"] = Json::parse(formats::ConditionsJson(*plan.conditions));
  return json;
}

void AddMoved(const Moved& moved, bool knobs_are_numbers, Json* json) {
  (*json)["computations"] = moved.of;
  (*json)["moved"] = moved.moved;
  if (!knobs_are_numbers) return;
  (*json)["lower"] = moved.lower;
  (*json)["higher"] = moved.higher;
}

}  // namespace

std::string PlanDiffText(const PlanDiff& diff, const NamedPlan& before, const NamedPlan& after,
                         const Style& style) {
  const PlanDocument& was = *before.plan;
  const PlanDocument& is = *after.plan;
  std::string out = Fact("Old", before.name, style) + Fact("New", after.name, style);
  out += Fact("Job",
              fmt::format("{}, {}, {}", was.schedule, CountOf(was.stages, "stage"),
                          CountOf(was.microbatches, "microbatch")),
              style);
  out += Fact("Result", ResultText(diff, was, is), style);
  out += "\n" + FiguresTable(was, is, style) + "\n";
  out += Fact("Clocks", ClocksText(diff, was.knobs_are_numbers), style);
  out += Fact("Ranks", RanksSentence(diff), style);
  out += Differences(diff, was, is, style);
  if (diff.all.moved > 0) out += "\n" + KindsTable(diff, was.knobs_are_numbers, style);
  return out;
}

Json PlanDiffJson(const PlanDiff& diff, const NamedPlan& before, const NamedPlan& after) {
  const bool numbers = before.plan->knobs_are_numbers;
  Json json = {{"schema_version", 1},
               {"old", SideJson(before)},
               {"new", SideJson(after)},
               {"same_profile", SameProfile(*before.plan, *after.plan)},
               {"same_conditions", SameConditions(*before.plan, *after.plan)},
               {"same_constraints", SameConstraints(*before.plan, *after.plan)},
               {"other_work", diff.other_work}};
  AddMoved(diff.all, numbers, &json);
  json["kinds"] = Json::array();
  for (const KindDiff& kind : diff.kinds) {
    Json entry = {{"stage", kind.stage}, {"type", kind.type}};
    AddMoved(kind, numbers, &entry);
    if (numbers) {
      entry["old_mean_clock"] = kind.old_mean_knob;
      entry["new_mean_clock"] = kind.new_mean_knob;
    }
    entry["old_busy_s"] = kind.old_seconds;
    entry["new_busy_s"] = kind.new_seconds;
    entry["old_energy_j"] = kind.old_joules;
    entry["new_energy_j"] = kind.new_joules;
    json["kinds"].push_back(std::move(entry));
  }
  json["ranks"] = Json::array();
  for (std::size_t rank = 0; rank < diff.ranks.size(); ++rank) {
    json["ranks"].push_back({{"rank", rank},
                             {"moved", diff.ranks[rank].moved},
                             {"waits_at_another_clock", diff.ranks[rank].waits_elsewhere}});
  }
  return json;
}

}  // namespace perseus::cli

// Frontiers of several plans beside each other, also of different jobs.
namespace perseus::cli {

// As many as the chart has colours.
inline constexpr std::size_t kMostFrontiers = 6;

// An iteration of one pipeline.
struct TimeAndEnergy {
  double seconds = 0;
  double joules = 0;
};

struct NamedFrontier {
  std::string name;
  Frontier frontier;
  TimeAndEnergy plan;
  TimeAndEnergy full_speed;  // At maximum clocks.
  std::string modelled;      // Of the profile, as in plan.json.
  std::vector<Note> notes;
};

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFrontierBytes = std::size_t{1} << 30;

constexpr std::string_view kWhatItShows =
    "Frontiers are lower bounds: no plan of one pipeline uses less energy in that time. All "
    "figures "
    "are of one iteration of one pipeline, without conditions.";

// None: no plan is so fast.
std::optional<double> EnergyAt(const NamedFrontier& of, double seconds) {
  constexpr double kRounding = 1e-9;
  if (seconds < of.frontier.fastest_seconds * (1 - kRounding)) return std::nullopt;
  return of.frontier.EnergyAt(seconds);
}

double SavingOf(const NamedFrontier& of) {
  return report::PercentSaved(of.frontier.EnergyAt(of.full_speed.seconds), of.full_speed.joules);
}

TimeAndEnergy LeastEnergy(const NamedFrontier& of) {
  const double seconds = of.frontier.min_energy_seconds;
  return {seconds, of.frontier.EnergyAt(seconds)};
}

// At which all are compared: where each is at maximum clocks.
std::vector<double> ComparedTimes(const std::vector<NamedFrontier>& frontiers) {
  std::vector<double> times;
  times.reserve(frontiers.size());
  for (const NamedFrontier& each : frontiers) times.push_back(each.full_speed.seconds);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end(), report::SameTime), times.end());
  return times;
}

// Both tables, for a terminal and for the page: heads and rows.
struct TextTable {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};

TextTable SummaryTable(const std::vector<NamedFrontier>& frontiers) {
  TextTable table;
  table.head = {"plan", "T_min", "maximum clocks", "saving there", "least energy", "at"};
  for (const NamedFrontier& each : frontiers) {
    const TimeAndEnergy least = LeastEnergy(each);
    table.rows.push_back({each.name, FormatSeconds(each.frontier.fastest_seconds),
                          fmt::format("{}, {}", FormatSeconds(each.full_speed.seconds),
                                      FormatJoules(each.full_speed.joules)),
                          FormatPercent(SavingOf(each), 2), FormatJoules(least.joules),
                          FormatSeconds(least.seconds)});
  }
  return table;
}

TextTable TimesTable(const std::vector<NamedFrontier>& frontiers) {
  TextTable table;
  table.head = {"least energy in"};
  for (const NamedFrontier& each : frontiers) table.head.push_back(each.name);
  for (const double seconds : ComparedTimes(frontiers)) {
    std::vector<std::string> row = {FormatSeconds(seconds)};
    for (const NamedFrontier& each : frontiers) {
      const auto joules = EnergyAt(each, seconds);
      row.push_back(joules ? FormatJoules(*joules) : "not so fast");
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string ForTerminal(TextTable table, const Style& style) {
  Table text(std::move(table.head), {Align::kLeft});
  for (std::vector<std::string>& row : table.rows) text.AddRow(std::move(row));
  return text.Format(style.rule());
}

report::Table ForPage(TextTable table, std::string caption) {
  report::Table page;
  page.caption = std::move(caption);
  page.columns = std::move(table.head);
  for (std::vector<std::string>& row : table.rows) {
    std::vector<report::Cell> cells;
    cells.reserve(row.size());
    for (std::string& text : row) cells.push_back({.text = std::move(text)});
    page.Add(std::move(cells));
  }
  return page;
}

}  // namespace

// Reads plan.json and the frontier.csv beside it, as `perseus plan -o` wrote them; `path` names the
// plan or the folder.
Result<NamedFrontier> ReadFrontier(const std::string& path) {
  const Result<CheckedPlan> checked = ReadCheckedPlan(path);
  if (!checked) return tl::unexpected(checked.error());
  const PlanDocument& plan = checked->plan;
  const std::string plan_path = PlanPathOf(path);
  const std::string frontier_path =
      std::filesystem::path(plan_path).replace_filename(kFrontierFileName).string();
  const Result<std::string> csv = ReadWholeFile(frontier_path, kMostFrontierBytes);
  if (!csv) return tl::unexpected(csv.error());
  const Result<fleet::SharedModel> model =
      fleet::ParseModel(FormatPlanJson(plan), plan_path, *csv, frontier_path);
  if (!model) return tl::unexpected(model.error());
  NamedFrontier named;
  named.name = path;
  named.plan = {plan.iteration_time_seconds, plan.energy_joules};
  named.full_speed = {plan.baseline.iteration_time_seconds, plan.baseline.energy_joules};
  named.modelled = plan.profile_modelled;
  named.notes = plan.notes;
  Frontier& frontier = named.frontier;
  for (const IterationPoint& point : (*model)->frontier) {
    frontier.points.push_back({point.time_seconds, point.energy_joules});
  }
  frontier.total_blocking_power_watts = (*model)->waiting_watts;
  frontier.fastest_seconds = frontier.points.front().iteration_time_seconds;
  frontier.tstar_seconds = frontier.points.back().iteration_time_seconds;
  frontier.min_energy_seconds =
      std::min_element(frontier.points.begin(), frontier.points.end(),
                       [](const FrontierPoint& a, const FrontierPoint& b) {
                         return a.energy_joules < b.energy_joules;
                       })
          ->iteration_time_seconds;
  return named;
}

std::string FrontiersText(const std::vector<NamedFrontier>& frontiers, const Style& style) {
  return ForTerminal(SummaryTable(frontiers), style) + "\n" +
         ForTerminal(TimesTable(frontiers), style) + "\n" + Wrap(kWhatItShows, style.columns, 0) +
         "\n";
}

Json FrontiersJson(const std::vector<NamedFrontier>& frontiers) {
  const auto point = [](const TimeAndEnergy& of) {
    return Json{{"iteration_time_s", of.seconds}, {"energy_j", of.joules}};
  };
  Json json = {{"schema_version", 1}, {"frontiers", Json::array()}, {"at", Json::array()}};
  for (const NamedFrontier& each : frontiers) {
    json["frontiers"].push_back({{"file", each.name},
                                 {"fastest_s", each.frontier.fastest_seconds},
                                 {"max_clocks", point(each.full_speed)},
                                 {"saving_percent", SavingOf(each)},
                                 {"least_energy", point(LeastEnergy(each))},
                                 {"plan", point(each.plan)}});
  }
  for (const double seconds : ComparedTimes(frontiers)) {
    Json energies = Json::array();
    for (const NamedFrontier& each : frontiers) {
      const auto joules = EnergyAt(each, seconds);
      energies.push_back(joules ? Json(*joules) : Json());
    }
    json["at"].push_back({{"iteration_time_s", seconds}, {"energy_j", std::move(energies)}});
  }
  return json;
}

// A page that needs no network.
std::string FrontiersHtml(const std::vector<NamedFrontier>& frontiers) {
  report::Document document;
  document.title = "Frontiers compared";
  document.subtitle = report::Plural(static_cast<std::int64_t>(frontiers.size()), "plan");
  for (const NamedFrontier& each : frontiers) {
    document.notes.insert(document.notes.end(), each.notes.begin(), each.notes.end());
    if (document.warning.empty()) document.warning = each.modelled;
  }
  document.Heading("Energy over iteration time");
  document.Paragraph(std::string(kWhatItShows) +
                     " Dots are the plans, and, above the curves, maximum clocks.");
  const auto time = report::TimeUnit(frontiers.front().full_speed.seconds);
  const auto energy = report::EnergyUnit(frontiers.front().full_speed.joules);
  Json series = Json::array();
  for (std::size_t i = 0; i < frontiers.size(); ++i) {
    const auto at = [&](double seconds, double joules) {
      return Json{report::RoundSignificant(seconds / time.factor, 7),
                  report::RoundSignificant(joules / energy.factor, 7)};
    };
    Json curve = Json::array();
    for (const FrontierPoint& point : frontiers[i].frontier.points) {
      curve.push_back(at(point.iteration_time_seconds, point.energy_joules));
    }
    Json runs = Json::array({std::move(curve)});
    for (const TimeAndEnergy& dot : {frontiers[i].plan, frontiers[i].full_speed}) {
      runs.push_back(Json::array({at(dot.seconds, dot.joules)}));
    }
    series.push_back(
        {{"name", frontiers[i].name}, {"css", fmt::format("c{}", i)}, {"runs", std::move(runs)}});
  }
  document.Chart(
      {{"kind", "lines"},
       {"title", "Energy over iteration time"},
       {"summary", "Energy over iteration time of each plan; the tables below say more."},
       {"xName", fmt::format("iteration time ({})", time.name)},
       {"yName", fmt::format("energy of an iteration of one pipeline ({})", energy.name)},
       {"height", 460},
       {"series", std::move(series)}});
  document.Heading("What each comes to");
  document.Put(ForPage(SummaryTable(frontiers), "Saving: against maximum clocks, in their time"));
  document.Put(ForPage(TimesTable(frontiers), "In the same time"));
  return report::HtmlOf(document);
}

void AddDiffCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "diff",
      "Show what changes from one plan of a job to another one.\n\nReads two plan.json files that "
      "`perseus plan -o` wrote (or their folders), and shows iteration time, energy, saving and "
      "changes of clock of both, the stages and ranks whose clocks differ, and whether profile, "
      "conditions and constraints are the same. Plans of different jobs are refused, but their "
      "frontiers "
      "can be compared (--frontiers).",
      {{"what a slower iteration would change", "perseus diff plan/ slower/"},
       {"which of three schedules needs the least energy, as a plot",
        "perseus diff --frontiers 1f1b/ gpipe/ --with zero-bubble/ -o frontiers.html"}});
  parser->AddInput(&invocation->diff.before, "OLD", "The plan that is compared with.");
  parser->AddInput(&invocation->diff.after, "NEW", "The other plan.");
  DiffFlags* flags = &invocation->diff;
  parser->AddFlag(&flags->frontiers, "--frontiers",
                  "Compare the frontiers (frontier.csv beside each plan) instead, also of plans of "
                  "different jobs.");
  parser->AddRepeated("--with", "PLAN", "One more plan whose frontier is compared.",
                      CommandParser::AppendedTo(&flags->others, "the name of the plan is empty"));
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "With --frontiers: write a page with the plot of all of them to this file.");
  parser->AddFlag(&invocation->diff.json, "--json", "Print one JSON document instead of text.");
}

namespace {

Result<Printout> CompareFrontiers(const DiffFlags& flags, const Style& style) {
  std::vector<std::string> paths = {flags.before, flags.after};
  paths.insert(paths.end(), flags.others.begin(), flags.others.end());
  if (paths.size() > kMostFrontiers) {
    return InvalidInput(
        fmt::format("--frontiers compares at most {} plans, got {}", kMostFrontiers, paths.size()));
  }
  if (!flags.output_file.empty()) {
    std::vector<InputFile> inputs;
    inputs.reserve(paths.size());
    for (const std::string& path : paths) inputs.push_back({"the plan", PlanPathOf(path)});
    const auto good = CheckOutputFile(flags.output_file, inputs);
    if (!good) return tl::unexpected(good.error());
  }
  std::vector<NamedFrontier> frontiers;
  std::string notes;
  bool are_believable = true;
  for (const std::string& path : paths) {
    Result<NamedFrontier> frontier = ReadFrontier(path);
    if (!frontier) return tl::unexpected(frontier.error());
    const std::string said = FormatNotes(frontier->notes, style);
    if (notes.find(said) == std::string::npos) notes += said;
    are_believable &= AreBelievable(frontier->notes);
    frontiers.push_back(*std::move(frontier));
  }
  if (!are_believable) return InsteadOfFigures(std::move(notes), style);
  if (!flags.output_file.empty()) {
    const auto written = WriteFileAtomically(flags.output_file, FrontiersHtml(frontiers));
    if (!written) return tl::unexpected(written.error());
  }
  if (flags.json) return Printout(FormatIndented(FrontiersJson(frontiers)), flags.output_file);
  std::string text = notes + FrontiersText(frontiers, style);
  if (!flags.output_file.empty()) text += fmt::format("Written to {}.\n", flags.output_file);
  return Printout(std::move(text), flags.output_file);
}

}  // namespace

Result<Printout> RunDiff(const DiffFlags& flags, const Style& style) {
  if (flags.before.empty() || flags.after.empty()) {
    return InvalidInput(
        "two plans are needed, as in 'perseus diff old/plan.json new/plan.json' ('perseus plan -o "
        "DIR' writes one)");
  }
  if (flags.frontiers) return CompareFrontiers(flags, style);
  if (!flags.others.empty() || !flags.output_file.empty()) {
    return InvalidInput("--with and -o are for frontiers; give --frontiers, too");
  }
  const Result<CheckedPlan> before = ReadCheckedPlan(flags.before);
  if (!before) return tl::unexpected(before.error());
  const Result<CheckedPlan> after = ReadCheckedPlan(flags.after);
  if (!after) return tl::unexpected(after.error());
  const NamedPlan old_plan = {flags.before, &before->plan};
  const NamedPlan new_plan = {flags.after, &after->plan};
  const Result<PlanDiff> diff = ComparePlans(old_plan, new_plan);
  if (!diff) return tl::unexpected(diff.error());
  if (flags.json) return Printout(FormatIndented(PlanDiffJson(*diff, old_plan, new_plan)));
  std::string notes = FormatNotes(old_plan.plan->notes, style);
  const std::string new_notes = FormatNotes(new_plan.plan->notes, style);
  if (new_notes != notes) notes += new_notes;
  for (const NamedPlan* side : {&old_plan, &new_plan}) {
    if (!AreBelievable(side->plan->notes)) return InsteadOfFigures(std::move(notes), style);
  }
  if (!notes.empty()) notes += '\n';
  return Printout(notes + PlanDiffText(*diff, old_plan, new_plan, style));
}

}  // namespace perseus::cli
