// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <vector>

#include "perseus/pipeline.h"
#include "plan/cost_options.h"
#include "plan/limits.h"
#include "plan/plan_search.h"

namespace perseus::plan {
namespace {

constexpr double kSameSlope = 1e-14;

}  // namespace

Frontier MakeFrontier(const TimeCostFrontier& solved, const CostedPipeline& pipeline,
                      double slope_quantum, double fastest_seconds, double tstar_seconds) {
  const double watts = pipeline.total_blocking_power_watts;
  Frontier frontier;
  for (const FrontierBreakpoint& corner : solved.breakpoints) {
    frontier.points.push_back({.iteration_time_seconds = corner.time,
                               .energy_joules = corner.cost + watts * corner.time,
                               .slope_watts = corner.slope});
  }
  // The grid's ticks are finer than what doubles resolve over a path: state
  // both ends as Replay() adds them up.
  std::vector<FrontierPoint>& all = frontier.points;
  all.front().iteration_time_seconds = fastest_seconds;
  if (all.size() > 1) all.back().iteration_time_seconds = tstar_seconds;
  std::vector<FrontierPoint> points;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double seconds = all[i].iteration_time_seconds;
    const bool at_an_end = i == 0 || i + 1 == all.size();
    if (at_an_end || (seconds > fastest_seconds && seconds < all.back().iteration_time_seconds)) {
      points.push_back(all[i]);
    }
  }
  // Corners between slopes that are one and the same but for rounding.
  frontier.points.clear();
  for (const FrontierPoint& point : points) {
    if (!frontier.points.empty() &&
        point.slope_watts >= frontier.points.back().slope_watts * (1 - kSameSlope)) {
      if (&point != &points.back()) continue;
      frontier.points.pop_back();
    }
    frontier.points.push_back(point);
  }
  frontier.fastest_seconds = fastest_seconds;
  frontier.tstar_seconds = tstar_seconds;
  const auto min_energy =
      std::find_if(frontier.points.begin(), frontier.points.end(),
                   [watts](const FrontierPoint& p) { return p.slope_watts <= watts; });
  frontier.min_energy_seconds = min_energy->iteration_time_seconds;
  frontier.slope_quantum_watts = slope_quantum;
  frontier.total_blocking_power_watts = pipeline.total_blocking_power_watts;
  // In exact mode the only error is that of doubles themselves.
  if (slope_quantum > 0 && min_energy->energy_joules > 0) {
    frontier.certified_error = solved.cost_error / min_energy->energy_joules;
  }
  return frontier;
}

double CoarsenUntilQuick(double quantum, const EstimateOf& estimate_of) {
  constexpr double kQuickSeconds = 120;
  // Steps of 1/11 of the mean power at the highest clock: coarser ones bound
  // nothing worth knowing.
  constexpr int kMostDoublings = 4;
  for (int doubling = 0; doubling < kMostDoublings; ++doubling) {
    if (estimate_of(quantum).seconds <= kQuickSeconds) break;
    quantum *= 2;
  }
  return quantum;
}

Result<void> CheckFrontierEffort(int computations, const FrontierEstimate& estimate) {
  constexpr double kSecondsPerHour = 3600;
  const bool fits = estimate.seconds <= kMostFrontierSeconds;
  if (fits && estimate.bytes <= kMostFrontierBytes) return {};
  return MakeError(
      ErrorCode::kOverflow,
      fmt::format("the frontier of {} computations would take about {:.2g} h and {:.2g} GB, more "
                  "than the {:.0f} h and {:.0f} GB that are allowed; plan fewer microbatches, of "
                  "which the steady ones repeat, or let slopes be rounded to more watts",
                  computations, estimate.seconds / kSecondsPerHour, estimate.bytes / 1e9,
                  kMostFrontierSeconds / kSecondsPerHour, kMostFrontierBytes / 1e9));
}

namespace {

constexpr double kSameEnergy = 1e-11;

}  // namespace

double GapPercent(const CostedPipeline& pipeline, const Plan& plan, double bound_joules) {
  // Rounding is all that is left where energies cancel out.
  double magnitude = pipeline.total_blocking_power_watts * plan.iteration_time_seconds;
  for (const CostOption& option : plan.options) magnitude += option.energy_joules;
  if (!(bound_joules > kSameEnergy * magnitude)) return 0;
  // The bound may be above the energy by rounding: a gap is none then, not -0.000 %.
  return std::max(0.0, 100 * (plan.energy_joules - bound_joules) / bound_joules);
}

std::optional<SharedKnobBound> SharedKnobBoundOf(const CostedPipeline& pipeline, const Plan& plan,
                                                 double effective_joules, bool proven_best) {
  if (!std::isfinite(effective_joules)) return std::nullopt;
  // Plans that take the achieved time end by the requested one, so the bound
  // holds for them, and so does that of plans without shared knobs. The plan
  // itself is above both, but for rounding.
  const double waiting = pipeline.total_blocking_power_watts * plan.iteration_time_seconds;
  SharedKnobBound bound;
  bound.lower_bound_joules =
      std::min(std::max(effective_joules + waiting, plan.lower_bound_joules), plan.energy_joules);
  bound.gap_percent = GapPercent(pipeline, plan, bound.lower_bound_joules);
  bound.proven_best = proven_best;
  return bound;
}

void FillFigures(const CostedPipeline& pipeline, const Frontier& bound, double baseline_joules,
                 Plan* plan) {
  std::vector<double> durations;
  durations.reserve(plan->options.size());
  for (const CostOption& option : plan->options) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);
  const double seconds = timing.iteration_time_seconds;
  plan->iteration_time_seconds = seconds;
  plan->energy_joules = IterationEnergy(pipeline, plan->options, plan->waiting, timing);
  const auto bound_at = [&bound](double at) {
    return bound.EnergyAt(at) * (1 - bound.certified_error);
  };
  plan->lower_bound_joules = bound_at(seconds);
  if (plan->lower_bound_joules > plan->energy_joules * (1 + kBoundRounding)) {
    // The last bits of the time are worth that much where options of nearly the same time differ
    // much in energy. Without the GPUs' energy while they wait for them.
    const double later = seconds * (1 + kSameTime);
    const double waiting = pipeline.total_blocking_power_watts * (later - seconds);
    plan->lower_bound_joules = std::min(plan->lower_bound_joules, bound_at(later) - waiting);
  }
  plan->gap_percent = GapPercent(pipeline, *plan, plan->lower_bound_joules);
  plan->average_power_watts = seconds > 0 ? plan->energy_joules / seconds : 0;
  plan->knob_changes = CountKnobChanges(pipeline.dag, plan->options).value().within;
  std::set<int> knobs;
  for (const CostOption& option : plan->options) knobs.insert(option.knob);
  plan->distinct_knobs = static_cast<int>(knobs.size());
  plan->saving_percent =
      baseline_joules > 0 ? 100 * (baseline_joules - plan->energy_joules) / baseline_joules : 0;
}

}  // namespace perseus::plan
