// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_FIGURES_H_
#define PERSEUS_SRC_REPORT_FIGURES_H_

#include <string>
#include <string_view>

#include "perseus/plan.h"
#include "plan/named_times.h"

namespace perseus::report {

// By how many percent `value` exceeds `base`; 0 if `base` is 0.
double PercentOver(double value, double base);

// By how many percent `value` is below `base`.
double PercentSaved(double value, double base);

// The highest lower bound that is proven for a plan (or a row of a table): what is said first of
// how good it is.
struct ProvenBound {
  double lower_bound_joules = 0;
  double gap_percent = 0;
};
template <typename PlanOrRow>
ProvenBound ProvenBoundOf(const PlanOrRow& plan) {
  if (!plan.discrete_bound) return {plan.lower_bound_joules, plan.gap_percent};
  return {plan.discrete_bound->lower_bound_joules, plan.discrete_bound->gap_percent};
}

// A gap as it is printed, to three decimals: rounded up, so that "at most" stays true.
double ShownGap(double percent);

// "5 distinct clocks"; `noun`: "clock".
std::string DistinctText(const Plan& plan, std::string_view noun);

// "201 changes an iteration (1 of them from its end to the next one's start)".
std::string ChangesText(const KnobChanges& changes);

using plan::SameTime;

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_FIGURES_H_
