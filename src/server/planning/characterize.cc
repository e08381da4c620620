// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/characterize.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "perseus/effort.h"
#include "server/planning/curve.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

// Shares of a full search. The quick ladder takes the relaxation's result with hardly a search,
// 0.02 % above the second one: 200 jobs that come at once have their first plans soon.
constexpr double kQuickLadderEffort = 0.0001;
constexpr double kQuickPlanEffort = 0.01;
// Each plan of a ladder under conditions takes many replays: the least that the search does.
constexpr double kHeldLadderEffort = 1.0 / 64;

// Progress when the plan for the target is there, and when all plans are.
constexpr double kDoneWithTarget = 0.4;
constexpr double kDoneWithSearch = 0.9;

tl::unexpected<Error> Cancelled() { return MakeError(ErrorCode::kCancelled, "the search ended"); }

}  // namespace

Result<void> Characterizer::MakePlanner() {
  if (planner_) return {};
  PlannerOptions options = job_->SolverOptions();
  options.progress = [this](const Progress&) { return keep_going_(0); };
  Result<Planner> planner = Planner::Create(job_->pipeline, options);
  if (!planner) return tl::unexpected(planner.error());
  planner_ = *std::move(planner);
  return keep_going_(0) ? Result<void>() : Cancelled();
}

ProgressFunction Characterizer::Told(double from, double to) const {
  return [this, from, to](const Progress& progress) {
    return keep_going_(from + (to - from) * progress.share);
  };
}

Result<HeldPlans> Characterizer::Expected(std::vector<Plan> plans) {
  return WithExpected(*job_, *planner_, std::move(plans), [this](const Progress& now) {
    return keep_going_(kDoneWithSearch + (1 - kDoneWithSearch) * now.share);
  });
}

Result<Plan> Characterizer::PlanAt(double seconds, double effort, double done_then) {
  const ProgressFunction callback = Told(0, done_then);
  if (HasConditions(job_->settings)) {
    return MakeRobustPlan(*job_, *planner_, seconds, effort, callback);
  }
  return planner_->PlanFor(
      seconds, {.constraints = job_->Constraints(), .effort = effort, .progress = callback});
}

Result<RobustSummary> Characterizer::For(const PlanTarget& target) {
  if (auto made = MakePlanner(); !made) return tl::unexpected(made.error());
  const Result<double> seconds = planner_->TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  Result<Plan> plan = PlanAt(*seconds, job_->Effort(), kDoneWithSearch);
  if (!keep_going_(kDoneWithSearch)) return Cancelled();
  if (!plan) return tl::unexpected(plan.error());
  std::vector<Plan> plans;
  plans.push_back(*std::move(plan));
  Result<HeldPlans> held = Expected(std::move(plans));
  if (!held) return tl::unexpected(held.error());
  if (!keep_going_(1)) return Cancelled();
  return std::move(held->plans.front());
}

Result<std::vector<Plan>> Characterizer::LadderOf(bool quick) {
  const ProgressFunction callback = Told(kDoneWithTarget, kDoneWithSearch);
  const double effort = job_->Effort();
  if (HasConditions(job_->settings)) {
    return LadderThatHolds(*job_, *planner_, quick, kHeldLadderEffort * effort, callback);
  }
  const PlanConstraints constraints = job_->Constraints();
  return planner_->Ladder(kLadderPlans,
                          {.constraints = constraints,
                           .effort = (quick ? kQuickLadderEffort : kLadderEffort) * effort,
                           .progress = callback});
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
  const bool quick = revision == 1;
  Result<Plan> plan =
      PlanAt(*seconds, (quick ? kQuickPlanEffort : 1) * job_->Effort(), kDoneWithTarget);
  if (!keep_going_(kDoneWithTarget)) return Cancelled();
  // Late clocks and noise may leave no plan for this time, but for others.
  const bool has_none =
      !plan && plan.error().code == ErrorCode::kInfeasible && HasConditions(job_->settings);
  if (!plan && !has_none) return tl::unexpected(plan.error());
  Result<std::vector<Plan>> plans = LadderOf(quick);
  if (!plans) return tl::unexpected(plans.error());
  if (!keep_going_(kDoneWithSearch)) return Cancelled();
  if (plans->empty() && !plan) return tl::unexpected(plan.error());
  if (plan) {
    const auto at =
        std::upper_bound(plans->begin(), plans->end(), *plan, [](const Plan& a, const Plan& b) {
          return a.requested_time_seconds < b.requested_time_seconds;
        });
    plans->insert(at, *std::move(plan));
  }
  Result<HeldPlans> held = Expected(*std::move(plans));
  if (!held) return tl::unexpected(held.error());
  if (!keep_going_(1)) return Cancelled();
  CarryForward(*job_, &held->plans);
  return MakeCurveRecord(id_, revision, PlanTargetText(target), planner_->frontier(), *held,
                         first_id);
}

}  // namespace perseus::server
