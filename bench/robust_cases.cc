// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans that hold under real clocks on the tables of the Perseus paper: one row of
// the tables of docs/planning.md.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/robust_cases gpt3|bloom MICROBATCHES
//       [LATENCY_S NOISE none|end|predicted MAX_SLOWDOWN MAX_CHANGES EFFORT FACTOR PIPELINES]

#include <fmt/format.h>

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
constexpr int kIterations = 200;
constexpr int kFirstSeed = 1000;  // Seeds that the search does not use.

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
  const double seconds = planner->baseline().iteration_time_seconds * number(9, "1");
  const std::clock_t begin = std::clock();
  const auto found = PlanUnder(*planner, seconds, spec);
  const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  if (!found) {
    fmt::print(stderr, "{}\n", found.error().message);
    return 1;
  }
  ReplayedFigures unseen;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const auto figures = ReplayUnder(*planner, found->plan, conditions, spec.pipelines, kIterations,
                                     kFirstSeed + seed);
    unseen.saving_percent += figures->saving_percent / kSeeds;
    unseen.slowdown_percent += figures->slowdown_percent / kSeeds;
    unseen.clock_calls += figures->clock_calls / kSeeds;
  }
  fmt::print(
      "| {} {} | {} ms, {} %, {} | paper {:.2f} | late {:.2f}, {:+.3f} % | bound {:.2f} ({:.2f}){} "
      "| {:.2f} | {:+.3f} % | {:.0f} | {:.1f} s |\n",
      text(1, "gpt3"), text(2, "96"), 1e3 * conditions.switching.latency_seconds,
      100 * conditions.noise.per_computation, CallAheadName(conditions.switching.call_ahead),
      found->paper_plan.saving_percent, found->paper.saving_percent, found->paper.slowdown_percent,
      found->bound.saving_percent, found->bound.saving_without_switching_percent,
      found->bound.proven ? "" : " est.", unseen.saving_percent, unseen.slowdown_percent,
      unseen.clock_calls, cpu);
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
