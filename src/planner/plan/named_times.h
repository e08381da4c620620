// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_NAMED_TIMES_H_
#define PERSEUS_PLAN_NAMED_TIMES_H_

#include <cstddef>
#include <string_view>
#include <vector>

#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

// The times that have names, and what plans for them are good for: none of them may
// use less than a plan that is given more time.
namespace perseus::plan {

inline constexpr std::string_view kMinEnergyName = "t_min_energy";

struct NamedTime {
  std::string_view name;   // For programs: "no_slowdown", "plus_1_percent", "t_star", ...
  std::string_view label;  // For people: "no slowdown", "+1 %", "T*", ...
  double seconds = 0;
};

// Whether two times are the same but for rounding.
bool SameTime(double a, double b);

// No slowdown, +1, +2, +5, +10 %, T_energy, T*, and T_min where it differs from no
// slowdown. In this order, those beyond T* too.
std::vector<NamedTime> NamedTimes(const Frontier& frontier, double baseline_seconds);

// Puts the plan for less time in the place of each plan that is worse: that
// uses more energy over iterations of the same length. `plans` are for this
// pipeline and the same constraints, by ascending requested time.
void CarryForward(const CostedPipeline& pipeline, std::vector<Plan>* plans);

// Whether `perseus plan` leaves a time out: it is beyond T*, and has no other reason.
bool IsBeyondTStar(const Frontier& frontier, const NamedTime& time);

// The plan of least energy, where T_energy is asked for: the frontier's least is there, but that
// of plans may be at another time. Precondition: there is one.
std::size_t LeastEnergy(const std::vector<Plan>& plans);

// The plan that `perseus plan` gives out for `seconds`: the planner's, or that of a named time
// before it where it is better; where the target is `min-energy`, that of least energy. Errors are
// those of Planner::PlanFor, and kCancelled where `progress` says false; it is given the share of
// all these plans, and none that is better.
Result<Plan> PlanAmongNamed(const Planner& planner, double seconds,
                            const PlanConstraints& constraints, double effort,
                            const ProgressFunction& progress = {}, bool min_energy = false);

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_NAMED_TIMES_H_
