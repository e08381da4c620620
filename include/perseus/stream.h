// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STREAM_H_
#define PERSEUS_STREAM_H_

#include <memory>
#include <optional>

#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "perseus/work.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {

struct StreamOptions {
  // Of every iteration; factors are of its own all-maximum-clock time.
  PlanTarget target;
  PlanConstraints constraints;
  // Of the search for each plan, as in Planner::PlanFor. Without: as much as a plan that is
  // used once is worth, about 20 ms of CPU for 4 stages x 16 microbatches and 0.1 s for 8 x 32.
  std::optional<double> effort = {};
};

// The plan of one iteration.
struct StreamPlan {
  Plan plan;
  // Its frontier, its pipeline (each computation with its own options) and its
  // all-maximum-clock run.
  Planner planner;
};

// Plans for a stream of iterations whose microbatches differ, and differ anew in
// each: a frontier and a plan for every one. What all have in common is made once:
// the DAG, and the profile as ranks run it.
//
// A plan depends on its own lengths alone, never on those before: every rank that
// plans for itself comes to the same one, whatever it has missed. A handle: copies are cheap
// and share everything. Const members may be called from several threads at once.
class StreamPlanner {
 public:
  // Errors: those of CostPipeline. `costs.work` is not looked at.
  static Result<StreamPlanner> Create(Profile profile, PipelineDag dag, CostSpec costs,
                                      const StreamOptions& options);
  // The same planner with other options.
  StreamPlanner With(const StreamOptions& options) const;

  // The plan of an iteration with these lengths. The callback sees each better
  // plan, and may end the search with the best so far. Errors: those of CostPipeline (factors out
  // of range, more microbatches than there are), Planner::Create and Planner::PlanFor.
  Result<StreamPlan> PlanFor(const Work& work, const PlanCallback& callback = {}) const;

  // The same where the iteration lasts `seconds` whatever this pipeline does (another one is
  // slower); at least the target's time.
  Result<StreamPlan> PlanFor(const Work& work, double seconds,
                             const PlanCallback& callback = {}) const;

  // How long an iteration with these lengths takes at the target of options(), planned alone:
  // what pipelines that wait for this one must know of it. No search, and for targets of at least
  // 1.0x no frontier. Errors: those of PlanFor.
  Result<double> TargetSeconds(const Work& work) const;

  // The pipeline of an iteration with these lengths.
  Result<CostedPipeline> Cost(const Work& work) const;

  const PipelineDag& dag() const;
  const StreamOptions& options() const { return options_; }

 private:
  struct Impl;
  StreamPlanner(std::shared_ptr<const Impl> impl, const StreamOptions& options);
  std::shared_ptr<const Impl> impl_;
  StreamOptions options_;
};

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_STREAM_H_
