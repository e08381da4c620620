// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/energy_split.h"

#include <algorithm>
#include <cmath>

namespace perseus::emulate {

EnergySplitter::EnergySplitter(const Planner& planner)
    : frontier_(planner.lower_bound()),
      blocking_watts_(planner.pipeline().total_blocking_power_watts) {}

double EnergySplitter::LeastEffectiveJoules(double seconds) const {
  // A plan's own replay may end below the frontier by rounding; beyond its end
  // nothing changes.
  const double within = std::clamp(seconds, frontier_.points.front().iteration_time_seconds,
                                   frontier_.points.back().iteration_time_seconds);
  return frontier_.EnergyAt(within) - blocking_watts_ * within;
}

EnergySplit EnergySplitter::Split(const LimitedPlan& plan, const RunTotals& run,
                                  double job_seconds) const {
  const double dearer =
      plan.computing_joules > 0 ? run.computing_joules / plan.computing_joules : 1;
  const double stretch = std::max(1.0, run.time_seconds / plan.time_seconds);
  const double best_in_same_time = LeastEffectiveJoules(plan.time_seconds);
  const double best_in_job_time =
      LeastEffectiveJoules(std::max(plan.time_seconds, job_seconds / stretch));
  EnergySplit split;
  split.intrinsic_bloat_joules =
      dearer * ((plan.computing_joules - plan.busy_joules) - best_in_same_time);
  split.extrinsic_bloat_joules = dearer * (best_in_same_time - best_in_job_time);
  split.useful_joules =
      run.computing_joules - split.intrinsic_bloat_joules - split.extrinsic_bloat_joules;
  split.blocking_joules =
      blocking_watts_ * job_seconds - run.busy_joules + run.dearer_waiting_joules;
  return split;
}

void ExactSum::Add(double value) {
  const double sum = sum_ + value;
  lost_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
  sum_ = sum;
}

}  // namespace perseus::emulate
