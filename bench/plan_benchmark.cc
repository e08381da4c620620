// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans on a frontier that is known already: one at the all-maximum-clock time,
// the first one that its search tells of, and a ladder from T_min to T*.

#include <benchmark/benchmark.h>

#include "measured_cases.h"
#include "modelled_pipeline.h"
#include "perseus/planner.h"

namespace perseus::bench {
namespace {

// Of the benchmark's first two arguments: stages, microbatches.
Result<Planner> ModelledPlanner(const benchmark::State& state) {
  auto pipeline =
      ModelledPipeline(static_cast<int>(state.range(0)), static_cast<int>(state.range(1)));
  if (!pipeline) return tl::unexpected(pipeline.error());
  return Planner::Create(*std::move(pipeline), {});
}

// stages, microbatches, effort in per cent
void PlanAtNoSlowdown(benchmark::State& state) {
  const auto planner = ModelledPlanner(state);
  if (!planner) {
    state.SkipWithError(planner.error().message.c_str());
    return;
  }
  const double seconds = planner->baseline().iteration_time_seconds;
  const double effort = static_cast<double>(state.range(2)) / 100;
  while (state.KeepRunning()) {
    const auto plan = planner->PlanFor(seconds, {.effort = effort});
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

// stages, microbatches. The search ends as soon as there is a plan.
void FirstPlan(benchmark::State& state) {
  const auto planner = ModelledPlanner(state);
  if (!planner) {
    state.SkipWithError(planner.error().message.c_str());
    return;
  }
  const double seconds = planner->baseline().iteration_time_seconds;
  while (state.KeepRunning()) {
    const auto plan = planner->PlanFor(
        seconds, {.progress = [](const Progress& progress) { return progress.better == nullptr; }});
    if (!plan) {
      state.SkipWithError(plan.error().message.c_str());
      return;
    }
    state.counters["gap_percent"] = plan->gap_percent;
  }
}
BENCHMARK(FirstPlan)
    ->ArgNames({"stages", "microbatches"})
    ->Args({8, 96})
    ->Args({16, 256})
    ->Unit(benchmark::kMillisecond);

void PlansFromFastestToTStar(const Result<Planner>& planner, int plans, benchmark::State& state) {
  if (!planner) {
    state.SkipWithError(planner.error().message.c_str());
    return;
  }
  while (state.KeepRunning()) {
    const auto ladder = planner->Ladder(plans);
    if (!ladder) {
      state.SkipWithError(ladder.error().message.c_str());
      return;
    }
    double gap = 0;
    for (const Plan& plan : *ladder) gap += plan.gap_percent / static_cast<double>(ladder->size());
    state.counters["mean_gap_percent"] = gap;
  }
}

// stages, microbatches, plans
void Ladder(benchmark::State& state) {
  PlansFromFastestToTStar(ModelledPlanner(state), static_cast<int>(state.range(2)), state);
}
BENCHMARK(Ladder)
    ->ArgNames({"stages", "microbatches", "plans"})
    ->Args({8, 96, 64})
    ->Unit(benchmark::kMillisecond);

// microbatches, plans. Of a measured table with 8 stages: measured_cases.h.
void MeasuredLadder(benchmark::State& state, const char* model) {
  PlansFromFastestToTStar(MeasuredPlanner(model, static_cast<int>(state.range(0))),
                          static_cast<int>(state.range(1)), state);
}
BENCHMARK_CAPTURE(MeasuredLadder, gpt3, "gpt3")
    ->ArgNames({"microbatches", "plans"})
    ->Args({96, 64})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(MeasuredLadder, bloom, "bloom")
    ->ArgNames({"microbatches", "plans"})
    ->Args({96, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace perseus::bench

BENCHMARK_MAIN();
