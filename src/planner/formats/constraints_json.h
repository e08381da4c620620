// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_CONSTRAINTS_JSON_H_
#define PERSEUS_FORMATS_CONSTRAINTS_JSON_H_

#include <string>

#include "common/tree_reader.h"
#include "perseus/plan.h"

namespace perseus::formats {

// The members of plan.json that say what constrains the plan, each in a line.
std::string ConstraintsJson(const PlanConstraints& constraints);

// Its inverse, on the object that has these members. Those that are missing constrain nothing.
PlanConstraints ReadConstraints(const TreeCursor& root);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_CONSTRAINTS_JSON_H_
