// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/search/time_cost_problem.h"

#include <cmath>

#include "perseus/cost_curve.h"

namespace perseus::plan {
namespace {

// Points at which an exponential curve is sampled.
constexpr int kSamples = 64;

TimeCostProblem WithoutCurves(const CostedPipeline& pipeline) {
  TimeCostProblem problem;
  problem.curve_of = pipeline.table_of;
  problem.precedences.reserve(pipeline.dag.precedences.size());
  for (const Precedence& p : pipeline.dag.precedences) {
    problem.precedences.push_back({p.from, p.to, p.delay_seconds});
  }
  problem.earliest_start = pipeline.dag.start_delay_seconds;
  problem.end_delay = pipeline.dag.end_delay_seconds;
  return problem;
}

}  // namespace

Result<TimeCostProblem> MakeTimeCostProblem(const CostedPipeline& pipeline, const Guard& guard) {
  TimeCostProblem problem = WithoutCurves(pipeline);
  for (const CostTable& table : pipeline.tables) {
    std::vector<TimeCost>& curve = problem.curves.emplace_back();
    for (const CostOption& option : table.all_options) {
      curve.push_back({guard.Seconds(table, option), EffectiveEnergy(table, option)});
    }
  }
  return problem;
}

Result<TimeCostProblem> MakeExponentialProblem(const CostedPipeline& pipeline) {
  TimeCostProblem problem = WithoutCurves(pipeline);
  for (const CostTable& table : pipeline.tables) {
    // As the paper does: fit the energy of the Pareto-optimal options.
    std::vector<TimeEnergy> points;
    for (const CostOption& option : table.options) {
      points.push_back({option.time_seconds, option.energy_joules});
    }
    auto fit = FitExponential(points);
    if (!fit) return tl::unexpected(fit.error());
    const double fastest = points.front().time_seconds;
    const double slowest = points.back().time_seconds;
    std::vector<TimeCost>& curve = problem.curves.emplace_back();
    for (int k = 0; k <= kSamples; ++k) {
      const double seconds = k == kSamples ? slowest : fastest + (slowest - fastest) * k / kSamples;
      curve.push_back({seconds, (*fit)(seconds)-table.blocking_power_watts * seconds});
    }
  }
  return problem;
}

std::vector<GridOption> GridOptions(const CostTable& table, std::size_t num_knobs,
                                    const Guard& guard, const frontier::Scale& scale,
                                    double slowest_cost, double most_seconds) {
  std::vector<GridOption> options(num_knobs, GridOption{.length = -1});
  for (const CostOption& option : table.all_options) {
    if (guard.Seconds(table, option) > most_seconds) continue;
    const double cost = EffectiveEnergy(table, option) - slowest_cost;
    options[option.knob] = {.length = scale.TicksDown(guard.Seconds(table, option)),
                            .cost = static_cast<frontier::Int128>(
                                std::ldexp(cost, scale.time_bits + scale.slope_bits))};
  }
  return options;
}

}  // namespace perseus::plan
