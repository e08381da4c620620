// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_PLAN_UNDER_H_
#define PERSEUS_ROBUST_PLAN_UNDER_H_

#include "perseus/conditions.h"
#include "perseus/result.h"

namespace perseus::robust {

// Says which number is out of range.
Result<void> CheckConditions(const Conditions& conditions, int pipelines);

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_PLAN_UNDER_H_
