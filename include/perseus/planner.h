// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLANNER_H_
#define PERSEUS_PLANNER_H_

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
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

// Errors: a stage or type that the schedule needs and the profile lacks, a
// wrong number of blocking powers, numbers out of range.
Result<CostedPipeline> CostPipeline(const Profile& profile, PipelineDag dag, const CostSpec& spec);

// Called now and then with a share of the work done (0..1).
using ProgressFunction = std::function<void(double)>;

struct PlannerOptions {
  // Solve with slopes rounded to multiples of this many watts (certified
  // coarse mode). 0: exact. Negative: exact, unless the pipeline is so large
  // that coarse is advised, and the coarser the longer it would take.
  double slope_quantum_watts = 0;
  // Whether energies are joules, which are never negative, or costs of any sign.
  bool costs_are_energies = true;
  // Shows the frontier of the paper's fit a exp(b t) + c of each table. Plans
  // and their lower bounds still come from the options themselves.
  bool exponential_fit = false;
  // Called while the frontier is walked.
  ProgressFunction progress;
  // Asked about as often, and at least once; true gives up with kCancelled. Not
  // asked after Create(). Must not throw.
  std::function<bool()> cancelled;
  // Called once before, with what that is expected to take.
  std::function<void(const FrontierEstimate&)> estimated;
};

// What a search for a plan tells while it runs.
struct PlanProgress {
  double share = 0;  // Of the work, 0..1.
  // A plan that is better than any before, during the call; else nullptr.
  const Plan* better = nullptr;
};
// Called with the first plan early (within some 5 % of the work), then with
// each better one and now and then between. False ends the search: its result is the
// best plan so far. Where computations share knobs it is called once, at the end; with
// max_knobs now and then, and told of a plan only at the end. The first plan for a time margin
// walks the frontier before; that does not call, and other threads wait for it. Must not throw.
using PlanCallback = std::function<bool(const PlanProgress&)>;

// Computes the frontier of a pipeline once, then makes plans anywhere on it. A
// handle: copies are cheap and share the pipeline, the frontier and the walks
// of it that plans start from (those of the last three time margins, each with
// at most 64 MiB besides its network), and what they refer to lives as long as
// the last copy. Deterministic. Const members may be called from several
// threads at once. A moved-from planner may only be assigned or destroyed.
class Planner {
 public:
  // Errors: those of CostedPipeline::Validate(), negative energies; kOverflow when quantities do
  // not fit the integer arithmetic, for more than a million computations, or where the frontier is
  // expected to take over an hour or over 16 GiB; kCancelled where the options say so.
  static Result<Planner> Create(CostedPipeline pipeline, const PlannerOptions& options);

  const CostedPipeline& pipeline() const;
  const Frontier& frontier() const;
  // The frontier of the options themselves, below which no plan can be; the
  // same as frontier() unless that one is fitted.
  const Frontier& lower_bound() const;
  // Every computation at its highest clock: the origin of savings.
  const Plan& baseline() const;

  // The figures of a plan made elsewhere, one option for every computation:
  // time and energy as replayed, certificate, saving. Errors: those of CheckOptions().
  Result<Plan> Evaluate(std::vector<CostOption> options) const;

  // The time a target means. kInfeasible when it lies below T_min.
  Result<double> TargetSeconds(const PlanTarget& target) const;

  // A plan that ends by `seconds`. For more than T* it is the one for T*,
  // unless shared knobs have a use for more time. `effort` scales the work of
  // the search, which is cut there: 1 for a plan that will be used (about a
  // second of CPU up to 8 stages x 96 microbatches, in proportion to the
  // computations beyond), 0.2 for a row of a table. The search itself does not
  // depend on it, so that more effort never gives a worse plan: one with more
  // energy over an iteration of `seconds`. docs/explanation/planning.md says what holds where
  // computations share knobs. Errors: kInfeasible below T_min or when the constraints cannot be met
  // in that time; kInvalidInput for numbers out of range, or a margin in
  // standard deviations where the profile states none.
  Result<Plan> PlanFor(double seconds, const PlanConstraints& constraints = {}, double effort = 1.0,
                       const PlanCallback& callback = {}) const;

  // Fills in plan->discrete_bound: the certificate without the relaxation's
  // mixtures, proven block by block. `effort` 1 is about a second of CPU up to 8 stages x
  // 96 microbatches, in proportion beyond; more than 1 searches small pipelines deeper, and more
  // effort never lowers it. Never below
  // plan->lower_bound_joules. Errors: another planner's plan; those
  // of the integer arithmetic; kInternal where the bound contradicts the plan.
  Result<void> AddDiscreteBound(Plan* plan, double effort = 1.0) const;

  // Plans for `count` (at least 2) evenly spaced times from the fastest to T*:
  // what a service needs that answers stragglers. No plan is worse than one for
  // less time. Times that the constraints leave no plan for are
  // left out. The callback gets every plan; false ends the ladder there.
  // Errors: those of PlanFor, where there is no plan at all.
  Result<std::vector<Plan>> Ladder(int count, const PlanConstraints& constraints = {},
                                   double effort = 1.0, const PlanCallback& callback = {}) const;

 private:
  struct Impl;
  explicit Planner(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// What plan.json says of a plan of `planner`. Errors: another planner's plan.
Result<PlanDocument> MakePlanDocument(const Planner& planner, const Plan& plan,
                                      const PlanContext& context);

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PLANNER_H_
