// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_ENERGY_SPLIT_H_
#define PERSEUS_EMULATE_ENERGY_SPLIT_H_

#include "emulate/limited_plan.h"
#include "emulate/pipeline_replay.h"
#include "perseus/emulator.h"
#include "perseus/plan.h"
#include "perseus/planner.h"

namespace perseus::emulate {

// Divides the energy of one pipeline in one iteration by what it was used for
// (docs/explanation/emulation.md, "Energy").
class EnergySplitter {
 public:
  // `planner` must outlive it.
  explicit EnergySplitter(const Planner& planner);

  EnergySplit Split(const LimitedPlan& plan, const RunTotals& run, double job_seconds) const;

 private:
  // E(t) - P t: the least energy of the computations of a plan with this iteration time, minus
  // blocking power times this time.
  double LeastEffectiveJoules(double seconds) const;

  const Frontier& frontier_;
  double blocking_watts_;
};

// A sum with compensated rounding errors (Neumaier 1974).
class ExactSum {
 public:
  void Add(double value);
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_ENERGY_SPLIT_H_
