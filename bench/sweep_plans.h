// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_BENCH_SWEEP_PLANS_H_
#define PERSEUS_BENCH_SWEEP_PLANS_H_

#include <string>
#include <vector>

#include "measure/simulated_sweep.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

namespace perseus::measure {

// The profile that a sweep has recovered, as CSV.
std::string SweptCsv(const SimulatedResult& result);
// Blocking power of each rank, in watts; one that does not know it has the median of the others.
std::vector<double> SweptBlocking(const SimulatedResult& result);

// A plan from a recovered profile, as it is in truth.
struct JudgedPlan {
  double predicted_percent = 0;  // Saving.
  double late_percent = 0;       // Over the true time with all clocks at their highest.
  Plan achieved;
};

// The true table of a simulated pipeline, and the plan at no slowdown that is made from it.
class TrueTable {
 public:
  // `effort`: of all plans; see perseus/effort.h.
  static Result<TrueTable> Create(const SimulatedPipeline& pipeline, double effort);

  const Planner& planner() const { return planner_; }
  const Plan& best() const { return best_; }
  // The plan at no slowdown from what a sweep has recovered.
  Result<JudgedPlan> Judge(const SimulatedResult& result) const;

 private:
  TrueTable(SimulatedPipeline pipeline, Planner planner, Plan best, double effort);

  SimulatedPipeline pipeline_;
  Planner planner_;
  Plan best_;
  double effort_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_BENCH_SWEEP_PLANS_H_
