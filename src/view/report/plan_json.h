// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_REPORT_PLAN_JSON_H_
#define PERSEUS_SRC_REPORT_PLAN_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"

namespace perseus::report {

// Options of all kinds of computation together.
struct OptionCounts {
  int kept = 0;
  int dominated = 0;
  bool split = false;  // Some `backward` was divided.
};
OptionCounts CountOptions(const CostedPipeline& pipeline);

// The figures of a plan under the names of plan.json.
nlohmann::ordered_json FiguresOfPlan(const Plan& plan);

}  // namespace perseus::report

#endif  // PERSEUS_SRC_REPORT_PLAN_JSON_H_
