// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One plan at the all-maximum-clock time, on a frontier that is known already.

#include <benchmark/benchmark.h>

#include "modelled_pipeline.h"
#include "perseus/planner.h"

namespace perseus::bench {
namespace {

// stages, microbatches, effort in per cent
void PlanAtNoSlowdown(benchmark::State& state) {
  auto pipeline =
      ModelledPipeline(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  if (!pipeline) {
    state.SkipWithError(pipeline.error().message.c_str());
    return;
  }
  const auto planner = Planner::Create(*std::move(pipeline), {});
  if (!planner) {
    state.SkipWithError(planner.error().message.c_str());
    return;
  }
  const double seconds = planner->baseline().iteration_time_seconds;
  const double effort = static_cast<double>(state.range(2)) / 100;
  while (state.KeepRunning()) {
    const auto plan = planner->PlanFor(seconds, {}, effort);
    if (!plan) {
      state.SkipWithError(plan.error().message.c_str());
      return;
    }
    state.counters["gap_percent"] = plan->gap_percent;
    state.counters["saving_percent"] = plan->saving_percent;
  }
}
BENCHMARK(PlanAtNoSlowdown)
    ->ArgNames({"stages", "microbatches", "effort"})
    ->Args({4, 16, 100})
    ->Args({8, 12, 100})
    ->Args({8, 96, 20})
    ->Args({8, 96, 100})
    ->Args({16, 256, 20})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace perseus::bench

BENCHMARK_MAIN();
