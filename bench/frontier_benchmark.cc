// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The whole frontier of modelled pipelines. --large adds 64 x 512 in the
// coarse mode, which takes most of a minute.

#include <benchmark/benchmark.h>

#include <string_view>
#include <vector>

#include "modelled_pipeline.h"
#include "perseus/costed_pipeline.h"
#include "perseus/frontier.h"
#include "perseus/plan.h"

namespace perseus::bench {
namespace {

// As the planner hands it to the solver.
TimeCostProblem ProblemOf(const CostedPipeline& pipeline) {
  TimeCostProblem problem;
  problem.curve_of = pipeline.table_of;
  for (const CostTable& table : pipeline.tables) {
    std::vector<TimeCost>& curve = problem.curves.emplace_back();
    for (const CostOption& option : table.all_options) {
      curve.push_back({option.time_seconds,
                       option.energy_joules - table.blocking_power_watts * option.time_seconds});
    }
  }
  for (const Precedence& p : pipeline.dag.precedences) {
    problem.precedences.push_back({p.from, p.to, p.delay_seconds});
  }
  return problem;
}

void WholeFrontier(benchmark::State& state, double slope_quantum_watts) {
  const auto pipeline =
      ModelledPipeline(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  if (!pipeline) {
    state.SkipWithError(pipeline.error().message.c_str());
    return;
  }
  const TimeCostProblem problem = ProblemOf(*pipeline);
  FrontierOptions options;
  options.slope_quantum = slope_quantum_watts;
  while (state.KeepRunning()) {
    const auto frontier = SolveFrontier(problem, options);
    if (!frontier) {
      state.SkipWithError(frontier.error().message.c_str());
      return;
    }
    state.counters["breakpoints"] = static_cast<double>(frontier->breakpoints.size());
    state.counters["pivots"] = static_cast<double>(frontier->pivots);
    state.counters["cost_error_joules"] = frontier->cost_error;
  }
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  using perseus::bench::WholeFrontier;
  // Taken out before the library complains of a flag that it does not know.
  bool large = false;
  std::vector<char*> arguments;
  for (int k = 0; k < argc; ++k) {
    if (std::string_view(argv[k]) == "--large") {
      large = true;
    } else {
      arguments.push_back(argv[k]);
    }
  }
  for (const auto& [stages, microbatches] : {std::pair{4, 16}, {8, 12}, {8, 96}, {16, 256}}) {
    benchmark::RegisterBenchmark("Frontier/exact", WholeFrontier, 0.0)
        ->Args({stages, microbatches})
        ->Unit(benchmark::kMillisecond);
  }
  if (large) {
    benchmark::RegisterBenchmark("Frontier/2W", WholeFrontier, 2.0)
        ->Args({64, 512})
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
  int count = static_cast<int>(arguments.size());
  benchmark::Initialize(&count, arguments.data());
  if (benchmark::ReportUnrecognizedArguments(count, arguments.data())) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
