// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_TEXT_H_
#define PERSEUS_SRC_REPORT_TEXT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "perseus/note.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "plan/named_times.h"

namespace perseus::report {

// One line of JSON that is also safe inside <script>: no '<', '>' or '&'.
std::string ScriptJson(const nlohmann::ordered_json& json);

double RoundSignificant(double value, int digits);

// With so many decimals; "0.00" and never "-0.00", which reads like a defect.
std::string FixedText(double value, int decimals);

// A unit for all figures of one kind on a page, and how many decimals show
// five digits of the figure that it was chosen for.
struct DisplayUnit {
  double factor = 1;  // Divide by it.
  std::string_view name;
  int decimals = 0;

  std::string Number(double value) const;  // "5.6321"
  std::string Text(double value) const;    // "5.6321 s"
};
DisplayUnit TimeUnit(double seconds);
DisplayUnit EnergyUnit(double joules);
DisplayUnit PowerUnit(double watts);

// With its sign: 5 -> "+5.0 %". For slowdowns, and for what a change does.
std::string ChangePercent(double change_percent, int decimals);
// "95 %: 10.30 to 10.80 %, by the errors of the profile"
std::string IntervalText(const SavingInterval& interval);
// The source of a figure that follows from a profile and was not measured as such; `modelled`:
// Profile::modelled.
std::string_view ProfileOrigin(std::string_view modelled);
// "at default clocks one iteration takes 5.2 s and 2,195 J (modelled); the plan uses 12.3 % less
// energy and takes 0.4 % longer". `iteration`: its time and energy; `origin`: who says so.
std::string DefaultClocksText(const DefaultClockFigures& default_clocks, std::string_view iteration,
                              std::string_view origin);
// A saving: 12.3 -> "12.3 %"; "−1.0 %" of what costs more.
std::string SavingPercent(double saving_percent, int decimals);

// The words after "Best": "of all plans within these constraints ...". Rounded to stay true.
std::string SharedKnobText(const SharedKnobBound& bound);

// The warning at the top of a page whose profile calls itself modelled (Profile::modelled); else
// "".
std::string ModelledWarning(std::string_view modelled);

// How the key figure of a saving looks: as a gain, as a loss, or as neither.
std::string ClassOfSaving(double saving_percent);

// A note with its place, but no folders: a page is the same on every machine.
std::string NoteLine(Note note);

std::string Plural(std::int64_t count, std::string_view noun);
// "1f1b, 4 ranks, 4 stages, 8 microbatches".
std::string ShapeOf(const PipelineDag& dag);
std::string_view FileName(std::string_view path);

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

#endif  // PERSEUS_SRC_REPORT_TEXT_H_
