// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/held_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/plan_summary.h"
#include "cli/policy_runs.h"
#include "cli/scenario_text.h"
#include "cli/table.h"
#include "perseus/emulator.h"

namespace perseus::cli {
namespace {

// "12.35 % saved (spread 0.02), +0.08 % time (spread 0.01), 280 calls".
std::string Figures(const ExpectedFigures& figures) {
  return fmt::format(
      "{} saved (spread {:.2g}), {} time (spread {:.2g}), {:.0f} clock calls an "
      "iteration",
      FormatPercent(figures.saving_percent, 2), figures.saving_spread_percent,
      FormatSignedPercent(figures.slowdown_percent, 3), figures.slowdown_spread_percent,
      figures.clock_calls);
}

// What the points between the paper plan's saving and this one's are spent on.
std::string Why(const HeldPlan& held) {
  const RobustPlan& robust = held.robust;
  const double paper = robust.paper_plan.saving_percent;
  const double here = held.expected.saving_percent;
  const double free = robust.bound.saving_without_switching_percent;
  if (here >= paper - 0.005) {
    return fmt::format(
        "It gives up nothing against the {} that a plan without conditions has on "
        "paper.",
        FormatPercent(paper, 2));
  }
  std::string text = fmt::format(
      "It gives up {:.2f} points of the {} that a plan without conditions has on paper.",
      paper - here, FormatPercent(paper, 2));
  if (free > here) {
    text += fmt::format(
        " No plan saves more than {} in the accepted time {}; the rest is late clocks, changes "
        "that are not made, and what the search did not find.",
        FormatPercent(free, 2),
        robust.conditions.noise.any() ? "with this noise, by an estimate" : "at any latency");
  }
  return text;
}

// "100 changes 11.20 %, 200 changes 12.01 %", a few of many.
std::string PriceCurve(const std::vector<ChangePricePoint>& curve) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> points;
  const std::size_t shown = std::min(kMost, curve.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const ChangePricePoint& point =
        curve[shown == 1 ? curve.size() - 1 : k * (curve.size() - 1) / (shown - 1)];
    points.push_back(fmt::format("{} {}", point.changes, FormatPercent(point.saving_percent, 2)));
  }
  return fmt::format("what changes of clock an iteration save: {}.", fmt::join(points, ", "));
}

// Each under a name of its own.
std::vector<std::pair<std::string_view, std::string>> Sentences(const HeldPlan& held) {
  const ExpectedFigures& expected = held.expected;
  std::vector<std::pair<std::string_view, std::string>> sentences;
  sentences.emplace_back("Under", ConditionsInWords(held.robust.conditions));
  sentences.emplace_back(
      "Emulated",
      fmt::format("{}; {} x {}, against all clocks at maximum under the same conditions.",
                  Figures(expected), CountOf(expected.seeds, "seed"),
                  CountOf(expected.iterations, "iteration")));
  sentences.emplace_back("Given up", Why(held));
  sentences.emplace_back(
      "On paper",
      fmt::format("the plan without conditions, {} on paper, comes to {} under them.",
                  FormatPercent(held.robust.paper_plan.saving_percent, 2), Figures(held.paper)));
  if (!held.robust.price_curve.empty()) {
    sentences.emplace_back("Changes", PriceCurve(held.robust.price_curve));
  }
  return sentences;
}

}  // namespace

Result<RobustPlan> SearchThatHolds(const Job& job, const Planner& planner, double seconds,
                                   double effort, bool with_bound, ProgressLine* progress) {
  progress->SetWhat("plan that holds");
  RobustPlanSpec spec;
  spec.conditions = ConditionsOf(job.settings);
  spec.constraints = job.Constraints();
  spec.effort = effort;
  spec.pipelines = job.DataParallel();
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
  const auto figures = EmulateUnder(planner, {&held.robust.plan, &held.robust.paper_plan},
                                    held.robust.conditions, held.robust.pipelines);
  if (!figures) return tl::unexpected(figures.error());
  held.expected = figures->front();
  held.paper = figures->back();
  return held;
}

std::vector<std::string> HeldPlanNotes(const HeldPlan& held) {
  std::vector<std::string> notes;
  for (const auto& [name, sentence] : Sentences(held)) notes.push_back(sentence);
  return notes;
}

std::string FormatHeldPlan(const HeldPlan& held, const Style& style) {
  std::string out;
  for (const auto& [name, sentence] : Sentences(held)) out += Fact(name, sentence, style);
  return out;
}

}  // namespace perseus::cli
