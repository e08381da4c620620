// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/stream.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "perseus/effort.h"
#include "perseus/pipeline.h"

namespace perseus {
inline namespace v0 {
namespace {

// kStreamEffort is for so many computations.
constexpr double kComputations = 128;

PlannerOptions Solver() {
  PlannerOptions solver;
  solver.slope_quantum_watts = {};  // Exact, unless it is too large.
  return solver;
}

}  // namespace

struct StreamPlanner::Impl {
  Profile profile;
  PipelineDag dag;
  CostSpec costs;
};

StreamPlanner::StreamPlanner(std::shared_ptr<const Impl> impl, const StreamOptions& options)
    : impl_(std::move(impl)), options_(options) {
  if (!options_.effort) {
    options_.effort =
        kStreamEffort * std::clamp(impl_->dag.size() / kComputations, 1.0, 1 / kStreamEffort);
  }
}

const PipelineDag& StreamPlanner::dag() const { return impl_->dag; }

StreamPlanner StreamPlanner::With(const StreamOptions& options) const { return {impl_, options}; }

Result<StreamPlanner> StreamPlanner::Create(Profile profile, PipelineDag dag, CostSpec costs,
                                            const StreamOptions& options) {
  costs.work = Work();
  costs.waiting_is_constant = true;  // Plans of single steps set clocks for computations only.
  if (auto good = CostPipeline(profile, dag, costs); !good) return tl::unexpected(good.error());
  auto impl = std::make_shared<Impl>();
  impl->profile = std::move(profile);
  impl->dag = std::move(dag);
  impl->costs = std::move(costs);
  return StreamPlanner(std::move(impl), options);
}

Result<CostedPipeline> StreamPlanner::Cost(const Work& work) const {
  CostSpec costs = impl_->costs;
  costs.work = work;
  return CostPipeline(impl_->profile, impl_->dag, costs);
}

Result<StreamPlan> StreamPlanner::PlanFor(const Work& work,
                                          const ProgressFunction& progress) const {
  return PlanFor(work, 0, progress);
}

Result<StreamPlan> StreamPlanner::PlanFor(const Work& work, double seconds,
                                          const ProgressFunction& progress) const {
  Result<CostedPipeline> pipeline = Cost(work);
  if (!pipeline) return tl::unexpected(pipeline.error());
  Result<Planner> planner = Planner::Create(*std::move(pipeline), Solver());
  if (!planner) return tl::unexpected(planner.error());
  const Result<double> target = planner->TargetSeconds(options_.target);
  if (!target) return tl::unexpected(target.error());
  Result<Plan> plan = planner->PlanFor(
      std::max(seconds, *target),
      {.constraints = options_.constraints, .effort = *options_.effort, .progress = progress});
  if (!plan) return tl::unexpected(plan.error());
  return StreamPlan{.plan = *std::move(plan), .planner = *std::move(planner)};
}

Result<double> StreamPlanner::TargetSeconds(const Work& work) const {
  Result<CostedPipeline> pipeline = Cost(work);
  if (!pipeline) return tl::unexpected(pipeline.error());
  const PlanTarget& target = options_.target;
  if (target.kind == PlanTarget::Kind::kBaselineFactor && target.value >= 1) {
    std::vector<double> durations;
    durations.reserve(pipeline->table_of.size());
    for (const int table : pipeline->table_of) {
      durations.push_back(pipeline->tables[table].baseline.time_seconds);
    }
    return target.value * Replay(pipeline->dag, durations).iteration_time_seconds;
  }
  const Result<Planner> planner = Planner::Create(*std::move(pipeline), Solver());
  if (!planner) return tl::unexpected(planner.error());
  return planner->TargetSeconds(target);
}

}  // namespace v0
}  // namespace perseus
