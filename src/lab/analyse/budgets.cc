// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "perseus/analysis.h"
#include "plan/told.h"

namespace perseus {
inline namespace v0 {
namespace {

// Plans that are made to find the fastest one within a budget.
constexpr int kMostTries = 12;
// How near to the budget, or to a time that is too short, is near enough.
constexpr double kNearEnough = 1e-3;
// Where to try next: by so much less power than seems enough.
constexpr double kPowerStep = 1e-4;

// The shortest time at which the frontier's mean power is at most `watts`;
// nullopt where it never is. E(T) - watts T is convex, and linear in between.
std::optional<double> FirstTimeWithin(const Frontier& bound, double blocking_watts, double watts) {
  const auto excess = [watts](const FrontierPoint& point) {
    return point.energy_joules - watts * point.iteration_time_seconds;
  };
  const auto& points = bound.points;
  if (excess(points.front()) <= 0) return points.front().iteration_time_seconds;
  for (std::size_t k = 1; k < points.size(); ++k) {
    const double before = excess(points[k - 1]);
    const double after = excess(points[k]);
    if (after > 0) continue;
    const double from = points[k - 1].iteration_time_seconds;
    return from + (points[k].iteration_time_seconds - from) * (before / (before - after));
  }
  // From here on only waiting is added.
  if (watts <= blocking_watts) return std::nullopt;
  const FrontierPoint& last = points.back();
  const double seconds = last.iteration_time_seconds + excess(last) / (watts - blocking_watts);
  if (!std::isfinite(seconds)) return std::nullopt;
  return seconds;
}

double LeastWatts(const Frontier& bound, double blocking_watts) {
  double least = blocking_watts;  // What an endless wait comes down to.
  for (const FrontierPoint& point : bound.points) {
    least = std::min(least, point.energy_joules / point.iteration_time_seconds);
  }
  return least;
}

// How long the pipeline must wait after a plan until its mean power is down to
// `watts`. Precondition: it draws less than that while it waits.
double WaitSeconds(const Plan& plan, double blocking_watts, double watts) {
  const double excess_joules = plan.energy_joules - watts * plan.iteration_time_seconds;
  return excess_joules / (watts - blocking_watts);
}

// `plan`, followed by that wait.
Plan WithWait(const Planner& planner, Plan plan, double watts) {
  const double blocking_watts = planner.pipeline().total_blocking_power_watts;
  const double wait_seconds = WaitSeconds(plan, blocking_watts, watts);
  plan.iteration_time_seconds += wait_seconds;
  plan.energy_joules += blocking_watts * wait_seconds;
  plan.requested_time_seconds = plan.iteration_time_seconds;
  const Frontier& bound = planner.lower_bound();
  plan.lower_bound_joules =
      bound.EnergyAt(plan.iteration_time_seconds) * (1 - bound.certified_error);
  plan.gap_percent = 0;
  if (plan.lower_bound_joules > 0) {
    plan.gap_percent = std::max(0.0, 100 * (plan.energy_joules / plan.lower_bound_joules - 1));
  }
  plan.shared_knobs.reset();  // It is one for less time.
  const double baseline = planner.baseline().energy_joules;
  plan.saving_percent = baseline > 0 ? 100 * (baseline - plan.energy_joules) / baseline : 0;
  // Not energy / time, which rounding may leave above the budget.
  plan.average_power_watts = watts;
  return plan;
}

// The plan for `seconds`; where constraints leave none so fast, that of the
// baseline's time, which they allow if they allow anything.
Result<Plan> PlanOrBaselineTime(const Planner& planner, double seconds, const PlanSpec& spec) {
  Result<Plan> plan = planner.PlanFor(seconds, spec);
  const double baseline_seconds = planner.baseline().iteration_time_seconds;
  if (plan || plan.error().code != ErrorCode::kInfeasible || seconds >= baseline_seconds) {
    return plan;
  }
  return planner.PlanFor(baseline_seconds, spec);
}

// The shortest plan with at most so many watts. A plan lies a little above the
// bound, and one with constraints lies far above it, so its time is found by
// trying: first up from the bound's, then between too short and long enough.
class PowerSearch {
 public:
  PowerSearch(const Planner& planner, double watts, const PlanSpec& spec)
      : planner_(planner),
        bound_(planner.lower_bound()),
        blocking_watts_(planner.pipeline().total_blocking_power_watts),
        watts_(watts),
        constraints_(spec.constraints),
        effort_(spec.effort),
        told_(spec.progress) {}

  Result<Plan> Run() {
    const std::optional<double> first = FirstTimeWithin(bound_, blocking_watts_, watts_);
    if (!first) return TooFrugal(LeastWatts(bound_, blocking_watts_));
    double seconds = std::max(*first, planner_.frontier().fastest_seconds);
    double aim_watts = watts_;
    for (int tries = 0; tries < kMostTries; ++tries) {
      Result<Plan> plan = PlanOrBaselineTime(
          planner_, seconds,
          {.constraints = constraints_, .effort = effort_, .progress = told_.Function()});
      if (told_.stopped()) return plan::SearchCancelled();
      if (!plan) return plan;
      const double plan_watts = plan->average_power_watts;
      std::optional<Plan>& side = plan_watts <= watts_ ? within_ : above_;
      side = *std::move(plan);
      if (within_) {
        if (!above_ || NearEnough()) break;
        seconds = Between();
        continue;
      }
      if (seconds >= bound_.tstar_seconds) {
        // Only constraints can have a use for more time than that, and for no
        // more than a wait would take.
        const double waited = constraints_.any() ? SecondsWithWait() : seconds;
        if (waited <= (1 + kNearEnough) * seconds) break;
        seconds = waited;
        continue;
      }
      aim_watts *= (1 - kPowerStep) * watts_ / plan_watts;
      const auto next = FirstTimeWithin(bound_, blocking_watts_, aim_watts);
      seconds = std::min(next.value_or(bound_.tstar_seconds), bound_.tstar_seconds);
    }
    if (within_) return *std::move(within_);
    if (watts_ <= blocking_watts_) return TooFrugal(above_->average_power_watts);
    return WithWait(planner_, *std::move(above_), watts_);
  }

 private:
  tl::unexpected<Error> TooFrugal(double least_watts) const {
    const CostedPipeline& pipeline = planner_.pipeline();
    return MakeError(
        ErrorCode::kInfeasible,
        fmt::format("no plan draws as little as {:.6g} W: the GPUs of one pipeline ({} x {}) draw "
                    "at least {:.6g} W however slow it is, and {:.6g} W while they only wait; give "
                    "it more",
                    watts_, pipeline.dag.num_ranks, pipeline.tensor_parallel, least_watts,
                    blocking_watts_));
  }

  // Of the plan that draws too much and the wait that makes up for it; 0 where
  // none does.
  double SecondsWithWait() const {
    if (watts_ <= blocking_watts_) return 0;
    return above_->iteration_time_seconds + WaitSeconds(*above_, blocking_watts_, watts_);
  }

  bool NearEnough() const {
    return within_->average_power_watts >= (1 - kNearEnough) * watts_ ||
           within_->requested_time_seconds <= (1 + kNearEnough) * above_->requested_time_seconds;
  }

  // A time between the two, nearer to the one whose power is nearer.
  double Between() const {
    constexpr double kAside = 0.1;  // Never so near to an end that nothing is learnt.
    const double share = (above_->average_power_watts - watts_) /
                         (above_->average_power_watts - within_->average_power_watts);
    const double from = above_->requested_time_seconds;
    return from + (within_->requested_time_seconds - from) * std::clamp(share, kAside, 1 - kAside);
  }

  const Planner& planner_;
  const Frontier& bound_;
  double blocking_watts_;
  double watts_;
  const PlanConstraints& constraints_;
  double effort_;
  plan::Told told_;
  std::optional<Plan> above_;   // The longest that draws too much.
  std::optional<Plan> within_;  // The shortest that does not.
};

}  // namespace

Result<Plan> FastestWithinPower(const Planner& planner, double watts, const PlanSpec& spec) {
  if (!(watts > 0) || !std::isfinite(watts)) {
    return InvalidInput(fmt::format("the power budget is {} W; expected a number > 0", watts));
  }
  return PowerSearch(planner, watts, spec).Run();
}

Result<Plan> CheapestWithin(const Planner& planner, double seconds, const PlanSpec& spec) {
  const double baseline_seconds = planner.baseline().iteration_time_seconds;
  const double economic_seconds =
      std::max(planner.lower_bound().economic_seconds, planner.frontier().fastest_seconds);
  const double target = std::min(seconds, economic_seconds);
  plan::Told told(spec.progress);
  const PlanSpec each = {
      .constraints = spec.constraints, .effort = spec.effort, .progress = told.Function()};
  Result<Plan> plan = planner.PlanFor(target, each);
  // Constraints may leave no plan as fast as T_economic, or as the baseline.
  for (const double slower : {std::min(seconds, baseline_seconds), seconds}) {
    if (!plan && plan.error().code == ErrorCode::kInfeasible && target < slower) {
      plan = planner.PlanFor(slower, each);
    }
  }
  if (told.stopped()) return plan::SearchCancelled();
  if (!plan) return plan;
  // Where plans that are faster than the baseline cost more than it.
  if (!spec.constraints.any() && seconds >= baseline_seconds &&
      planner.baseline().energy_joules < plan->energy_joules) {
    plan = planner.baseline();
  }
  plan->requested_time_seconds = seconds;
  return plan;
}

}  // namespace v0
}  // namespace perseus
