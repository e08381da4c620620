// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_REPORT_PLAN_JSON_H_
#define PERSEUS_REPORT_PLAN_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "perseus/plan.h"

namespace perseus::report {

// The figures of a plan under the names of plan.json.
nlohmann::ordered_json PlanFigures(const Plan& plan);

}  // namespace perseus::report

#endif  // PERSEUS_REPORT_PLAN_JSON_H_
