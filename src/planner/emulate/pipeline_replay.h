// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_PIPELINE_REPLAY_H_
#define PERSEUS_EMULATE_PIPELINE_REPLAY_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/noise.h"
#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "switching/clock_replay.h"

namespace perseus::emulate {

// The combined effect of all stragglers of one rank.
struct RankLimits {
  double slow = 1;  // Durations are multiplied by it.
  double most_mhz = std::numeric_limits<double>::infinity();
  double most_watts = std::numeric_limits<double>::infinity();  // Per GPU.
  double stall_seconds = 0;  // The first computation starts no earlier.

  void Add(StragglerKind kind, double value);
  friend auto operator<=>(const RankLimits&, const RankLimits&) = default;
};

// Power drawn for a time; times from the start of the iteration.
struct PowerSegment {
  double start_seconds = 0;
  double end_seconds = 0;
  double watts = 0;
};

// A computation at one knob, with its stage's noise and its true time.
struct TimedOption {
  double time_seconds = 0;
  double energy_joules = 0;
  double watts = 0;  // While it runs: energy / time.
};

// A computation of a plan under the limits of stragglers.
struct LimitedComputation {
  TimedOption option;
  int knob = 0;
  int rank = 0;
};

// The option that a computation runs with at each knob that its rank's clock may have.
class OptionsByKnob {
 public:
  // `true_times`: of model::DrawTrueTimes(), which must outlive it; empty: as measured.
  OptionsByKnob(const CostedPipeline& pipeline, const model::FixedNoise& noise,
                std::span<const double> true_times = {});

  // The option of computation `i` at `knob`. If its table does not have it: that of the nearest
  // clock, or nullptr if knobs are labels.
  const TimedOption* Find(int i, int knob) const {
    const int index = index_[static_cast<std::size_t>(table_of_[i]) * knobs_ + knob];
    return index < 0 ? nullptr : &options_[index];
  }
  // An option of computation `i`.
  TimedOption Timed(int i, const CostOption& option) const { return TimedIn(table_of_[i], option); }

 private:
  TimedOption TimedIn(int table, const CostOption& option) const {
    const double factor = stage_noise_[table];
    const double is = true_times_.empty()
                          ? 1
                          : true_times_[static_cast<std::size_t>(table) * knobs_ + option.knob];
    return {.time_seconds = option.time_seconds * is * factor,
            .energy_joules = option.energy_joules * is * factor,
            .watts = option.energy_joules / option.time_seconds};
  }

  std::size_t knobs_;
  const std::vector<int>& table_of_;
  std::span<const double> true_times_;
  std::vector<double> stage_noise_;   // [table]
  std::vector<int> index_;            // [table x knobs + knob] -> option, or -1
  std::vector<TimedOption> options_;  // Of all tables.
};

// A plan in one pipeline under the limits of its stragglers: all that is the same in each
// iteration.
struct LimitedPlan {
  int serial = 0;  // Unique among limited plans.
  bool straggles = false;
  Waiting waiting = Waiting::kSetClock;
  std::vector<LimitedComputation> computations;  // [computation]
  std::vector<double> slow;                      // [rank]
  std::vector<double> stall_seconds;             // [rank]
  // The rows that its ranks get: without noise, slowness or stalls.
  std::shared_ptr<const switching::PlannedRows> rows;
  // With the options that are left, without noise, slowness or stalls:
  double time_seconds = 0;      // T0
  double computing_joules = 0;  // C0
  double busy_joules = 0;       // Blocking power x time computed, summed over ranks.
  // With slowness and stalls.
  double nominal_seconds = 0;
};

// A cache of limited plans. There are few different ones.
class LimitedPlans {
 public:
  // All must outlive it.
  LimitedPlans(const CostedPipeline& pipeline, const OptionsByKnob& options,
               const ClockSwitching& switching)
      : pipeline_(pipeline), options_(options), rules_(switching, pipeline) {}

  // `limits` by rank, empty for a pipeline that does not straggle. `plan_index`
  // stands for `plan`. Lives until Clear().
  const LimitedPlan& Get(int plan_index, const Plan& plan, const std::vector<RankLimits>& limits);

  std::size_t size() const { return plans_.size(); }
  void Clear() { plans_.clear(); }

 private:
  std::unique_ptr<LimitedPlan> Make(const Plan& plan, const std::vector<RankLimits>& limits);

  const CostedPipeline& pipeline_;
  const OptionsByKnob& options_;
  switching::SwitchingRules rules_;
  int next_serial_ = 0;
  std::map<std::pair<int, std::vector<RankLimits>>, std::unique_ptr<LimitedPlan>> plans_;
};

// The option of `table` that a rank runs under its limits instead of the given one.
CostOption LimitedOption(const CostedPipeline& pipeline, const CostTable& table,
                         const CostOption& planned, const RankLimits& limits);

// The totals of one iteration of one pipeline.
struct RunTotals {
  double time_seconds = 0;      // T
  double computing_joules = 0;  // C
  // Blocking power x time computed: energy that GPUs would have drawn if they had waited instead.
  double busy_joules = 0;
  // Energy of waits before computations beyond the least that waiting draws.
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

// Replays iterations of single pipelines, with noise and late clocks: for the emulator, and for the
// trials of robust plans.
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
