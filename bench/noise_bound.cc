// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What any plan could save at most where computation times vary, on the tables of the
// Perseus paper: an estimate, worked out on so many sampled iterations, in which clocks come
// at once. More iterations (lanes) leave a plan less to learn by heart, and so does the
// estimate: it falls with them towards what holds for the job.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/noise_bound gpt3|bloom MICROBATCHES
//       [NOISE MAX_SLOWDOWN MAX_CHANGES LANES ROUNDS SEED]
//
// MAX_CHANGES 0: any number. ROUNDS of ascent (400): each round's value is a bound for these
// iterations, and the best is printed.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measured_cases.h"
#include "perseus/conditions.h"
#include "perseus/planner.h"
#include "robust/bounds/dual_bound.h"
#include "robust/knobs.h"
#include "robust/replay/lane_replay.h"
#include "robust/replay/samples.h"

namespace perseus::bench {
namespace {

// The least that a rank's computations can cost: energy in the mean of the lanes, time at its
// price, and changes from one computation to the next.
double LeastOfRank(const CostedPipeline& pipeline, const robust::Samples& samples,
                   const std::vector<int>& order, const std::vector<double>& price,
                   double change_joules) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  std::vector<double> least(pipeline.knobs.size(), 0.0);
  double cheapest = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const CostTable& table = pipeline.TableOf(order[k]);
    const double after_change = cheapest + (k == 0 ? 0 : change_joules);
    std::vector<double> next(least.size(), kInfinite);
    for (const CostOption& option : table.all_options) {
      next[option.knob] = std::min(least[option.knob], after_change) +
                          samples.weight[order[k]] * EffectiveEnergy(table, option) +
                          price[order[k]] * option.time_seconds;
    }
    least = std::move(next);
    cheapest = *std::min_element(least.begin(), least.end());
  }
  return cheapest;
}

// Whatever a change is said to cost, no choice with at most so many has less effective
// energy. (Precondition: nothing delays a computation but others.) The best of some prices.
double LeastWithChanges(const CostedPipeline& pipeline, const robust::Samples& samples,
                        const robust::DualBound& dual, double accepted, int most_changes) {
  constexpr int kSteps = 60;
  double best = -std::numeric_limits<double>::infinity();
  for (int k = 0; k <= kSteps; ++k) {
    const double change_joules = dual.change_joules * 2 * k / kSteps;
    double joules = -change_joules * most_changes - dual.price_of_time * accepted;
    for (const std::vector<int>& order : pipeline.dag.rank_order) {
      joules += LeastOfRank(pipeline, samples, order, dual.price, change_joules);
    }
    best = std::max(best, joules);
  }
  return best;
}

int Run(std::span<char*> arguments) {
  const auto text = [&](std::size_t k, const char* otherwise) -> std::string {
    return k < arguments.size() ? arguments[k] : otherwise;
  };
  const auto number = [&](std::size_t k, const char* otherwise) {
    return std::strtod(text(k, otherwise).c_str(), nullptr);
  };
  const auto planner = MeasuredPlanner(text(1, "gpt3"), static_cast<int>(number(2, "96")));
  if (!planner) {
    fmt::print(stderr, "{}\n", planner.error().message);
    return 1;
  }
  TimeNoise noise;
  noise.per_computation = number(3, "0.01");
  const double max_slowdown = number(4, "0.001");
  const int most_changes = static_cast<int>(number(5, "0"));
  const int lanes = static_cast<int>(number(6, "128"));
  const int rounds = static_cast<int>(number(7, "400"));
  const auto seed = static_cast<std::uint64_t>(number(8, "1"));
  if (lanes < 1 || rounds < 1) {
    fmt::print(stderr, "LANES and ROUNDS are at least 1\n");
    return 2;
  }

  const std::clock_t begin = std::clock();
  const CostedPipeline& pipeline = planner->pipeline();
  const robust::Samples samples = robust::DrawSamples(pipeline, noise, 1, lanes, seed);
  robust::LaneReplay replay(pipeline, {}, samples);
  replay.Reset(robust::KnobsOf(planner->baseline().options));
  const double watts = pipeline.total_blocking_power_watts;
  const double base_seconds = replay.figures().seconds;
  const double base_joules = replay.figures().effective_joules + watts * base_seconds;
  const double accepted = base_seconds * (1 + max_slowdown);
  const robust::DualBound dual =
      most_changes > 0 ? robust::PricesForChanges(pipeline, samples, accepted, most_changes, rounds)
                       : robust::BoundByPrices(pipeline, samples, accepted, 0, rounds);
  // Where a second is worth more than the power of waiting, the least energy is at the accepted
  // time.
  if (dual.price_of_time < watts) {
    fmt::print(stderr, "more time than saves energy is accepted; accept less\n");
    return 2;
  }
  const double effective_joules =
      most_changes > 0 ? LeastWithChanges(pipeline, samples, dual, accepted, most_changes)
                       : dual.effective_joules;
  const double least_joules = effective_joules + watts * accepted;
  const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  fmt::print("| {} {} | noise {} % | {} | {} lanes, {} rounds | at most {:.3f} % | {:.1f} s |\n",
             text(1, "gpt3"), text(2, "96"), 100 * noise.per_computation,
             most_changes > 0 ? fmt::format("{} changes", most_changes) : "any changes",
             samples.lanes, rounds, 100 * (1 - least_joules / base_joules), cpu);
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  return perseus::bench::Run({argv, static_cast<std::size_t>(argc)});
}
