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

// "12.35 % saved ± 0.02 points, +0.08 % time ± 0.01 points, 280 clock calls an iteration".
std::string Figures(const ExpectedFigures& figures) {
  return fmt::format(
      "{} saved \u00b1 {:.2g} points, {} time \u00b1 {:.2g} points, {:.0f} clock calls an "
      "iteration",
      FormatPercent(figures.saving_percent, 2), figures.saving_spread_percent,
      FormatSignedPercent(figures.slowdown_percent, 3), figures.slowdown_spread_percent,
      figures.clock_calls);
}

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

// What --change-price makes of the calls: in no other figure.
std::string PriceOfCalls(const HeldPlan& held) {
  const ExpectedFigures& expected = held.expected;
  const double baseline_joules = expected.energy_joules / (1 - expected.saving_percent / 100);
  const double joules = held.robust.conditions.change_joules * expected.clock_calls;
  return fmt::format(
      "{:.0f} clock calls at {} are {} an iteration of a pipeline (--change-price), in no other "
      "figure here; with them {} would be saved.",
      expected.clock_calls, FormatJoules(held.robust.conditions.change_joules),
      FormatJoules(joules),
      FormatPercent(expected.saving_percent - 100 * joules / baseline_joules, 2));
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
  if (held.robust.conditions.change_joules > 0) {
    sentences.emplace_back("Price", PriceOfCalls(held));
  }
  if (held.is_constrained) {
    sentences.emplace_back(
        "Limits",
        "with --granularity, --min-dwell, --max-clocks or --time-margin only plans are tried that "
        "know no conditions, made for shorter times or with margins. Without them the search may "
        "find much better ones; --max-changes is the limit that it knows.");
  }
  sentences.emplace_back("Given up", Why(held));
  sentences.emplace_back(
      "On paper",
      fmt::format("the plan without conditions, {} on paper, comes to {} under them.",
                  FormatPercent(held.robust.paper_plan.saving_percent, 2), Figures(held.paper)));
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
  held.is_constrained = job.Constraints().any();
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
  constexpr std::string_view kPlusMinus = "\u00b1";
  for (auto [name, sentence] : Sentences(held)) {
    for (std::size_t at = 0;
         !style.utf8 && (at = sentence.find(kPlusMinus, at)) != std::string::npos;) {
      sentence.replace(at, kPlusMinus.size(), "+-");
    }
    out += Fact(name, sentence, style);
  }
  return out;
}

}  // namespace perseus::cli
