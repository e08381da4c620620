// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EVALUATION_DERIVED_JOB_H_
#define PERSEUS_EVALUATION_DERIVED_JOB_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/artifact.h"
#include "evaluation/runs.h"
#include "evaluation/sosp24.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::sosp24 {

// A real job planned by us, on a profile derived from its measurements.
class DerivedJob {
 public:
  static Result<DerivedJob> Create(const Workload& workload, const std::string& profile_path,
                                   double blocking_power_watts);

  // What our plans would save: `ours` and its curve.
  Result<void> FillPlans(const Sosp24Options& options, Sosp24Job* job);
  // With a straggler, against all-maximum clocks that wait. After FillPlans().
  Result<double> StragglerPercent(double slowdown, double effort);

  // A published plan, replayed, of one pipeline; nullopt where its clocks do
  // not fit: another number of instructions than 1F1B has, or a clock that the
  // profile lacks.
  std::optional<Plan> PlanOf(const RankClocks& clocks) const;

 private:
  DerivedJob(const Workload& workload, Planner planner)
      : workload_(workload), planner_(std::move(planner)) {}

  Workload workload_;
  Planner planner_;
  std::vector<Plan> plans_;
};

}  // namespace perseus::sosp24

#endif  // PERSEUS_EVALUATION_DERIVED_JOB_H_
