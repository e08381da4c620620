// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/held_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/plan_summary.h"
#include "cli/policy_runs.h"
#include "cli/scenario_text.h"
#include "cli/table.h"
#include "perseus/emulator.h"

namespace perseus::cli {
namespace {

// As it is printed, so that what is printed adds up.
double Rounded(double percent) { return std::round(100 * percent) / 100; }

// What the points between the paper plan's saving and this one's are spent on.
std::string Why(const HeldPlan& held) {
  const RobustPlan& robust = held.robust;
  const double paper = Rounded(robust.paper_plan.saving_percent);
  const double here = Rounded(held.expected.saving_percent);
  const double free = Rounded(robust.bound.saving_without_switching_percent);
  if (here >= paper) {
    return fmt::format(
        "It gives up nothing against the {} that a plan without conditions has on "
        "paper.",
        FormatPercent(paper, 2));
  }
  const std::string_view rest =
      "late clocks, changes that are not made, and what the search did "
      "not find";
  const std::string text = fmt::format(
      "{} is {:.2f} points less than the {} that a plan without conditions has on paper",
      FormatPercent(here, 2), paper - here, FormatPercent(paper, 2));
  // Where all of it, or nothing, is due to the time that is left.
  if (free >= paper || free <= here) return fmt::format("{}: {}.", text, rest);
  return fmt::format(
      "{}: {:.2f} since no plan saves more than {} in the accepted time {}, and {:.2f} for {}.",
      text, paper - free, FormatPercent(free, 2),
      robust.conditions.noise.any() ? "with this noise (an estimate)" : "at any latency",
      free - here, rest);
}

// "100 changes 11.20 %, 200 changes 12.01 %", a few of many.
std::string PriceCurve(const std::vector<ChangePricePoint>& curve, bool priced) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> points;
  const std::size_t shown = std::min(kMost, curve.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const ChangePricePoint& point =
        curve[shown == 1 ? curve.size() - 1 : k * (curve.size() - 1) / (shown - 1)];
    points.push_back(fmt::format("{} {}", point.changes, FormatPercent(point.saving_percent, 2)));
  }
  return fmt::format("what changes of clock an iteration save{}: {}.",
                     priced ? ", less their price" : "", fmt::join(points, ", "));
}

// In no other figure.
std::string PriceOfCalls(const HeldPlan& held) {
  const ExpectedFigures& expected = held.expected;
  return PriceOfChangesText(held.robust.conditions.change_joules,
                            {held.max_clocks.clock_calls, held.max_clocks.energy_joules},
                            {expected.clock_calls, expected.energy_joules},
                            " an iteration of a pipeline");
}

// Each under a name of its own.
std::vector<std::pair<std::string_view, std::string>> Sentences(const HeldPlan& held) {
  const ExpectedFigures& expected = held.expected;
  std::vector<std::pair<std::string_view, std::string>> sentences;
  sentences.emplace_back("Under", ConditionsInWords(held.robust.conditions));
  sentences.emplace_back(
      "Emulated",
      fmt::format("{}; {} x {}, against all clocks at maximum under the same conditions.",
                  ExpectedInWords(expected), CountOf(expected.seeds, "seed"),
                  CountOf(expected.iterations, "iteration")));
  if (held.robust.conditions.change_joules > 0) {
    sentences.emplace_back("Price", PriceOfCalls(held));
  }
  sentences.emplace_back("Given up", Why(held));
  sentences.emplace_back(
      "On paper", fmt::format("the plan without conditions, {} on paper, comes to {} under them.",
                              FormatPercent(held.robust.paper_plan.saving_percent, 2),
                              ExpectedInWords(held.paper)));
  if (!held.robust.price_curve.empty()) {
    sentences.emplace_back(
        "Changes", PriceCurve(held.robust.price_curve, held.robust.conditions.change_joules > 0));
  }
  return sentences;
}

}  // namespace

Result<RobustPlan> SearchThatHolds(const Job& job, const Planner& planner, double seconds,
                                   double effort, bool with_bound, ProgressLine* progress) {
  progress->SetWhat("plan that holds");
  RobustPlanSpec spec = RobustSpecOf(job.settings);
  spec.effort = effort;
  spec.with_bound = with_bound;
  const auto show = progress->Function();
  return PlanUnder(planner, seconds, spec, [&show](const PlanProgress& reached) {
    if (show) show(reached.share);
    return true;
  });
}

Result<HeldPlan> PlanThatHolds(const Job& job, const Planner& planner, double seconds,
                               double effort, ProgressLine* progress) {
  Result<RobustPlan> robust = SearchThatHolds(job, planner, seconds, effort, true, progress);
  if (!robust) return tl::unexpected(robust.error());
  HeldPlan held;
  held.robust = *std::move(robust);
  progress->SetWhat("emulation");
  const auto figures =
      EmulateUnder(planner, {&held.robust.plan, &held.robust.paper_plan, &planner.baseline()},
                   held.robust.conditions, held.robust.pipelines);
  if (!figures) return tl::unexpected(figures.error());
  held.expected = (*figures)[0];
  held.paper = (*figures)[1];
  held.max_clocks = (*figures)[2];
  return held;
}

std::vector<std::string> HeldPlanNotes(const HeldPlan& held) {
  std::vector<std::string> notes;
  for (const auto& [name, sentence] : Sentences(held)) notes.push_back(sentence);
  return notes;
}

std::string FormatHeldPlan(const HeldPlan& held, const Style& style) {
  std::string out;
  for (const auto& [name, sentence] : Sentences(held)) {
    out += Fact(name, InStyle(sentence, style), style);
  }
  return out;
}

}  // namespace perseus::cli
