// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/named_times.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "perseus/effort.h"
#include "plan/told.h"

namespace perseus::plan {

bool SameTime(double a, double b) {
  constexpr double kRelative = 1e-7;
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b));
}

std::vector<NamedTime> NamedTimes(const Frontier& frontier, double baseline_seconds) {
  std::vector<NamedTime> times = {
      {"no_slowdown", "no slowdown", baseline_seconds},
      {"plus_1_percent", "+1 %", 1.01 * baseline_seconds},
      {"plus_2_percent", "+2 %", 1.02 * baseline_seconds},
      {"plus_5_percent", "+5 %", 1.05 * baseline_seconds},
      {"plus_10_percent", "+10 %", 1.1 * baseline_seconds},
      {kMinEnergyName, "min energy", frontier.min_energy_seconds},
      {"t_star", "T*", frontier.tstar_seconds},
  };
  if (!SameTime(frontier.fastest_seconds, baseline_seconds)) {
    times.push_back({"t_min", "T_min", frontier.fastest_seconds});
  }
  return times;
}

bool IsBeyondTStar(const Frontier& frontier, const NamedTime& time) {
  return time.seconds > frontier.tstar_seconds && !SameTime(time.seconds, frontier.tstar_seconds) &&
         time.name != "no_slowdown";
}

std::size_t LeastEnergy(const std::vector<Plan>& plans) {
  const auto least = std::min_element(plans.begin(), plans.end(), [](const Plan& a, const Plan& b) {
    return a.energy_joules < b.energy_joules;
  });
  return static_cast<std::size_t>(least - plans.begin());
}

Result<Plan> PlanAmongNamed(const Planner& planner, double seconds,
                            const PlanConstraints& constraints, double effort,
                            const ProgressFunction& progress, bool min_energy) {
  std::vector<double> others;
  for (const NamedTime& time :
       NamedTimes(planner.frontier(), planner.baseline().iteration_time_seconds)) {
    if ((time.seconds < seconds || min_energy) && !SameTime(time.seconds, seconds) &&
        !IsBeyondTStar(planner.frontier(), time)) {
      others.push_back(time.seconds);
    }
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end(), SameTime), others.end());

  const double all = 1 + kTableEffort * static_cast<double>(others.size());
  double done = 0;
  Told told(progress);
  const auto plan_for = [&](double when, double weight) {
    ProgressFunction part;
    if (progress) {
      part = [&, weight](const Progress& now) {
        return told({.share = (done + weight * now.share) / all});
      };
    }
    Result<Plan> plan = planner.PlanFor(
        when, {.constraints = constraints, .effort = weight * effort, .progress = part});
    done += weight;
    if (told.stopped()) plan = SearchCancelled();
    return plan;
  };

  std::vector<Plan> plans;
  std::size_t asked = 0;  // Its index among them.
  const auto add_chosen = [&]() -> Result<void> {
    Result<Plan> plan = plan_for(seconds, 1);
    if (!plan) return tl::unexpected(plan.error());
    asked = plans.size();
    plans.push_back(*std::move(plan));
    return {};
  };
  const auto later = std::upper_bound(others.begin(), others.end(), seconds);
  for (auto when = others.begin();; ++when) {
    if (when == later) {
      if (auto added = add_chosen(); !added) return tl::unexpected(added.error());
    }
    if (when == others.end()) break;
    Result<Plan> plan = plan_for(*when, kTableEffort);
    if (plan) {
      plans.push_back(*std::move(plan));
    } else if (plan.error().code != ErrorCode::kInfeasible) {
      return plan;
    }
  }
  CarryForward(planner.pipeline(), &plans);
  return std::move(plans[min_energy ? LeastEnergy(plans) : asked]);
}

void CarryForward(const CostedPipeline& pipeline, std::vector<Plan>* plans) {
  double least = 0;
  for (std::size_t k = 0; k < plans->size(); ++k) {
    Plan& plan = (*plans)[k];
    const double joules = EffectiveEnergyOf(pipeline, plan.options);
    if (k > 0 && least < joules) {
      const double requested = plan.requested_time_seconds;
      const bool proven_best = plan.shared_knobs && plan.shared_knobs->proven_best;
      plan = (*plans)[k - 1];
      plan.requested_time_seconds = requested;
      if (plan.shared_knobs) plan.shared_knobs->proven_best = proven_best;
    } else {
      least = joules;
    }
  }
}

}  // namespace perseus::plan
