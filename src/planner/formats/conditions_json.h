// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FORMATS_CONDITIONS_JSON_H_
#define PERSEUS_FORMATS_CONDITIONS_JSON_H_

#include <string>

#include "common/tree_reader.h"
#include "perseus/conditions.h"
#include "perseus/plan_document.h"

namespace perseus::formats {

// Writes and reads the members `conditions` and `expected` of plan.json, one line each
// (docs/reference/files.md). A missing member reads as its default.
std::string ConditionsJson(const Conditions& conditions);
std::string ExpectedJson(const ExpectedFigures& expected);
Conditions ReadConditions(const TreeCursor& object);
ExpectedFigures ReadExpected(const TreeCursor& object);

}  // namespace perseus::formats

#endif  // PERSEUS_FORMATS_CONDITIONS_JSON_H_
