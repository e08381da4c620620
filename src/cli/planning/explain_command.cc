// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/planning/plan_check.h"
#include "cli/planning/plan_notes.h"
#include "cli/planning/plan_waiting.h"
#include "cli/planning/scenario_text.h"
#include "common/belief.h"
#include "common/json_text.h"
#include "common/printable.h"
#include "formats/conditions_json.h"
#include "formats/note_json.h"
#include "perseus/explain.h"
#include "perseus/pipeline.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/profile.h"

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;
// Type and stage of a computation, then of what is fused with it (or -1), then
// the work of both.
using CostKey = std::tuple<int, int, int, int, double, double>;

CostKey KeyOf(const PlannedComputation& planned) {
  const ComputationId& id = planned.id;
  const std::optional<ComputationId>& fused = planned.fused;
  return {static_cast<int>(id.type), id.stage,     fused ? static_cast<int>(fused->type) : -1,
          fused ? fused->stage : -1, planned.work, planned.fused_work};
}

std::string TypeText(const ComputationId& id, const std::optional<ComputationId>& fused) {
  std::string text(ComputationTypeName(id.type));
  if (fused) text += fmt::format("+{}", ComputationTypeName(fused->type));
  return text;
}

// Refuses a plan whose figures are not those of its computations.
Result<ExplainInput> MakeInput(const PlanDocument& plan, const std::string& path) {
  const Schedule schedule = ScheduleOf(plan);
  if (auto valid = ValidateSchedule(schedule); !valid) {
    return InvalidInput(fmt::format("{}: {}", path, valid.error().message));
  }
  if (auto good = CheckScheduleName(plan, schedule, path); !good) {
    return tl::unexpected(good.error());
  }
  const Result<PipelineDag> dag = BuildDag(schedule, plan.fixed);
  if (!dag) return InvalidInput(fmt::format("{}: {}", path, dag.error().message));
  std::map<CostKey, const BaselineCost*> costs;
  for (const BaselineCost& cost : plan.baseline.costs) {
    costs[{static_cast<int>(cost.type), cost.stage,
           cost.fused_type ? static_cast<int>(*cost.fused_type) : -1,
           cost.fused_type ? cost.fused_stage : -1, cost.work, cost.fused_work}] = &cost;
  }
  ExplainInput input;
  std::vector<const Knob*> baseline_knobs;
  std::vector<double> baseline_seconds;
  std::vector<double> seconds;
  const std::vector<Phase> phases = ComputationPhases(*dag);
  for (int node = 0; node < dag->size(); ++node) {
    const Computation& computation = dag->computations[node];
    const PlannedRank& rank = plan.ranks[computation.rank];
    const PlannedComputation& planned = rank.computations[computation.position];
    const auto cost = costs.find(KeyOf(planned));
    if (cost == costs.end()) {
      return InvalidInput(fmt::format(
          "{}: baseline.computations lacks {} of stage {}; write the plan again with 'perseus plan "
          "-o DIR'",
          path, TypeText(computation.id, computation.fused), computation.id.stage));
    }
    ExplainedComputation explained;
    explained.type = TypeText(computation.id, computation.fused);
    explained.stage = computation.id.stage;
    explained.phase = phases[node];
    explained.blocking_power_watts = rank.blocking_power_watts * plan.tensor_parallel;
    explained.baseline_seconds = cost->second->duration_seconds;
    explained.baseline_joules = cost->second->energy_joules;
    explained.seconds = planned.duration_seconds;
    explained.joules = planned.energy_joules;
    baseline_knobs.push_back(&cost->second->knob);
    baseline_seconds.push_back(explained.baseline_seconds);
    seconds.push_back(explained.seconds);
    input.computations.push_back(std::move(explained));
  }
  const Timing before = Replay(*dag, baseline_seconds);
  const Timing after = Replay(*dag, seconds);
  const std::vector<bool> critical_before = CriticalComputations(*dag, before);
  const std::vector<bool> critical_after = CriticalComputations(*dag, after);
  for (int node = 0; node < dag->size(); ++node) {
    input.computations[node].baseline_critical = critical_before[node];
    input.computations[node].critical = critical_after[node];
  }
  for (const PlannedRank& rank : plan.ranks) {
    input.total_blocking_power_watts += rank.blocking_power_watts * plan.tensor_parallel;
  }
  input.baseline_iteration_seconds = before.iteration_time_seconds;
  input.iteration_seconds = after.iteration_time_seconds;
  if (auto good = AddDearerWaiting(plan, *dag, baseline_knobs, before, after, path, &input);
      !good) {
    return tl::unexpected(good.error());
  }
  std::vector<std::vector<double>> start_seconds(plan.ranks.size());
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank) {
    for (const int node : dag->rank_order[rank]) {
      start_seconds[rank].push_back(after.start_seconds[node]);
    }
  }
  if (auto good = CheckOwnFigures(plan, input, start_seconds, path); !good) {
    return tl::unexpected(good.error());
  }
  return input;
}

double Percent(double part, double whole) { return whole == 0 ? 0 : 100 * part / whole; }

std::string SharesText(const std::string& heading, const std::vector<SavingShare>& shares,
                       double iteration_before, double iteration_after, bool with_busy,
                       const Style& style) {
  std::vector<std::string> header = {heading,    "computations", "slowed", "critical",
                                     "slowdown", "saving J",     "share"};
  if (with_busy) header.insert(header.begin() + 4, "busy");
  Table table(header, {Align::kLeft});
  for (const SavingShare& share : shares) {
    std::vector<std::string> row = {
        share.label,
        fmt::format("{}", share.computations),
        fmt::format("{}", share.slowed),
        fmt::format("{} -> {}", share.baseline_critical, share.critical),
        FormatSignedPercent(Percent(share.seconds - share.baseline_seconds, share.baseline_seconds),
                            1),
        WithThousands(share.saving_joules, 1),
        FormatPercent(share.share_percent, 1)};
    if (with_busy) {
      row.insert(row.begin() + 4, fmt::format("{:.0f} -> {:.0f} %",
                                              Percent(share.baseline_seconds, iteration_before),
                                              Percent(share.seconds, iteration_after)));
    }
    table.AddRow(std::move(row));
  }
  return table.Format(style.rule());
}

std::string CriticalText(const Explanation& explanation, const PlanDocument& plan) {
  if (!explanation.critical_stage) return "The plan has no computation.";
  for (const SavingShare& share : explanation.stages) {
    if (share.label != fmt::format("{}", *explanation.critical_stage)) continue;
    return fmt::format(
        "Stage {} is critical: at maximum clocks, an iteration waits for its computations during "
        "{} of its {}. Other stages may run slower, and nobody waits for them.",
        *explanation.critical_stage,
        FormatPercent(
            Percent(share.baseline_critical_seconds, plan.baseline.iteration_time_seconds), 0),
        FormatSeconds(plan.baseline.iteration_time_seconds));
  }
  return "";
}

// What the plan was made for; empty where that is nothing but the profile's times.
std::string ConditionsText(const PlanDocument& plan, const Style& style) {
  if (!plan.conditions) return "";
  std::string text = fmt::format("As the file says, the plan was made to hold under conditions: {}",
                                 ConditionsInWords(*plan.conditions));
  if (plan.expected) {
    text += fmt::format(
        " Emulated when it was made, as the file says: {}. The figures below are without the "
        "conditions: every clock comes in time, and nothing varies.",
        ExpectedInWords(*plan.expected));
    if (plan.conditions->ranges.any()) {
      text += fmt::format(
          " Emulated figures are of the middle of the ranges. At their corners, the saving is {} "
          "or "
          "more and the slowdown {} or less.",
          FormatPercent(plan.expected->least_saving_percent, 2),
          FormatSignedPercent(plan.expected->most_slowdown_percent, 3));
    }
  }
  return "\n\n" + Wrap(text, style.columns, 0);
}

std::string ExplainText(const Explanation& explanation, const ExplainInput& input,
                        const PlanDocument& plan, const Style& style) {
  if (!AreBelievable(plan.notes)) return FormatNotes(plan.notes, style) + InsteadOfFigures(style);
  std::string out = Wrap(
      fmt::format("{}, {}, {}: {} and {} an iteration instead of {} and {}; saving {} ({}).",
                  Printable(plan.schedule), CountOf(plan.stages, "stage"),
                  CountOf(plan.microbatches, "microbatch"),
                  FormatSeconds(plan.iteration_time_seconds), FormatJoules(plan.energy_joules),
                  FormatSeconds(plan.baseline.iteration_time_seconds),
                  FormatJoules(plan.baseline.energy_joules),
                  FormatJoules(explanation.saving_joules), FormatPercent(plan.saving_percent, 2)),
      style.columns, 0);
  if (!plan.notes.empty()) out = FormatNotes(plan.notes, style) + "\n" + out;
  if (!plan.profile_modelled.empty()) {
    out += "\n" + Wrap(Printable("The profile: " + plan.profile_modelled), style.columns, 0);
  }
  out += ConditionsText(plan, style);
  out += "\n\n" + Wrap(CriticalText(explanation, plan), style.columns, 0) + "\n";
  const auto append = [&](const std::string& heading, const std::vector<SavingShare>& shares,
                          bool with_busy) {
    out += '\n';
    out += SharesText(heading, shares, input.baseline_iteration_seconds, input.iteration_seconds,
                      with_busy, style);
  };
  append("stage", explanation.stages, plan.virtual_stages == 1);
  append("type", explanation.types, false);
  append("phase", explanation.phases, false);
  out += "\n";
  out += Wrap(
      "a -> b: at maximum clocks -> with the plan. Critical: how many computations make the "
      "iteration longer if they take longer. Busy: share of the iteration in which the stage "
      "computes. Saving: energy that lower clocks save, computing and waiting together.",
      style.columns, 0);
  if (explanation.iteration_saving_joules != 0 || explanation.waiting_saving_joules != 0) {
    out += '\n';
    out +=
        Wrap(fmt::format(
                 "{} of the computations{}{} make the whole, {}.",
                 FormatJoules(explanation.computation_saving_joules),
                 explanation.iteration_saving_joules == 0
                     ? std::string()
                     : fmt::format("{}{} of waiting in a {} iteration",
                                   explanation.waiting_saving_joules == 0 ? " and " : ", ",
                                   FormatJoules(explanation.iteration_saving_joules),
                                   explanation.iteration_saving_joules < 0 ? "longer" : "shorter"),
                 explanation.waiting_saving_joules == 0
                     ? std::string()
                     : fmt::format(" and {} of waiting at other clocks",
                                   FormatJoules(explanation.waiting_saving_joules)),
                 FormatJoules(explanation.saving_joules)),
             style.columns, 0);
  }
  if (const std::string clocks = WaitingClocksText(plan); !clocks.empty()) {
    out += '\n' + Wrap(clocks, style.columns, 0);
  }
  return out + "\n";
}

Json SharesJson(const std::string& key, const std::vector<SavingShare>& shares) {
  Json json = Json::array();
  for (const SavingShare& share : shares) {
    json.push_back({{key, share.label},
                    {"computations", share.computations},
                    {"slowed", share.slowed},
                    {"baseline_critical", share.baseline_critical},
                    {"critical", share.critical},
                    {"baseline_busy_s", share.baseline_seconds},
                    {"busy_s", share.seconds},
                    {"saving_j", share.saving_joules},
                    {"share_percent", share.share_percent}});
  }
  return json;
}

std::string ExplainJson(const Explanation& explanation, const PlanDocument& plan) {
  Json json = {{"schema_version", 1},
               {"schedule", plan.schedule},
               {"stages", plan.stages},
               {"microbatches", plan.microbatches},
               {"saving_percent", plan.saving_percent},
               {"saving_j", explanation.saving_joules},
               {"computation_saving_j", explanation.computation_saving_joules},
               {"iteration_saving_j", explanation.iteration_saving_joules},
               {"critical_stage", explanation.critical_stage.value_or(-1)}};
  if (!plan.ranks.empty() && !plan.ranks.front().waiting.empty()) {
    json["waiting_saving_j"] = explanation.waiting_saving_joules;
  }
  json["notes"] = Json::parse(formats::NotesJson(plan.notes));
  if (!plan.profile_modelled.empty()) json["profile_modelled"] = plan.profile_modelled;
  // What is not made from the plan's computations.
  Json unchecked = Json::array();
  if (plan.conditions) unchecked.push_back("conditions");
  if (plan.expected) unchecked.push_back("expected");
  if (!unchecked.empty()) json["as_the_file_says"] = std::move(unchecked);
  if (plan.conditions) json["conditions"] = Json::parse(formats::ConditionsJson(*plan.conditions));
  if (plan.expected) json["expected"] = Json::parse(formats::ExpectedJson(*plan.expected));
  json["by_stage"] = SharesJson("stage", explanation.stages);
  for (Json& share : json["by_stage"])
    share["stage"] = std::stoi(share["stage"].get<std::string>());
  json["by_type"] = SharesJson("type", explanation.types);
  json["by_phase"] = SharesJson("phase", explanation.phases);
  return FormatIndented(json);
}

}  // namespace

Result<Printout> RunExplain(const ExplainFlags& flags, const Style& style) {
  if (flags.input.empty()) {
    return InvalidInput(
        "the plan is missing, as in 'perseus explain plan/plan.json' ('perseus plan -o DIR' writes "
        "one)");
  }
  const Result<PlanDocument> plan = ReadPlan(flags.input);
  if (!plan) {
    Error error = plan.error();
    if (error.code == ErrorCode::kInvalidInput && ReadProfile(flags.input)) {
      return InvalidInput(
          fmt::format("{0}: this is a profile; give the plan.json that 'perseus plan {0} ... -o "
                      "DIR' writes",
                      flags.input));
    }
    if (error.code == ErrorCode::kInvalidInput) {
      error.message += "; is it a plan.json that perseus plan wrote?";
    }
    return tl::unexpected(std::move(error));
  }
  const Result<ExplainInput> input = MakeInput(*plan, flags.input);
  if (!input) return tl::unexpected(input.error());
  const Explanation explanation = ExplainSaving(*input);
  return flags.json ? ExplainJson(explanation, *plan)
                    : ExplainText(explanation, *input, *plan, style);
}

}  // namespace perseus::cli
