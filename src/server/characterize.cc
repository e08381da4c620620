// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/characterize.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/curve.h"
#include "server/job_spec.h"

namespace perseus::server {
namespace {

// Shares of a full search. The quick ladder is there within a second or two for
// the largest jobs that are common; the second one uses what a plan is worth.
constexpr double kQuickLadderEffort = 0.01;
constexpr double kQuickPlanEffort = 0.05;
constexpr double kLadderEffort = 0.15;

tl::unexpected<Error> Cancelled() { return MakeError(ErrorCode::kCancelled, "the search ended"); }

}  // namespace

Result<void> Characterizer::MakePlanner() {
  if (planner_) return {};
  PlannerOptions options = job_->SolverOptions();
  options.cancelled = [this] { return !keep_going_(0); };
  Result<Planner> planner = Planner::Create(job_->pipeline, options);
  if (!planner) return tl::unexpected(planner.error());
  planner_ = *std::move(planner);
  return keep_going_(0) ? Result<void>() : Cancelled();
}

Result<Plan> Characterizer::For(const PlanTarget& target) {
  if (auto made = MakePlanner(); !made) return tl::unexpected(made.error());
  const Result<double> seconds = planner_->TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  Result<Plan> plan =
      planner_->PlanFor(*seconds, job_->Constraints(), job_->Effort(),
                        [&](const PlanProgress& progress) { return keep_going_(progress.share); });
  return keep_going_(1) ? std::move(plan) : Cancelled();
}

Result<store::CurveRecord> Characterizer::Ladder(const PlanTarget& target, int revision,
                                                 std::int64_t first_id) {
  if (auto made = MakePlanner(); !made) return tl::unexpected(made.error());
  Result<double> seconds = planner_->TargetSeconds(target);
  // Set before the frontier was known; the ladder is good for any other target.
  if (!seconds && seconds.error().code == ErrorCode::kInfeasible) {
    seconds = planner_->TargetSeconds({.kind = PlanTarget::Kind::kFastest});
  }
  if (!seconds) return tl::unexpected(seconds.error());
  const PlanCallback callback = [&](const PlanProgress& progress) {
    return keep_going_(progress.share);
  };
  const bool quick = revision == 1;
  const double effort = job_->Effort();
  Result<Plan> plan = planner_->PlanFor(*seconds, job_->Constraints(),
                                        quick ? kQuickPlanEffort * effort : effort, callback);
  if (!plan) return tl::unexpected(plan.error());
  Result<std::vector<Plan>> plans =
      planner_->Ladder(kLadderPlans, job_->Constraints(),
                       (quick ? kQuickLadderEffort : kLadderEffort) * effort, callback);
  if (!plans) return tl::unexpected(plans.error());
  if (!keep_going_(1)) return Cancelled();
  const auto at =
      std::upper_bound(plans->begin(), plans->end(), *plan, [](const Plan& a, const Plan& b) {
        return a.requested_time_seconds < b.requested_time_seconds;
      });
  plans->insert(at, *std::move(plan));
  CarryForward(planner_->pipeline(), &*plans);
  return MakeCurveRecord(id_, revision, PlanTargetText(target), planner_->frontier(), *plans,
                         first_id);
}

}  // namespace perseus::server
