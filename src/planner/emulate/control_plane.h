// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_CONTROL_PLANE_H_
#define PERSEUS_EMULATE_CONTROL_PLANE_H_

#include <deque>
#include <map>

#include "perseus/emulator.h"
#include "perseus/plan.h"
#include "perseus/policy.h"
#include "perseus/result.h"

namespace perseus::emulate {

inline constexpr int kBasePlan = 0;

// The plan that the pipelines without stragglers follow.
struct Reaction {
  double target_seconds = 0;
  int plan = kBasePlan;
};

// Chooses the plan of the pipelines without stragglers, from what is known about stragglers so far.
class PlanChooser {
 public:
  // All must outlive it. Precondition: `spec` was checked.
  PlanChooser(const Policy& policy, const EmulationSpec& spec, const CostedPipeline& pipeline)
      : policy_(policy), spec_(spec), pipeline_(pipeline) {}

  // Makes the base plan. Once, before all others.
  Result<void> Begin();

  // An iteration starts. `slowest_seconds`: nominal time of its slowest straggling pipeline; 0:
  // there is none. Returns what the other pipelines follow.
  Result<Reaction> React(double start_seconds, double slowest_seconds);

  const Plan& plan(int index) const { return plans_[index]; }

 private:
  struct Affairs {
    double start_seconds = 0;
    double slowest_seconds = 0;
  };

  Result<Plan> MakePlan(double seconds) const;

  const Policy& policy_;
  const EmulationSpec& spec_;
  const CostedPipeline& pipeline_;
  std::deque<Affairs> affairs_;  // Changes of stragglers, from the newest one that is known.
  std::deque<Plan> plans_;
  std::map<double, Reaction> reactions_;  // By T'.
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_CONTROL_PLANE_H_
