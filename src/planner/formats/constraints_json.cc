// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/constraints_json.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "model/constraints.h"

namespace perseus::formats {
namespace {

std::string ConstraintValueJson(Granularity granularity) {
  return fmt::format("\"{}\"", GranularityName(granularity));
}
std::string ConstraintValueJson(double value) { return fmt::format("{}", value); }

void ReadConstraint(const TreeCursor& found, Granularity* value) {
  const std::optional<Granularity> granularity = ParseGranularity(found.String());
  if (!granularity) found.FailExpected("computation, phase, stage-type or stage");
  *value = granularity.value_or(Granularity::kComputation);
}
void ReadConstraint(const TreeCursor& found, double* value) { *value = found.Number(kNotNegative); }

}  // namespace

std::string ConstraintsJson(const PlanConstraints& constraints) {
  std::string json;
  std::string_view table;
  for (const model::Constraint& each : model::Constraints()) {
    if (each.table != table) {
      json += fmt::format("{}  \"{}\": {{", json.empty() ? "" : "},\n", each.table);
      table = each.table;
    } else {
      json += ", ";
    }
    json += fmt::format("\"{}\": {}", each.key, each.On(constraints, [](const auto& value) {
      return ConstraintValueJson(value);
    }));
  }
  return json + "},\n";
}

PlanConstraints ReadConstraints(const TreeCursor& root) {
  PlanConstraints constraints;
  for (const model::Constraint& each : model::Constraints()) {
    const std::optional<TreeCursor> table = root.Find(each.table);
    const std::optional<TreeCursor> found = table ? table->Find(each.key) : std::nullopt;
    if (found) each.On(constraints, [&](auto& value) { ReadConstraint(*found, &value); });
  }
  return constraints;
}

}  // namespace perseus::formats
