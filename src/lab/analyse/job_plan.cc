// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>
#include <vector>

#include "perseus/emulator.h"
#include "perseus/job.h"
#include "perseus/robust_plan.h"
#include "plan/named_times.h"

// A job's plan with all that its settings ask for. Here, as expected figures are emulated.
namespace perseus {
namespace {

// A search that is told to end gives what it has; who gave up wants none.
class Told {
 public:
  explicit Told(const PlanCallback& callback) : callback_(callback) {}

  bool operator()(const PlanProgress& now) {
    ended_ = ended_ || (callback_ && !callback_(now));
    return !ended_;
  }
  bool ended() const { return ended_; }

 private:
  const PlanCallback& callback_;
  bool ended_ = false;
};

tl::unexpected<Error> Cancelled() {
  return MakeError(ErrorCode::kCancelled, "the search for a plan was cancelled");
}

Result<void> Hold(double seconds, const JobPlanSpec& asked, Told* told, JobPlan* made) {
  RobustPlanSpec spec = RobustSpecOf(asked.settings);
  spec.with_bound = asked.with_bound;
  Result<RobustPlan> held = PlanUnder(made->planner, seconds, spec,
                                      [told](const PlanProgress& now) { return (*told)(now); });
  if (told->ended()) return Cancelled();
  if (!held) return tl::unexpected(held.error());
  std::vector<const Plan*> plans = {&held->plan};
  if (asked.with_bound) plans.push_back(&held->paper_plan);
  const auto expected =
      EmulateUnder(made->planner, plans, held->conditions, held->pipelines,
                   [told](double) { return (*told)({.share = 1, .better = nullptr}); });
  if (!expected) return tl::unexpected(expected.error());
  made->plan = held->plan;
  made->expected = expected->front();
  if (asked.with_bound) made->expected_of_paper_plan = expected->back();
  made->held = *std::move(held);
  return {};
}

}  // namespace

Result<JobPlan> MakeJobPlan(const Job& job, const Planner& planner, const JobPlanSpec& spec) {
  const PlanTarget target = spec.settings.at.value_or(PlanTarget{});
  const Result<double> seconds = planner.TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  JobPlan made = {.planner = planner};
  Told told(spec.callback);
  const PlanConstraints constraints = ConstraintsOf(spec.settings);
  if (HasConditions(spec.settings)) {
    if (auto good = Hold(*seconds, spec, &told, &made); !good) return tl::unexpected(good.error());
  } else {
    const PlanCallback callback = [&told](const PlanProgress& now) { return told(now); };
    Result<Plan> plan = plan::PlanAmongNamed(
        planner, *seconds, constraints, spec.settings.effort.value_or(1),
        spec.callback ? callback : PlanCallback(), target.kind == PlanTarget::Kind::kEconomic);
    if (!plan) return tl::unexpected(plan.error());
    made.plan = *std::move(plan);
  }
  Result<PlanDocument> document = job.Document(planner, made.plan, constraints);
  if (!document) return tl::unexpected(document.error());
  made.document = *std::move(document);
  if (made.held) made.document.conditions = made.held->conditions;
  made.document.expected = made.expected;
  return made;
}

Result<JobPlan> Job::Plan(const Planner& planner, const PlanCallback& callback) const {
  return MakeJobPlan(*this, planner, {.settings = settings, .callback = callback});
}

Result<perseus::Plan> Job::MakePlan(const Planner& planner) const {
  Result<JobPlan> made = MakeJobPlan(*this, planner, {.settings = settings, .with_bound = false});
  if (!made) return tl::unexpected(made.error());
  return std::move(made->plan);
}

Result<JobPlan> Job::Plan() const {
  const Result<Planner> planner = MakePlanner();
  if (!planner) return tl::unexpected(planner.error());
  return Plan(*planner);
}

}  // namespace perseus
