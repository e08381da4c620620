// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/pipeline_replay.h"

#include <algorithm>
#include <cstddef>

#include "common/word_hash.h"

namespace perseus::emulate {

PipelineReplay::PipelineReplay(const CostedPipeline& pipeline, const EmulationSpec& spec,
                               const OptionsByKnob& options, const model::FixedNoise& noise)
    : pipeline_(pipeline),
      spec_(spec),
      options_(options),
      noise_(noise),
      rules_(spec.switching, pipeline.knobs_are_numbers),
      ranks_(pipeline.dag.num_ranks),
      joules_(pipeline.dag.size()) {}

void PipelineReplay::Run(const LimitedPlan& plan, int pipeline, std::int64_t iteration,
                         std::span<const switching::ClockState> clocks,
                         const switching::Forecast* forecast, PipelineRun* run) {
  const int num_ranks = pipeline_.dag.num_ranks;
  for (int r = 0; r < num_ranks; ++r) {
    RankFactors& rank = ranks_[r];
    rank = {};
    rank.slow = plan.slow[r];
    rank.stall_seconds = plan.stall_seconds[r];
    rank.blocking_watts = pipeline_.rank_blocking_power_watts[r];
    if (!noise_.gpus_of_rank.empty()) {
      const model::GpuNoise& gpus =
          noise_.gpus_of_rank[static_cast<std::size_t>(pipeline) * num_ranks + r];
      rank.gpu_noise = gpus.slowest;
      rank.gpu_mean = gpus.mean;
      rank.computing_share = gpus.mean / gpus.slowest;
    }
  }
  run->totals = {};
  run->segments.clear();
  run->clocks.assign(clocks.begin(), clocks.end());

  const bool noisy = spec_.noise.per_computation > 0;
  const bool late = rules_.late();
  if (late) StartCallers(plan, pipeline, iteration, forecast, run);
  const WordHash prefix =
      WordHash(spec_.seed).With(model::kComputationNoise).With(pipeline).With(iteration);
  if (noisy && late) {
    RunAs<true, true>(plan, prefix, run);
  } else if (noisy) {
    RunAs<true, false>(plan, prefix, run);
  } else if (late) {
    RunAs<false, true>(plan, prefix, run);
  } else {
    RunAs<false, false>(plan, prefix, run);
  }
  run->totals.time_seconds = timing_.iteration_time_seconds;
  for (const RankFactors& rank : ranks_) {
    run->totals.busy_joules += rank.blocking_watts * (rank.computing_share * rank.busy_seconds);
  }
  run->totals.peak_gpu_watts /= pipeline_.tensor_parallel;
}

void PipelineReplay::Draw(double start, double end, double watts, const RankFactors& rank,
                          PipelineRun* run) const {
  run->segments.push_back({start, end, (watts - rank.blocking_watts) * rank.computing_share});
  run->totals.peak_gpu_watts = std::max(run->totals.peak_gpu_watts, watts * rank.computing_share);
}

void PipelineReplay::StartCallers(const LimitedPlan& plan, int pipeline, std::int64_t iteration,
                                  const switching::Forecast* forecast, PipelineRun* run) {
  if (forecast != nullptr) {
    run->forecast = *forecast;
    run->forecast.Follow(plan.rows);
  }
  callers_.clear();
  for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank) {
    const WordHash draws = model::LatencyDraws(spec_.seed, pipeline, iteration, rank);
    switching::ClockState* clock = &run->clocks[rank];
    if (forecast != nullptr) {
      callers_.emplace_back(rules_, rank, draws, &run->forecast, clock);
    } else {
      callers_.emplace_back(rules_, plan.rows->KnobsOf(rank), draws, clock);
    }
  }
}

template <bool kNoisy, bool kLate>
void PipelineReplay::RunAs(const LimitedPlan& plan, WordHash prefix, PipelineRun* run) {
  const double switch_stall = spec_.switching.stall_seconds;
  const double sigma = spec_.noise.per_computation;
  const auto step = [&](int i, double ready, double* start, double* end) {
    const LimitedComputation& computation = plan.computations[i];
    RankFactors& rank = ranks_[computation.rank];
    switching::ClockState& clock = run->clocks[computation.rank];
    if (!rank.started) {
      ready = std::max(ready, rank.stall_seconds);
      rank.started = true;
    }
    const bool changes = computation.knob != clock.planned;
    if (changes) ready += switch_stall;
    *start = ready;
    Factors factors = {.rank = &rank};
    if constexpr (kNoisy) factors.computation_noise = 1 + sigma * prefix.With(i).StandardDraw();
    if constexpr (kLate) {
      switching::RankCaller& caller = callers_[computation.rank];
      if (caller.Start(ready)) ++run->totals.late_computations;
      *end = RunAtChangingClocks(plan, i, ready, factors, run, &joules_[i]);
      caller.End(*end);
    } else {
      if (changes) ++run->totals.clock_calls;
      clock = switching::SettledAt(computation.knob);
      const TimedOption& option = computation.option;
      const double noise = factors.computation_noise;
      *end = ready + option.time_seconds * rank.gpu_noise * rank.slow * noise;
      joules_[i] = option.energy_joules * rank.gpu_mean * rank.slow * noise;
      Draw(ready, *end, option.watts, rank, run);
    }
    run->totals.computing_joules += joules_[i];
    rank.busy_seconds += *end - ready;
  };
  ReplayBy(pipeline_.dag, step, &timing_);
  if constexpr (kLate) {
    for (const switching::ClockState& clock : run->clocks) run->totals.clock_calls += clock.calls;
  }
}

// Work goes on at the clock in effect while calls end and others begin. Returns
// when it is done.
double PipelineReplay::RunAtChangingClocks(const LimitedPlan& plan, int i, double start,
                                           const Factors& factors, PipelineRun* run,
                                           double* joules) {
  const LimitedComputation& planned = plan.computations[i];
  const RankFactors& rank = *factors.rank;
  const TimedOption* option = nullptr;
  const auto seconds_at = [&](int knob) {
    option = knob == planned.knob ? nullptr : options_.Find(i, knob);
    if (option == nullptr) option = &planned.option;
    return option->time_seconds * rank.gpu_noise * rank.slow * factors.computation_noise;
  };
  *joules = 0;
  const auto piece = [&](int /*knob*/, double from, double to, double share) {
    const double energy =
        option->energy_joules * rank.gpu_mean * rank.slow * factors.computation_noise;
    *joules += share * energy;
    Draw(from, to, option->watts, rank, run);
  };
  return callers_[planned.rank].Run(start, seconds_at, piece);
}

}  // namespace perseus::emulate
