// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/constraints.h"

#include <fmt/format.h>

#include <cmath>

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

}  // namespace perseus::model
