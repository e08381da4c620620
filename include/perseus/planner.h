// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_H_
#define PERSEUS_PLANNER_H_

// Link perseus::core (pkg-config: perseus-core).

#include <functional>
#include <memory>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/frontier.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/profile.h"
#include "perseus/progress.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The cost of each computation of a DAG at each knob. Errors: a stage or type that the schedule
// needs and the profile lacks, a wrong number of blocking powers, numbers out of range.
Result<CostedPipeline> CostPipeline(const Profile& profile, PipelineDag dag, const CostSpec& spec);

struct PlannerOptions {
  // Round the slopes of the frontier to multiples of this many watts. That is faster, and the
  // bounds say what it costs (Frontier::certified_error). 0: exact. Without a value Perseus
  // decides: exact, unless the pipeline is very large.
  std::optional<double> slope_quantum_watts = 0.0;
  // Whether energies are joules, which are never negative, or costs of any sign.
  bool costs_are_energies = true;
  // Shows the frontier of the paper's fit a exp(b t) + c of each table. Plans
  // and their lower bounds still come from the options themselves.
  bool exponential_fit = false;
  // Keep of the frontier's walk what plans begin from. False: the first plan walks again.
  bool keeps_walk = true;
  // Called while the frontier is walked, at least once: first with `estimate`. Not called after
  // Create().
  ProgressFunction progress = {};
};

// How to search for a plan.
struct PlanSpec {
  PlanConstraints constraints = {};
  double effort = 1;  // See perseus/effort.h.
  // Told of the first plan early (within some 5 % of the work), then of each better one, and called
  // now and then between. With a granularity it is called once, at the end. The first search with a
  // time margin walks the frontier again before it calls this; other threads wait for that.
  ProgressFunction progress = {};
};

// Computes the frontier of a pipeline once, then makes plans anywhere on it. A handle: copies are
// cheap and share everything, and references that it gives out are good until the last copy is
// gone. Besides the pipeline it keeps what searches begin from: at most 64 MiB for each of the last
// three time margins. Deterministic. Const members may be called from several threads at once. A
// moved-from planner may only be assigned or destroyed.
class Planner {
 public:
  // Errors: those of CostedPipeline::Validate(), negative energies; kOverflow if quantities do
  // not fit the integer arithmetic, for more than a million computations, and if the frontier is
  // expected to take over an hour or over 16 GiB; kCancelled.
  static Result<Planner> Create(CostedPipeline pipeline, const PlannerOptions& options);

  const CostedPipeline& pipeline() const;
  const Frontier& frontier() const;
  // The frontier of the measured options: no plan is below it. The same as frontier(), unless that
  // one is fitted.
  const Frontier& lower_bound() const;
  // Every computation at its highest clock: the origin of savings.
  const Plan& baseline() const;

  // The plan with these options, one for every computation: replays them and fills in all figures.
  // Errors: those of CheckOptions().
  Result<Plan> Evaluate(std::vector<CostOption> options,
                        Waiting waiting = Waiting::kSetClock) const;

  // The time a target means. kInfeasible when it lies below T_min.
  Result<double> TargetSeconds(const PlanTarget& target) const;

  // A plan that ends by `seconds`. Beyond T* it is the plan for T*, unless computations share knobs
  // and can use more time. More effort never gives a worse plan: one with
  // more energy over an iteration of `seconds`. docs/explanation/planning.md says what holds where
  // computations share knobs. Errors: kInfeasible below T_min or when the constraints cannot be met
  // in that time; kInvalidInput for numbers out of range, or a margin in
  // standard deviations where the profile states none.
  Result<Plan> PlanFor(double seconds, const PlanSpec& spec = {}) const;

  // Fills in plan->discrete_bound, which it proves block by block. An effort above 1 searches small
  // pipelines deeper. More effort never lowers the bound, and it is never below
  // plan->lower_bound_joules. Errors: another planner's plan; those of the integer arithmetic;
  // kInternal where the bound contradicts the plan.
  Result<void> AddDiscreteBound(Plan* plan, double effort = 1.0) const;

  // Plans for `count` (at least 2) evenly spaced times from the fastest to T*. A service needs them
  // to answer stragglers at once. No plan is worse than one for less time. Times that the
  // constraints leave no plan for are left out. spec.progress is told of every plan; false ends the
  // ladder there. Errors: those of PlanFor, where there is no plan at all.
  Result<std::vector<Plan>> Ladder(int count, const PlanSpec& spec = {}) const;

 private:
  struct Impl;
  explicit Planner(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// The content of plan.json for a plan of `planner`. Errors: another planner's plan.
Result<PlanDocument> MakePlanDocument(const Planner& planner, const Plan& plan,
                                      const PlanContext& context);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PLANNER_H_
