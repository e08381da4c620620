// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What plans that hold under conditions save where other constraints are given beside
// them: a table of docs/evidence/planning.md, on two measured pipelines. 15 ms, 1 % noise,
// calls predicted, at most 0.1 % slower.
//
//   PERSEUS_SHARED_DATA=DATA build/release/bench/constraints_table [MICROBATCHES [EFFORT [FILTER
//       [JOB.toml]]]]
//
// FILTER: only rows whose job and constraint contain it ("bloom --granularity"). JOB.toml: this
// job instead of the two.

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <vector>

#include "measured_cases.h"
#include "perseus/conditions.h"
#include "perseus/planner.h"
#include "perseus/robust_plan.h"

namespace perseus::bench {
namespace {

constexpr int kSeeds = 5;
constexpr std::uint64_t kFirstSeed = 1000;  // No search uses these.
constexpr int kIterations = 200;            // Of each seed.

struct Case {
  const char* name;
  PlanConstraints constraints;
};

const std::array<Case, 6> kCases = {{
    {"none", {}},
    {"--granularity phase", {.granularity = Granularity::kPhase}},
    {"--granularity stage-type", {.granularity = Granularity::kStageType}},
    {"--granularity stage", {.granularity = Granularity::kStage}},
    {"--time-margin 1%", {.time_margin_fraction = 0.01}},
    {"--time-margin 3%", {.time_margin_fraction = 0.03}},
}};

int Run(std::span<char*> arguments) {
  const int microbatches = arguments.size() > 1 ? std::atoi(arguments[1]) : 24;
  const double effort = arguments.size() > 2 ? std::strtod(arguments[2], nullptr) : 1;
  const std::string filter = arguments.size() > 3 ? arguments[3] : "";
  fmt::print(
      "| job | constraint | on paper | comes to | plan that holds | calls | CPU |\n"
      "|---|---|---|---|---|---|---|\n");
  std::vector<std::string> models = {"gpt3", "bloom"};
  if (arguments.size() > 4) models = {arguments[4]};
  for (const std::string& model : models) {
    const auto planner = MeasuredPlanner(model, microbatches);
    if (!planner) {
      fmt::print(stderr, "{}\n", planner.error().message);
      return 1;
    }
    for (const Case& each : kCases) {
      if (fmt::format("{} {}", model, each.name).find(filter) == std::string::npos) continue;
      RobustPlanSpec spec;
      spec.conditions.switching.latency_seconds = 0.015;
      spec.conditions.switching.call_ahead = CallAhead::kPredicted;
      spec.conditions.noise.per_computation = 0.01;
      spec.conditions.max_slowdown = 0.001;
      spec.constraints = each.constraints;
      spec.effort = effort;
      spec.with_bound = false;
      const std::clock_t begin = std::clock();
      const auto found = PlanUnder(*planner, planner->baseline().iteration_time_seconds, spec);
      const double cpu = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      if (!found) {
        fmt::print("| {} | {} | {} |\n", model, each.name, found.error().message);
        continue;
      }
      ReplayedFigures unseen;
      for (int seed = 0; seed < kSeeds; ++seed) {
        const auto figures = ReplayUnder(*planner, found->plan,
                                         {.conditions = spec.conditions,
                                          .pipelines = spec.pipelines,
                                          .iterations = kIterations,
                                          .seed = kFirstSeed + static_cast<std::uint64_t>(seed)});
        unseen.saving_percent += figures->saving_percent / kSeeds;
        unseen.slowdown_percent += figures->slowdown_percent / kSeeds;
        unseen.clock_calls += figures->clock_calls / kSeeds;
      }
      fmt::print(
          "| {} | `{}` | {:.2f} | {:.2f}, {:+.2f} % | {:.2f}, {:+.3f} % | {:.0f} | {:.1f} s |\n",
          model, each.name, found->paper_plan.saving_percent, found->paper.saving_percent,
          found->paper.slowdown_percent, unseen.saving_percent, unseen.slowdown_percent,
          unseen.clock_calls, cpu);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  return perseus::bench::Run({argv, static_cast<std::size_t>(argc)});
}
