// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a PlanDiff is written, for people and for programs.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "cli/framework/table.h"
#include "cli/planning/plan_diff.h"
#include "cli/planning/plan_summary.h"
#include "cli/planning/scenario_text.h"
#include "formats/conditions_json.h"
#include "formats/note_json.h"
#include "model/constraints.h"
#include "model/plan_figures.h"

namespace perseus::cli {
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

// What is not the same of what the plans were made for.
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
    out += Fact("", "Emulated figures are under the plan's own conditions, all others on paper.",
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
