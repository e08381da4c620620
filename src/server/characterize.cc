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

// A ladder under conditions has fewer plans, but each takes many replays.
constexpr double kQuickHeldLadderEffort = 0.005;
constexpr double kHeldLadderEffort = 0.05;

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

Result<Plan> Characterizer::PlanAt(double seconds, double effort) {
  const PlanCallback callback = [&](const PlanProgress& progress) {
    return keep_going_(progress.share);
  };
  if (HasConditions(job_->settings)) {
    return PlanThatHolds(*job_, *planner_, seconds, effort, callback);
  }
  return planner_->PlanFor(seconds, job_->Constraints(), effort, callback);
}

Result<HeldPlan> Characterizer::For(const PlanTarget& target) {
  if (auto made = MakePlanner(); !made) return tl::unexpected(made.error());
  const Result<double> seconds = planner_->TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  Result<Plan> plan = PlanAt(*seconds, job_->Effort());
  if (!keep_going_(1)) return Cancelled();
  if (!plan) return tl::unexpected(plan.error());
  std::vector<Plan> plans;
  plans.push_back(*std::move(plan));
  Result<HeldPlans> held = WithExpected(*job_, *planner_, std::move(plans));
  if (!held) return tl::unexpected(held.error());
  return std::move(held->plans.front());
}

Result<std::vector<Plan>> Characterizer::LadderOf(bool quick) {
  const PlanCallback callback = [&](const PlanProgress& progress) {
    return keep_going_(progress.share);
  };
  const double effort = job_->Effort();
  if (HasConditions(job_->settings)) {
    return LadderThatHolds(*job_, *planner_, quick,
                           (quick ? kQuickHeldLadderEffort : kHeldLadderEffort) * effort, callback);
  }
  return planner_->Ladder(kLadderPlans, job_->Constraints(),
                          (quick ? kQuickLadderEffort : kLadderEffort) * effort, callback);
}

Result<store::CurveRecord> Characterizer::Ladder(const PlanTarget& target, int revision,
                                                 std::int64_t first_id) {
  if (auto made = MakePlanner(); !made) return tl::unexpected(made.error());
  const double base_seconds = planner_->baseline().iteration_time_seconds;
  Result<double> seconds = planner_->TargetSeconds(target);
  // Set before the frontier was known; the ladder is good for any other target.
  if (!seconds && seconds.error().code == ErrorCode::kInfeasible) {
    seconds = planner_->TargetSeconds({.kind = PlanTarget::Kind::kFastest});
  }
  if (!seconds) return tl::unexpected(seconds.error());
  const bool quick = revision == 1;
  const double effort = (quick ? kQuickPlanEffort : 1) * job_->Effort();
  Result<Plan> plan = PlanAt(*seconds, effort);
  // Faster than maximum clocks may be more than late clocks and noise allow.
  if (!plan && plan.error().code == ErrorCode::kInfeasible && HasConditions(job_->settings) &&
      *seconds < base_seconds) {
    plan = PlanAt(base_seconds, effort);
  }
  if (!plan) return tl::unexpected(plan.error());
  Result<std::vector<Plan>> plans = LadderOf(quick);
  if (!plans) return tl::unexpected(plans.error());
  if (!keep_going_(1)) return Cancelled();
  const auto at =
      std::upper_bound(plans->begin(), plans->end(), *plan, [](const Plan& a, const Plan& b) {
        return a.requested_time_seconds < b.requested_time_seconds;
      });
  plans->insert(at, *std::move(plan));
  Result<HeldPlans> held = WithExpected(*job_, *planner_, *std::move(plans));
  if (!held) return tl::unexpected(held.error());
  CarryForward(planner_->pipeline(), &held->plans);
  return MakeCurveRecord(id_, revision, PlanTargetText(target), planner_->frontier(), *held,
                         first_id);
}

}  // namespace perseus::server
