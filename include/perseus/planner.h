// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_H_
#define PERSEUS_PLANNER_H_

#include <functional>
#include <memory>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/profile.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

// Errors: a stage or type that the schedule needs and the profile lacks, a
// wrong number of blocking powers, numbers out of range.
Result<CostedPipeline> CostPipeline(const Profile& profile, PipelineDag dag, const CostSpec& spec);

// Energy of one pipeline over an iteration: computations + blocking power
// while ranks wait (planner.md §1). Summed in the order of dag.computations.
double IterationEnergy(const CostedPipeline& pipeline, const std::vector<CostOption>& chosen,
                       double iteration_time_seconds);

// Called now and then with a share of the work done (0..1).
using ProgressFunction = std::function<void(double)>;

struct PlannerOptions {
  // Solve with slopes rounded to multiples of this many watts (certified
  // coarse mode). 0: exact. Negative: exact, unless the pipeline is so large
  // that coarse is advised.
  double slope_quantum_watts = 0;
  // Shows the frontier of the paper's fit a exp(b t) + c of each table. Plans
  // and their lower bounds still come from the options themselves.
  bool exponential_fit = false;
  // Called while the frontier is walked.
  ProgressFunction progress;
};

// Computes the frontier of a pipeline once, then makes plans anywhere on it.
// Owns its pipeline. Deterministic. Const members may be called from several
// threads at once. A moved-from planner may only be assigned or destroyed.
class Planner {
 public:
  // Errors: kOverflow when quantities do not fit the integer arithmetic.
  static Result<Planner> Create(CostedPipeline pipeline, const PlannerOptions& options);
  Planner(Planner&&) noexcept;
  Planner& operator=(Planner&&) noexcept;
  ~Planner();

  const CostedPipeline& pipeline() const;
  const Frontier& frontier() const;
  // The frontier of the options themselves, below which no plan can be; the
  // same as frontier() unless that one is fitted.
  const Frontier& lower_bound() const;
  // Every computation at its highest clock: the origin of savings.
  const Plan& baseline() const;

  // The figures of a plan made elsewhere, one option for every computation:
  // time and energy as replayed, certificate, saving.
  // Precondition: options.size() == pipeline().dag.size().
  Plan Evaluate(std::vector<CostOption> options) const;

  // The time a target means. kInfeasible when it lies below T_min.
  Result<double> TargetSeconds(const PlanTarget& target) const;

  // A plan that ends by `seconds`. For more than T* it is the one for T*,
  // unless shared knobs have a use for more time. `effort` scales the work
  // bound of the search: 1 for a plan that will be used (about a second of CPU
  // at 8 stages x 96 microbatches, more with more computations), 0.2 for a row
  // of a table. Errors: kInfeasible below T_min or when the constraints cannot
  // be met in that time; kInvalidInput for numbers out of range, or a margin in
  // standard deviations where the profile states none.
  Result<Plan> PlanFor(double seconds, const PlanConstraints& constraints = {},
                       double effort = 1.0) const;

 private:
  struct Impl;
  explicit Planner(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PLANNER_H_
