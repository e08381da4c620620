// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans that hold under real clocks on the tables of the Perseus paper: one row of
// the tables of docs/evidence/planning.md.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/robust_cases gpt3|bloom|JOB.toml MICROBATCHES
//       [LATENCY_S NOISE none|end|predicted MAX_SLOWDOWN MAX_CHANGES EFFORT FACTOR PIPELINES
//        ITERATIONS]
//
// ITERATIONS (200) are replayed of each of five seeds that the search does not use. The
// slowdown is stated with its standard error, and then the least and the greatest mean
// of a seed.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>

#include "measured_cases.h"
#include "perseus/conditions.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"

namespace perseus::bench {
namespace {

constexpr int kSeeds = 5;
constexpr std::uint64_t kFirstSeed = 1000;  // Seeds that the search does not use.

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
  RobustPlanSpec spec;
  Conditions& conditions = spec.conditions;
  conditions.switching.latency_seconds = number(3, "0.015");
  conditions.noise.per_computation = number(4, "0.01");
  conditions.switching.call_ahead =
      ParseCallAhead(text(5, "predicted")).value_or(CallAhead::kPredicted);
  conditions.max_slowdown = number(6, "0.001");
  const double most = number(7, "0");
  if (most > 0) conditions.max_changes = static_cast<std::int64_t>(most);
  spec.effort = number(8, "1");
  spec.pipelines = static_cast<int>(number(10, "1"));
  const auto iterations = static_cast<std::int64_t>(number(11, "200"));
  const double seconds = planner->baseline().iteration_time_seconds * number(9, "1");
  const std::clock_t begin = std::clock();
  const auto found = PlanUnder(*planner, seconds, spec);
  const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!found) {
    fmt::print(stderr, "{}\n", found.error().message);
    return 1;
  }
  ReplayedFigures unseen;
  double least = 1e300;
  double most_slowdown = -1e300;
  double squares = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto figures = ReplayUnder(*planner, found->plan,
                                     {.conditions = conditions,
                                      .pipelines = spec.pipelines,
                                      .iterations = iterations,
                                      .seed = kFirstSeed + static_cast<std::uint64_t>(seed)});
    if (!figures) {
      fmt::print(stderr, "{}\n", figures.error().message);
      return 1;
    }
    unseen.saving_percent += figures->saving_percent / kSeeds;
    unseen.slowdown_percent += figures->slowdown_percent / kSeeds;
    unseen.clock_calls += figures->clock_calls / kSeeds;
    unseen.iteration_time_seconds += figures->iteration_time_seconds / kSeeds;
    squares += figures->slowdown_error_percent * figures->slowdown_error_percent;
    least = std::min(least, figures->slowdown_percent);
    most_slowdown = std::max(most_slowdown, figures->slowdown_percent);
  }
  const double error = std::sqrt(squares) / kSeeds;
  fmt::print(
      "| {} {} | {} ms, {} %, {} | paper {:.2f} | late {:.2f}, {:+.3f} % | bound {:.2f} ({:.2f}){} "
      "| {:.2f} | {:.4f} s, {:+.4f} +- {:.4f} % ({:+.4f} to {:+.4f}) | {:.0f} | {:.1f} s |\n",
      text(1, "gpt3"), text(2, "96"), 1e3 * conditions.switching.latency_seconds,
      100 * conditions.noise.per_computation, CallAheadName(conditions.switching.call_ahead),
      found->paper_plan.saving_percent, found->paper.saving_percent, found->paper.slowdown_percent,
      found->bound.saving_percent, found->bound.saving_without_switching_percent,
      found->bound.proven ? "" : " est.", unseen.saving_percent, unseen.iteration_time_seconds,
      unseen.slowdown_percent, error, least, most_slowdown, unseen.clock_calls, cpu);
  if (std::getenv("PRICE_CURVE") != nullptr) {
    for (const ChangePricePoint& point : found->price_curve) {
      fmt::print("  {} changes: {:.3f} %\n", point.changes, point.saving_percent);
    }
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  return perseus::bench::Run({argv, static_cast<std::size_t>(argc)});
}
