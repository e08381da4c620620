// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MODEL_CONSTRAINTS_H_
#define PERSEUS_MODEL_CONSTRAINTS_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "perseus/plan.h"
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

#endif  // PERSEUS_MODEL_CONSTRAINTS_H_
