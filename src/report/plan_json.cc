// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/plan_json.h"

#include <nlohmann/json.hpp>

namespace perseus::report {

nlohmann::ordered_json PlanFigures(const Plan& plan) {
  return {{"requested_time_s", plan.requested_time_seconds},
          {"iteration_time_s", plan.iteration_time_seconds},
          {"energy_j", plan.energy_joules},
          {"lower_bound_j", plan.lower_bound_joules},
          {"gap_percent", plan.gap_percent},
          {"saving_percent", plan.saving_percent},
          {"average_power_w", plan.average_power_watts},
          {"knob_changes", plan.knob_changes},
          {"distinct_knobs", plan.distinct_knobs}};
}

}  // namespace perseus::report
