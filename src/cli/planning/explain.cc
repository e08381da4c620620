// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/explain.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/planning/checked_plan.h"
#include "cli/planning/summary.h"
#include "common/belief.h"
#include "common/json_text.h"
#include "common/printable.h"
#include "formats/plan_json.h"
#include "perseus/plan_document.h"
#include "report/text.h"

namespace perseus::cli {

void AddExplainCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "explain",
      "Show which stages the others wait for, and where a plan saves energy.\n\nReads a plan.json "
      "that `perseus plan -o` wrote, and shows its saving for each stage, each type of "
      "computation, and each phase (warm-up, steady state, cool-down).",
      {{"explain a plan", "perseus explain plan/plan.json"}});
  parser->AddInput(&invocation->explain.input, "PLAN.json", "The plan.");
  parser->SetGroup("Output");
  parser->AddFlag(&invocation->explain.json, "--json", "Print one JSON document instead of text.");
}

namespace {

using Json = nlohmann::ordered_json;

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
        "{} of its {}. {}",
        *explanation.critical_stage,
        FormatPercent(
            Percent(share.baseline_critical_seconds, plan.baseline.iteration_time_seconds), 0),
        FormatSeconds(plan.baseline.iteration_time_seconds),
        explanation.stages.size() > 1
            ? "Other stages may run slower, and nobody waits for them."
            : "There is no other stage, so only longer iterations can save energy.");
  }
  return "";
}

// The plan's conditions in words; empty: it has none.
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
  std::string out = Wrap(
      fmt::format("{}, {}, {}: {} and {} an iteration instead of {} and {}; saving {} ({}).",
                  Printable(plan.schedule), CountOf(plan.stages, "stage"),
                  CountOf(plan.microbatches, "microbatch"),
                  FormatSeconds(plan.iteration_time_seconds), FormatJoules(plan.energy_joules),
                  FormatSeconds(plan.baseline.iteration_time_seconds),
                  FormatJoules(plan.baseline.energy_joules),
                  FormatJoules(explanation.saving_joules), FormatPercent(plan.saving_percent, 2)),
      style.columns, 0);
  if (plan.default_clocks) {
    out += "\n\n" +
           Wrap(fmt::format("Default clocks: {}.",
                            report::DefaultClocksText(
                                *plan.default_clocks,
                                FormatSeconds(plan.default_clocks->iteration_time_seconds) +
                                    " and " + FormatJoules(plan.default_clocks->energy_joules),
                                report::ProfileOrigin(plan.profile_modelled))),
                style.columns, 0);
  }
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
  // Fields taken from the file unchecked.
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
  const Result<CheckedPlan> checked = ReadCheckedPlan(flags.input);
  if (!checked) return tl::unexpected(checked.error());
  const auto& [plan, computations] = *checked;
  if (!flags.json && !AreBelievable(plan.notes)) {
    return InsteadOfFigures(FormatNotes(plan.notes, style), style);
  }
  const Explanation explanation = ExplainSaving(computations);
  return flags.json ? ExplainJson(explanation, plan)
                    : ExplainText(explanation, computations, plan, style);
}

}  // namespace perseus::cli
