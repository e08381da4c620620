// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_PLAN_FIGURES_H_
#define PERSEUS_MODEL_PLAN_FIGURES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "common/tree.h"
#include "perseus/plan.h"
#include "perseus/plan_document.h"
#include "perseus/result.h"

// The one list of what constrains a plan. plan.json, the check of the values, the report and the
// prices of constraints are made from it.
namespace perseus::model {

// Of a constraint that is a real number.
enum class ConstraintUnit : std::uint8_t { kNone, kSigmas, kShare };

// One constraint, a member of PlanConstraints.
struct Constraint {
  std::string_view field;  // The field of a job that sets it.
  std::string_view table;  // The object in plan.json that holds it,
  std::string_view key;    // and its key there.
  std::string_view what;   // Its name in errors.
  std::string_view says;   // What it demands, followed by the value.
  ConstraintUnit unit;
  std::variant<Granularity PlanConstraints::*, double PlanConstraints::*> member;

  // Calls visit(value) with the value in its own type.
  template <typename Constraints, typename Visit>
  decltype(auto) On(Constraints& of, const Visit& visit) const {
    return std::visit([&](auto pointer) -> decltype(auto) { return visit(of.*pointer); }, member);
  }
  // Whether it is not left at what constrains nothing.
  bool IsIn(const PlanConstraints& constraints) const;
  void Copy(const PlanConstraints& from, PlanConstraints* to) const;
};

// In the order of plan.json. Those of one table, and of one field, stand together.
std::span<const Constraint> Constraints();

// Errors: a value that constrains no plan, as a negative time.
Result<void> CheckConstraints(const PlanConstraints& constraints);

}  // namespace perseus::model

// The one list of a plan's figures. plan.json, `--json`, the C interface, Python and the tables of
// docs/reference/files.md are made from it.
namespace perseus::model {

enum class FigureUnit : std::uint8_t { kNone, kSeconds, kJoules, kWatts, kPercent };

// "seconds", ...; "" for kNone.
std::string_view FigureUnitName(FigureUnit unit);

// One figure, a member of the struct Of.
template <typename Of>
struct Figure {  // NOLINT(clang-analyzer-optin.performance.Padding): in the order of its lists.
  std::string_view name;  // In plan.json and `--json`.
  FigureUnit unit = FigureUnit::kNone;
  std::variant<double Of::*, int Of::*, bool Of::*> member;
  NumberRange range;      // Of a number that is read.
  bool required = false;  // Every plan.json has it. A missing one of the others is no error.
  std::string_view says;  // What it is, as a sentence.

  // The member, if this is a count; else nullptr.
  int Of::*count() const {
    const auto* const found = std::get_if<int Of::*>(&member);
    return found == nullptr ? nullptr : *found;
  }

  // Calls visit(value) with the value in its own type.
  template <typename Struct, typename Visit>
  decltype(auto) On(Struct& of, const Visit& visit) const {
    return std::visit([&](auto pointer) -> decltype(auto) { return visit(of.*pointer); }, member);
  }
};

// Figures<PlanFigures>(), Figures<SharedKnobBound>(), Figures<SavingInterval>(),
// Figures<DefaultClockFigures>(), Figures<DiscreteBound>() and Figures<ExpectedFigures>(), in the
// order of plan.json.
template <typename Of>
std::span<const Figure<Of>> Figures();
template <>
std::span<const Figure<PlanFigures>> Figures();
template <>
std::span<const Figure<SharedKnobBound>> Figures();
template <>
std::span<const Figure<SavingInterval>> Figures();
template <>
std::span<const Figure<DefaultClockFigures>> Figures();
template <>
std::span<const Figure<DiscreteBound>> Figures();
template <>
std::span<const Figure<ExpectedFigures>> Figures();

// The objects in plan.json that hold the figures of the other structs.
inline constexpr std::string_view kSharedKnobGroup = "shared_clocks";
inline constexpr std::string_view kSavingIntervalGroup = "saving_interval";
inline constexpr std::string_view kDefaultClocksGroup = "default_clocks";
inline constexpr std::string_view kDiscreteBoundGroup = "discrete_bound";
inline constexpr std::string_view kExpectedGroup = "expected";

// A figure of a plan with its value, whatever its type.
struct FigureValue {
  std::string_view group;  // kSharedKnobGroup, ...; "": of the plan itself.
  std::string_view name;
  FigureUnit unit = FigureUnit::kNone;
  std::string_view says;
  bool whole = false;  // A whole number, or 0 and 1 for "no" and "yes".
  bool known = false;  // Else this plan has none, and the value is 0.
  double value = 0;
};

// All figures in plan.json, those that this plan lacks, too.
std::vector<FigureValue> FigureValues(const PlanDocument& plan);

}  // namespace perseus::model

#endif  // PERSEUS_MODEL_PLAN_FIGURES_H_
