// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/plan_figures.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace perseus::model {
namespace {

constexpr Constraint kConstraints[] = {
    {"granularity", "constraints", "granularity", "the granularity", "per", ConstraintUnit::kNone,
     &PlanConstraints::granularity},
    {"time_margin", "time_margin", "sigmas", "the time margin", "planned with times longer by",
     ConstraintUnit::kSigmas, &PlanConstraints::time_margin_sigmas},
    {"time_margin", "time_margin", "fraction", "the time margin", "planned with times longer by",
     ConstraintUnit::kShare, &PlanConstraints::time_margin_fraction},
};

Result<void> Check(const Constraint& /*constraint*/, Granularity granularity) {
  if (ParseGranularity(GranularityName(granularity))) return {};
  return InvalidInput("the granularity is none; expected computation, phase, stage-type or stage");
}

Result<void> Check(const Constraint& constraint, double value) {
  if (value >= 0 && std::isfinite(value)) return {};
  return InvalidInput(fmt::format("{} is {}; expected a number >= 0", constraint.what, value));
}

}  // namespace

bool Constraint::IsIn(const PlanConstraints& constraints) const {
  return std::visit(
      [&](auto pointer) { return constraints.*pointer != PlanConstraints{}.*pointer; }, member);
}

void Constraint::Copy(const PlanConstraints& from, PlanConstraints* to) const {
  std::visit([&](auto pointer) { to->*pointer = from.*pointer; }, member);
}

std::span<const Constraint> Constraints() { return kConstraints; }

Result<void> CheckConstraints(const PlanConstraints& constraints) {
  for (const Constraint& constraint : kConstraints) {
    auto good = constraint.On(constraints, [&](auto value) { return Check(constraint, value); });
    if (!good) return good;
  }
  return {};
}

namespace {

using enum FigureUnit;

constexpr Figure<PlanFigures> kOfPlan[] = {
    {"requested_time_s", kSeconds, &PlanFigures::requested_time_seconds, kNotNegative, true,
     "What was asked for. Only a plan under conditions may take longer, by their `max_slowdown`."},
    {"iteration_time_s", kSeconds, &PlanFigures::iteration_time_seconds, kNotNegative, true,
     "Time of one iteration, replayed from the profile's times."},
    {"energy_j", kJoules, &PlanFigures::energy_joules, kNotNegative, true,
     "Energy of one pipeline in one iteration, waiting included."},
    {"average_power_w", kWatts, &PlanFigures::average_power_watts, kNotNegative, false,
     "Mean power of one pipeline."},
    {"lower_bound_j", kJoules, &PlanFigures::lower_bound_joules, kAnyNumber, true,
     "No plan that takes `iteration_time_s` can use less energy."},
    {"gap_percent", kPercent, &PlanFigures::gap_percent, kAnyNumber, true,
     "How far `energy_j` is above `lower_bound_j`, in percent of the bound."},
    {"saving_percent", kPercent, &PlanFigures::saving_percent, kAnyNumber, true,
     "Energy saved against the baseline."},
    {"knob_changes", kNone, &PlanFigures::knob_changes, kNotNegative, false,
     "Clock changes within an iteration, all ranks together. A change from a rank's last "
     "computation to its first in the next iteration is not counted here; `max_changes`, "
     "`price_curve` and `clock_calls` count it."},
    {"distinct_knobs", kNone, &PlanFigures::distinct_knobs, kNotNegative, false,
     "Different clocks in the plan."},
};

constexpr Figure<SharedKnobBound> kOfSharedKnobs[] = {
    {"lower_bound_j", kJoules, &SharedKnobBound::lower_bound_joules, kAnyNumber, true,
     "No plan within the constraints that takes `iteration_time_s` can use less energy."},
    {"gap_percent", kPercent, &SharedKnobBound::gap_percent, kAnyNumber, true,
     "How far the plan's energy is above this bound."},
    {"proven", kNone, &SharedKnobBound::proven_best, kAnyNumber, true,
     "Whether the plan is proven to be the best: no plan that ends by `requested_time_s` uses less "
     "energy over an iteration of that length, up to 1e-10 of the energies."},
};

constexpr Figure<SavingInterval> kOfSavingInterval[] = {
    {"least_percent", kPercent, &SavingInterval::least_percent, kAnyNumber, true,
     "The saving is between this and `most_percent` with a probability of 95 %, as far as the "
     "errors of the measured profile go."},
    {"most_percent", kPercent, &SavingInterval::most_percent, kAnyNumber, true,
     "The upper end of that."},
};

constexpr Figure<DefaultClockFigures> kOfDefaultClocks[] = {
    {"iteration_time_s", kSeconds, &DefaultClockFigures::iteration_time_seconds, kNotNegative, true,
     "Time of an iteration at default clocks, as the job ran before Perseus."},
    {"energy_j", kJoules, &DefaultClockFigures::energy_joules, kNotNegative, true,
     "Energy of one pipeline in such an iteration, waiting included."},
    {"slowdown_percent", kPercent, &DefaultClockFigures::slowdown_percent, kAnyNumber, true,
     "How much longer the plan's iteration takes. Below 0: the plan is faster."},
    {"saving_percent", kPercent, &DefaultClockFigures::saving_percent, kAnyNumber, true,
     "Energy that the plan saves against it."},
};

constexpr Figure<DiscreteBound> kOfDiscreteBound[] = {
    {"lower_bound_j", kJoules, &DiscreteBound::lower_bound_joules, kAnyNumber, true,
     "No plan of the same time with one clock for each computation can use less energy."},
    {"gap_percent", kPercent, &DiscreteBound::gap_percent, kAnyNumber, true,
     "How far the plan's energy is above this bound."},
};

constexpr Figure<ExpectedFigures> kOfExpected[] = {
    {"iteration_time_s", kSeconds, &ExpectedFigures::iteration_time_seconds, kNotNegative, false,
     "Mean time of an iteration of the job, of all its `data_parallel` pipelines."},
    {"iteration_time_spread_s", kSeconds, &ExpectedFigures::iteration_time_spread_seconds,
     kNotNegative, false, "Standard deviation of the seeds' means of it."},
    {"energy_j", kJoules, &ExpectedFigures::energy_joules, kNotNegative, false,
     "Mean energy of one pipeline in one iteration, waiting included."},
    {"energy_spread_j", kJoules, &ExpectedFigures::energy_spread_joules, kNotNegative, false,
     "Standard deviation of the seeds' means of it."},
    {"slowdown_percent", kPercent, &ExpectedFigures::slowdown_percent, kAnyNumber, false,
     "How much longer than all clocks at maximum under the same conditions."},
    {"slowdown_spread_percent", kPercent, &ExpectedFigures::slowdown_spread_percent, kNotNegative,
     false, "Standard deviation of the seeds' means of it."},
    {"saving_percent", kPercent, &ExpectedFigures::saving_percent, kAnyNumber, false,
     "Energy saved against all clocks at maximum under the same conditions."},
    {"saving_spread_percent", kPercent, &ExpectedFigures::saving_spread_percent, kNotNegative,
     false, "Standard deviation of the seeds' means of it."},
    {"most_slowdown_percent", kPercent, &ExpectedFigures::most_slowdown_percent, kAnyNumber, false,
     "The greatest slowdown at any corner of the conditions' ranges; other figures are those of "
     "the "
     "middle. Without ranges it is `slowdown_percent`."},
    {"least_saving_percent", kPercent, &ExpectedFigures::least_saving_percent, kAnyNumber, false,
     "The least saving at any corner of the conditions' ranges."},
    {"clock_calls", kNone, &ExpectedFigures::clock_calls, kNotNegative, false,
     "Clock changes of one pipeline in one iteration, all ranks together."},
    {"seeds", kNone, &ExpectedFigures::seeds, kNotNegative, false,
     "Emulations, with the seeds 1001, 1002, ..."},
    {"iterations", kNone, &ExpectedFigures::iterations, kNotNegative, false,
     "Iterations of each emulation."},
};

template <typename Of>
void AddValues(std::string_view group, const Of* of, std::vector<FigureValue>* values) {
  const Of none;
  for (const Figure<Of>& figure : Figures<Of>()) {
    FigureValue value = {group, figure.name, figure.unit, figure.says};
    value.known = of != nullptr;
    figure.On(of != nullptr ? *of : none, [&value](auto number) {
      value.whole = !std::is_same_v<decltype(number), double>;
      value.value = static_cast<double>(number);
    });
    values->push_back(value);
  }
}

template <typename Of>
const Of* Pointer(const std::optional<Of>& of) {
  return of ? &*of : nullptr;
}

}  // namespace

std::string_view FigureUnitName(FigureUnit unit) {
  constexpr std::string_view kNames[] = {"", "seconds", "joules", "watts", "percent"};
  return kNames[static_cast<std::size_t>(unit)];
}

template <>
std::span<const Figure<PlanFigures>> Figures() {
  return kOfPlan;
}

template <>
std::span<const Figure<SharedKnobBound>> Figures() {
  return kOfSharedKnobs;
}

template <>
std::span<const Figure<SavingInterval>> Figures() {
  return kOfSavingInterval;
}

template <>
std::span<const Figure<DefaultClockFigures>> Figures() {
  return kOfDefaultClocks;
}

template <>
std::span<const Figure<DiscreteBound>> Figures() {
  return kOfDiscreteBound;
}

template <>
std::span<const Figure<ExpectedFigures>> Figures() {
  return kOfExpected;
}

std::vector<FigureValue> FigureValues(const PlanDocument& plan) {
  std::vector<FigureValue> values;
  AddValues<PlanFigures>("", &plan, &values);
  AddValues(kSharedKnobGroup, Pointer(plan.shared_knobs), &values);
  AddValues(kSavingIntervalGroup, Pointer(plan.saving_interval), &values);
  AddValues(kDefaultClocksGroup, Pointer(plan.default_clocks), &values);
  AddValues(kExpectedGroup, Pointer(plan.expected), &values);
  return values;
}

}  // namespace perseus::model
