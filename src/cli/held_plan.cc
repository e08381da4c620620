// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/held_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "cli/plan_summary.h"
#include "cli/policy_runs.h"
#include "cli/scenario_text.h"
#include "cli/table.h"
#include "perseus/emulator.h"

namespace perseus::cli {
namespace {

// --seed of the emulations; the search draws from seeds of its own.
constexpr std::array<std::uint64_t, 5> kSeeds = {1001, 1002, 1003, 1004, 1005};
constexpr std::int64_t kMostIterations = 200;
constexpr std::int64_t kLeastIterations = 10;
// Computations that are replayed for one plan and seed.
constexpr double kMostComputations = 4e6;

std::int64_t IterationsOf(const CostedPipeline& pipeline, int pipelines) {
  const double each = static_cast<double>(pipeline.dag.size()) * pipelines;
  return std::clamp(static_cast<std::int64_t>(kMostComputations / each), kLeastIterations,
                    kMostIterations);
}

// A mean, and the standard deviation of what it is of.
struct Spread {
  double mean = 0;
  double deviation = 0;
};

Spread SpreadOf(const std::array<double, kSeeds.size()>& values) {
  Spread spread;
  for (const double value : values) spread.mean += value / values.size();
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (values.size() - 1));
  return spread;
}

EmulationSpec SpecOf(const RobustPlan& robust, const Planner& planner, std::uint64_t seed) {
  EmulationSpec spec;
  spec.pipelines = robust.pipelines;
  spec.iterations = IterationsOf(planner.pipeline(), robust.pipelines);
  spec.target_seconds = planner.baseline().iteration_time_seconds;
  spec.noise = robust.conditions.noise;
  spec.switching = robust.conditions.switching;
  spec.seed = seed;
  spec.timeline_pipelines = 0;
  return spec;
}

Result<ExpectedFigures> Emulated(const Planner& planner, const RobustPlan& robust, const Plan& plan,
                                 const std::vector<Emulation>& max_clocks) {
  std::array<double, kSeeds.size()> seconds = {};
  std::array<double, kSeeds.size()> joules = {};
  std::array<double, kSeeds.size()> slowdown = {};
  std::array<double, kSeeds.size()> saving = {};
  ExpectedFigures expected;
  const OnePlan policy("perseus", plan);
  for (std::size_t k = 0; k < kSeeds.size(); ++k) {
    const EmulationSpec spec = SpecOf(robust, planner, kSeeds[k]);
    const Result<Emulation> emulation = Emulate(planner, policy, spec);
    if (!emulation) return tl::unexpected(emulation.error());
    const auto iterations = static_cast<double>(spec.iterations);
    const double runs = iterations * spec.pipelines;
    seconds[k] = emulation->time_seconds / iterations;
    joules[k] = emulation->energy.total_joules() / runs;
    slowdown[k] = PercentOver(emulation->time_seconds, max_clocks[k].time_seconds);
    saving[k] = PercentSaved(emulation->energy.total_joules(), max_clocks[k].energy.total_joules());
    expected.clock_calls += static_cast<double>(emulation->clock_calls) / runs / kSeeds.size();
    expected.iterations = static_cast<int>(spec.iterations);
  }
  expected.seeds = static_cast<int>(kSeeds.size());
  const auto set = [](const std::array<double, kSeeds.size()>& values, double* mean,
                      double* deviation) {
    const Spread spread = SpreadOf(values);
    *mean = spread.mean;
    *deviation = spread.deviation;
  };
  set(seconds, &expected.iteration_time_seconds, &expected.iteration_time_spread_seconds);
  set(joules, &expected.energy_joules, &expected.energy_spread_joules);
  set(slowdown, &expected.slowdown_percent, &expected.slowdown_spread_percent);
  set(saving, &expected.saving_percent, &expected.saving_spread_percent);
  return expected;
}

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
  std::vector<Emulation> max_clocks;
  const OnePlan baseline(std::string(kMaxClocks), planner.baseline());
  for (const std::uint64_t seed : kSeeds) {
    Result<Emulation> emulation = Emulate(planner, baseline, SpecOf(held.robust, planner, seed));
    if (!emulation) return tl::unexpected(emulation.error());
    max_clocks.push_back(*std::move(emulation));
  }
  Result<ExpectedFigures> expected = Emulated(planner, held.robust, held.robust.plan, max_clocks);
  if (!expected) return tl::unexpected(expected.error());
  Result<ExpectedFigures> paper =
      Emulated(planner, held.robust, held.robust.paper_plan, max_clocks);
  if (!paper) return tl::unexpected(paper.error());
  held.expected = *expected;
  held.paper = *paper;
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
