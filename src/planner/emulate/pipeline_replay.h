// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_PIPELINE_REPLAY_H_
#define PERSEUS_EMULATE_PIPELINE_REPLAY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "emulate/limited_plan.h"
#include "emulate/power_trace.h"
#include "model/noise.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/pipeline.h"
#include "switching/clock_replay.h"

namespace perseus::emulate {

// The totals of one iteration of one pipeline.
struct RunTotals {
  double time_seconds = 0;      // T
  double computing_joules = 0;  // C
  // Blocking power x time computed: energy that GPUs would have drawn if they had waited instead.
  double busy_joules = 0;
  // What waits before computations draw beyond the least that waiting draws.
  double dearer_waiting_joules = 0;
  double peak_gpu_watts = 0;
  std::int64_t clock_calls = 0;
  std::int64_t late_computations = 0;
};

struct PipelineRun {
  RunTotals totals;
  std::vector<PowerSegment> segments;         // Power of computations beyond blocking power.
  std::vector<switching::ClockState> clocks;  // [rank], when its last computation ended.
  std::vector<double> last_ends;  // [rank] That time; empty where what waiting draws is constant.
  switching::Forecast forecast;   // At the same time; empty unless calls are predicted.
};

// Replays iterations of single pipelines, with noise and late clocks.
class PipelineReplay {
 public:
  // All must outlive it.
  PipelineReplay(const CostedPipeline& pipeline, const EmulationSpec& spec,
                 const OptionsByKnob& options, const model::FixedNoise& noise);

  // `clocks`: those of its ranks at the start of the iteration. `forecast`: what its clients
  // expect; nullptr unless calls are predicted. Reuses the memory of `run`.
  void Run(const LimitedPlan& plan, int pipeline, std::int64_t iteration,
           std::span<const switching::ClockState> clocks, const switching::Forecast* forecast,
           PipelineRun* run);

  // Of the last Run().
  const Timing& timing() const { return timing_; }
  const std::vector<double>& joules() const { return joules_; }  // [computation]

 private:
  // Values of a rank that are constant during an iteration.
  struct RankFactors {
    double gpu_noise = 1;
    double slow = 1;
    double gpu_mean = 1;
    double computing_share = 1;  // m/g: of the time, for which the mean GPU computes.
    double blocking_watts = 0;
    double stall_seconds = 0;
    double busy_seconds = 0;
    double last_end_seconds = 0;
    bool started = false;
  };
  template <bool kNoisy>
  class Books;

  template <bool kNoisy, bool kLate>
  void RunAs(const LimitedPlan& plan, PipelineRun* run);

  const CostedPipeline& pipeline_;
  const EmulationSpec& spec_;
  const OptionsByKnob& options_;
  const model::FixedNoise& noise_;
  model::IterationNoise iteration_noise_;
  switching::SwitchingRules rules_;
  std::vector<RankFactors> ranks_;
  std::vector<switching::RankCaller> callers_;  // [rank] Where clocks come late.
  Timing timing_;
  std::vector<double> joules_;
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_PIPELINE_REPLAY_H_
