// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <utility>
#include <vector>

#include "perseus/emulator.h"
#include "perseus/job.h"
#include "perseus/robust_plan.h"
#include "plan/named_times.h"
#include "plan/told.h"

// A job's plan with all that its settings ask for. Here, as expected figures are emulated.
namespace perseus {
inline namespace v0 {
namespace {

Result<void> Hold(double seconds, const JobPlanSpec& asked, plan::Told* told, JobPlan* made) {
  RobustPlanSpec spec = RobustSpecOf(asked.settings);
  spec.with_bound = asked.with_bound;
  Result<RobustPlan> held = PlanUnder(made->planner, seconds, spec, told->Function());
  if (told->stopped()) return plan::SearchCancelled();
  if (!held) return tl::unexpected(held.error());
  std::vector<const Plan*> plans = {&held->plan};
  if (asked.with_bound) plans.push_back(&held->paper_plan);
  const auto expected =
      EmulateUnder(made->planner, plans,
                   {.conditions = held->conditions,
                    .pipelines = held->pipelines,
                    .progress = [told](const Progress&) { return (*told)({.share = 1}); }});
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
  plan::Told told(spec.progress);
  const PlanConstraints constraints = ConstraintsOf(spec.settings);
  if (HasConditions(spec.settings)) {
    if (auto good = Hold(*seconds, spec, &told, &made); !good) return tl::unexpected(good.error());
  } else {
    Result<Plan> plan =
        plan::PlanAmongNamed(planner, *seconds, constraints, spec.settings.effort.value_or(1),
                             told.Function(), target.kind == PlanTarget::Kind::kMinEnergy);
    if (!plan) return tl::unexpected(plan.error());
    made.plan = *std::move(plan);
  }
  Result<PlanDocument> document = job.Document(planner, made.plan, constraints);
  if (!document) return tl::unexpected(document.error());
  made.document = *std::move(document);
  made.plan.saving_interval = made.document.saving_interval;
  made.plan.default_clocks = made.document.default_clocks;
  if (made.held) made.document.conditions = made.held->conditions;
  made.document.expected = made.expected;
  return made;
}

Result<JobPlan> Job::Plan(const Planner& planner, const ProgressFunction& progress) const {
  return MakeJobPlan(*this, planner, {.settings = settings, .progress = progress});
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

}  // namespace v0
}  // namespace perseus
