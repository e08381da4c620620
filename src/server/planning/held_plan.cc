// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/held_plan.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "perseus/emulator.h"
#include "perseus/robust_plan.h"
#include "plan/named_times.h"

namespace perseus::server {
namespace {

// Where the plans are, as shares of the way from maximum clocks to T*: close where most
// stragglers are. Each is a search of its own, so there are fewer than without conditions.
constexpr std::array kShares = {0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.55, 0.75, 1.0};
constexpr std::array kQuickShares = {0.0, 0.1, 0.3, 1.0};

static_assert(kShares.size() == kMostHeldLadderPlans);

// Without waiting, which lasts as long for every plan where something else decides when the
// iteration ends; with the price of changes, which the search counts.
double EffectiveJoules(const Job& job, const ExpectedFigures& expected) {
  return expected.energy_joules -
         job.pipeline.total_blocking_power_watts * expected.iteration_time_seconds +
         ConditionsOf(job.settings).change_joules * expected.clock_calls;
}

template <typename Shares>
std::vector<double> TimesOf(const Planner& planner, const Shares& shares) {
  const double base = planner.baseline().iteration_time_seconds;
  const double span = std::max(0.0, planner.frontier().tstar_seconds - base);
  std::vector<double> times;
  for (const double share : shares) {
    if (share == 0 || span > 0) times.push_back(base + share * span);
  }
  return times;
}

}  // namespace

Result<Plan> PlanThatHolds(const Job& job, const Planner& planner, double seconds, double effort,
                           const ProgressFunction& callback) {
  RobustPlanSpec spec = RobustSpecOf(job.settings);
  spec.effort = effort;
  spec.with_bound = false;
  Result<RobustPlan> robust = PlanUnder(planner, seconds, spec, callback);
  if (!robust) return tl::unexpected(robust.error());
  return std::move(robust->plan);
}

Result<std::vector<Plan>> LadderThatHolds(const Job& job, const Planner& planner, bool quick,
                                          double effort, const ProgressFunction& callback) {
  std::vector<Plan> plans;
  const auto times = quick ? TimesOf(planner, kQuickShares) : TimesOf(planner, kShares);
  for (std::size_t k = 0; k < times.size(); ++k) {
    // A search that is told to end gives what it has, which is of no use here.
    bool ended = false;
    const auto part = [&](const Progress& progress) {
      const double done =
          (static_cast<double>(k) + progress.share) / static_cast<double>(times.size());
      ended = ended || !callback({.share = done, .better = nullptr});
      return !ended;
    };
    Result<Plan> plan = PlanThatHolds(job, planner, times[k], effort, part);
    if (ended || !part({.share = 1, .better = nullptr})) {
      return MakeError(ErrorCode::kCancelled, "the search ended");
    }
    if (plan) {
      plans.push_back(*std::move(plan));
    } else if (plan.error().code != ErrorCode::kInfeasible) {
      return tl::unexpected(plan.error());
    }
  }
  return plans;
}

Result<HeldPlans> WithExpected(const Job& job, const Planner& planner, std::vector<Plan> plans,
                               const ProgressFunction& progress) {
  HeldPlans held;
  for (Plan& plan : plans) held.plans.push_back({std::move(plan), std::nullopt});
  if (!HasConditions(job.settings)) return held;
  std::vector<const Plan*> emulated = {&planner.baseline()};
  for (const HeldPlan& each : held.plans) emulated.push_back(&each.plan);
  const auto figures = EmulateUnder(planner, emulated,
                                    {.conditions = ConditionsOf(job.settings),
                                     .pipelines = job.DataParallel(),
                                     .progress = progress});
  if (!figures) return tl::unexpected(figures.error());
  held.baseline = figures->front();
  for (std::size_t k = 0; k < held.plans.size(); ++k) held.plans[k].expected = (*figures)[k + 1];
  return held;
}

void CarryForward(const Job& job, std::vector<HeldPlan>* plans) {
  if (plans->empty()) return;
  if (!plans->front().expected) {
    std::vector<Plan> bare;
    for (HeldPlan& held : *plans) bare.push_back(std::move(held.plan));
    perseus::plan::CarryForward(job.pipeline, &bare);
    for (std::size_t k = 0; k < plans->size(); ++k) (*plans)[k].plan = std::move(bare[k]);
    return;
  }
  for (std::size_t k = 1; k < plans->size(); ++k) {
    const HeldPlan& before = (*plans)[k - 1];
    HeldPlan& plan = (*plans)[k];
    if (EffectiveJoules(job, *plan.expected) <= EffectiveJoules(job, *before.expected)) continue;
    const double seconds = plan.plan.requested_time_seconds;
    plan = before;
    plan.plan.requested_time_seconds = seconds;
  }
}

}  // namespace perseus::server
