// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STREAM_H_
#define PERSEUS_STREAM_H_

// Link perseus::core (pkg-config: perseus-core).

#include <memory>
#include <optional>

#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/progress.h"
#include "perseus/result.h"
#include "perseus/work.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

struct StreamOptions {
  // Of every iteration. A factor is of the iteration's own time at maximum clocks.
  PlanTarget target = {};
  PlanConstraints constraints = {};
  // Of the search for each plan. Without a value it is kStreamEffort, and in proportion to the
  // computations beyond 128: about 20 ms of CPU for 4 stages x 16 microbatches and 0.1 s for 8
  // x 32.
  std::optional<double> effort = {};
};

// The plan of one iteration.
struct StreamPlan {
  Plan plan = {};
  // Has the iteration's frontier, its pipeline (each computation with its own options) and its
  // baseline.
  Planner planner;
};

// Plans for iterations whose microbatches differ, each time in another way: every iteration gets a
// frontier and a plan of its own. The DAG and the profile are shared by all.
//
// A plan depends on the lengths of its iteration alone. So every rank that plans for itself gets
// the same one, whatever it has missed before. A handle: copies are cheap and share everything.
// Const members may be called from several threads at once.
class StreamPlanner {
 public:
  // Errors: those of CostPipeline. `costs.work` is not looked at.
  static Result<StreamPlanner> Create(Profile profile, PipelineDag dag, CostSpec costs,
                                      const StreamOptions& options);
  // The same planner with other options.
  StreamPlanner With(const StreamOptions& options) const;

  // The plan of an iteration with these lengths. `progress` as in PlanSpec. Errors: those of
  // CostPipeline (factors out of range, more microbatches than there are), Planner::Create and
  // Planner::PlanFor.
  Result<StreamPlan> PlanFor(const Work& work, const ProgressFunction& progress = {}) const;

  // The same if another pipeline is slower, so that the iteration lasts `seconds` anyway. Less than
  // the target's time does not count.
  Result<StreamPlan> PlanFor(const Work& work, double seconds,
                             const ProgressFunction& progress = {}) const;

  // How long an iteration with these lengths takes at the target of options(). Pipelines that wait
  // for this one need to know it. Quick: there is no search, and for targets of at least 1.0x no
  // frontier. Errors: those of PlanFor().
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

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_STREAM_H_
