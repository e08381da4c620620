// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_LIMITED_PLAN_H_
#define PERSEUS_EMULATE_LIMITED_PLAN_H_

#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "emulate/stragglers.h"
#include "model/noise.h"
#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "switching/clock_replay.h"

namespace perseus::emulate {

// A computation at one knob, with its stage's noise.
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
  OptionsByKnob(const CostedPipeline& pipeline, const model::FixedNoise& noise);

  // The option of computation `i` at `knob`. If its table does not have it: that of the nearest
  // clock, or nullptr if knobs are labels.
  const TimedOption* Find(int i, int knob) const {
    const int index = index_[static_cast<std::size_t>(table_of_[i]) * knobs_ + knob];
    return index < 0 ? nullptr : &options_[index];
  }
  TimedOption WithStageNoise(int i, const CostOption& option) const;

 private:
  std::size_t knobs_;
  const std::vector<int>& table_of_;
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

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_LIMITED_PLAN_H_
