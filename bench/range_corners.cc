// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What becomes of plans that hold where the true conditions are others than those planned for:
// plans for one value, and plans for ranges. The table of docs/evidence/planning.md.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/range_corners gpt3|bloom|JOB.toml MICROBATCHES
//       [EFFORT [FILTER]]
//
// A row for each plan (whose name contains FILTER), a column for each truth: slowdown against
// maximum clocks under the same, and saving, in means over 5 seeds x 200 iterations that no search
// uses. Profile errors are drawn once per seed, from 40 seeds: the mean, and the least that 95 % of
// them keep to.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "measured_cases.h"
#include "perseus/conditions.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"

namespace perseus::bench {
namespace {

constexpr double kLatency = 0.015;
constexpr double kProfileError = 0.005;  // Of an option at a lowered clock.
constexpr std::uint64_t kFirstSeed = 1000;

struct Named {
  std::string name;
  Conditions conditions;
};

Conditions With(ValueRange noise, ValueRange latency, double spread = 0) {
  Conditions conditions;
  conditions.noise.per_computation = noise.middle();
  conditions.switching.latency_seconds = latency.middle();
  conditions.switching.latency_spread_seconds = spread;
  conditions.switching.call_ahead = CallAhead::kPredicted;
  if (!noise.is_one()) conditions.ranges.noise = noise;
  if (!latency.is_one()) conditions.ranges.switch_latency_seconds = latency;
  conditions.profile_errors = false;
  return conditions;
}

Conditions WithRanks(Conditions conditions, ValueRange ranks) {
  conditions.noise.per_rank = ranks.middle();
  if (!ranks.is_one()) conditions.ranges.rank_noise = ranks;
  return conditions;
}

Conditions Correlated(Conditions conditions) {
  conditions.noise.correlation = 0.9;
  return conditions;
}

Conditions WithErrors(Conditions conditions) {
  conditions.profile_errors = true;
  return conditions;
}

std::vector<Named> Planned() {
  return {{"1 %, 15 ms", With(0.01, kLatency)},
          {"0-2 %, 15 ms", With({0, 0.02}, kLatency)},
          {"0-3 %, 15 ms", With({0, 0.03}, kLatency)},
          {"1 %, 15-40 ms, spread 10 ms", With(0.01, {0.015, 0.04}, 0.01)},
          {"0-2 %, 15-40 ms, spread 10 ms", With({0, 0.02}, {0.015, 0.04}, 0.01)},
          {"1 %, a rank 0-1 %", WithRanks(With(0.01, kLatency), {0, 0.01})},
          {"1 %, correlation 0.9", Correlated(With(0.01, kLatency))},
          {"1 %, profile errors", WithErrors(With(0.01, kLatency))}};
}

std::vector<Named> Truths() {
  return {{"0 %", With(0, kLatency)},
          {"1 %", With(0.01, kLatency)},
          {"2 %", With(0.02, kLatency)},
          {"3 %", With(0.03, kLatency)},
          {"1 % + a rank 1 %", WithRanks(With(0.01, kLatency), 0.01)},
          {"correlation 0.9", Correlated(With(0.01, kLatency))},
          {"30 +- 10 ms", With(0.01, 0.03, 0.01)},
          {"errors 0.5 %", WithErrors(With(0.01, kLatency))}};
}

// The same pipeline, whose lowered clocks were measured with errors.
CostedPipeline WithProfileErrors(CostedPipeline pipeline) {
  for (const CostTable& table : pipeline.tables) {
    if (table.same_kind_as >= 0) continue;
    for (const CostOption& option : table.all_options) {
      const bool lowered = option.knob != table.baseline.knob;
      pipeline.errors.push_back({.stage = table.stage,
                                 .type = table.type,
                                 .knob = option.knob,
                                 .time_std = lowered ? kProfileError : 0});
    }
  }
  std::sort(pipeline.errors.begin(), pipeline.errors.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.stage, a.type, a.knob) < std::tuple(b.stage, b.type, b.knob);
  });
  return pipeline;
}

std::string Cell(const Planner& planner, const Plan& plan, const Conditions& truth) {
  const int seeds = truth.profile_errors ? 40 : 5;
  std::vector<double> slowdowns;
  double saving = 0;
  double slowdown = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    const auto figures = ReplayUnder(planner, plan,
                                     {.conditions = truth,
                                      .iterations = truth.profile_errors ? 50 : 200,
                                      .seed = kFirstSeed + static_cast<std::uint64_t>(seed)});
    if (!figures) return figures.error().message;
    slowdowns.push_back(figures->slowdown_percent);
    slowdown += figures->slowdown_percent / seeds;
    saving += figures->saving_percent / seeds;
  }
  if (!truth.profile_errors) return fmt::format("{:+.3f}, {:.2f}", slowdown, saving);
  std::sort(slowdowns.begin(), slowdowns.end());
  const double high = slowdowns[static_cast<std::size_t>(seeds * 95 / 100 - 1)];
  return fmt::format("{:+.3f} (95 %: {:+.3f}), {:.2f}", slowdown, high, saving);
}

int Run(std::span<char*> arguments) {
  const std::string model = arguments.size() > 1 ? arguments[1] : "gpt3";
  const int microbatches = arguments.size() > 2 ? std::atoi(arguments[2]) : 48;
  const auto measured = MeasuredPlanner(model, microbatches);
  if (!measured) {
    fmt::print(stderr, "{}\n", measured.error().message);
    return 1;
  }
  const auto planner = Planner::Create(WithProfileErrors(measured->pipeline()), {});
  if (!planner) {
    fmt::print(stderr, "{}\n", planner.error().message);
    return 1;
  }
  const std::vector<Named> truths = Truths();
  fmt::print("| {} {}: planned for |", model, microbatches);
  for (const Named& truth : truths) fmt::print(" {} |", truth.name);
  fmt::print(" changes | CPU |\n|---|");
  for (std::size_t k = 0; k < truths.size() + 2; ++k) fmt::print("---|");
  fmt::print("\n");
  for (const Named& planned : Planned()) {
    if (arguments.size() > 4 && planned.name.find(arguments[4]) == std::string::npos) continue;
    RobustPlanSpec spec;
    spec.conditions = planned.conditions;
    spec.effort = arguments.size() > 3 ? std::atof(arguments[3]) : 1;
    spec.with_bound = false;
    const std::clock_t begin = std::clock();
    const auto found = PlanUnder(*planner, planner->baseline().iteration_time_seconds, spec);
    const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!found) {
      fmt::print(stderr, "{}\n", found.error().message);
      return 1;
    }
    fmt::print("| {} |", planned.name);
    for (const Named& truth : truths) {
      fmt::print(" {} |", Cell(*planner, found->plan, truth.conditions));
    }
    const auto changes = CountKnobChanges(planner->pipeline().dag, found->plan.options);
    fmt::print(" {} | {:.1f} s |\n", changes ? changes->all() : 0, cpu);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  return perseus::bench::Run({argv, static_cast<std::size_t>(argc)});
}
