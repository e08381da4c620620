// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_PLAN_SAMPLE_PLAN_H_
#define PERSEUS_TESTS_PLAN_SAMPLE_PLAN_H_

#include <string>

#include "perseus/plan_document.h"

namespace perseus {

inline Knob Clock(double mhz) { return {std::to_string(static_cast<int>(mhz)), mhz}; }

// Two stages, one microbatch, every field set to a value of its own.
inline PlanDocument SamplePlan() {
  PlanDocument plan;
  plan.generator_name = "perseus";
  plan.generator_version = "9.8.7";
  plan.schedule = "1f1b";
  plan.stages = 2;
  plan.virtual_stages = 1;
  plan.microbatches = 1;
  plan.tensor_parallel = 4;
  plan.data_parallel = 16;
  plan.profile_source = "profile.csv";
  plan.profile_sha256 = "abc123";
  plan.requested_time_seconds = 1.25;
  plan.iteration_time_seconds = 1.2;
  plan.energy_joules = 480.5;
  plan.average_power_watts = 400.25;
  plan.lower_bound_joules = 480;
  plan.gap_percent = 0.1;
  plan.saving_percent = 12.5;
  plan.knob_changes = 3;
  plan.distinct_knobs = 2;
  plan.shared_knobs = {.lower_bound_joules = 480.25, .gap_percent = 0.05, .proven_best = true};
  plan.baseline.iteration_time_seconds = 1.1;
  plan.baseline.energy_joules = 549;
  plan.baseline.average_power_watts = 499;
  plan.baseline.costs = {{.stage = 0,
                          .type = ComputationType::kForward,
                          .fused_type = std::nullopt,
                          .fused_stage = 0,
                          .knob = Clock(1410),
                          .duration_seconds = 0.2,
                          .energy_joules = 60}};
  plan.slope_quantum_watts = 2;
  plan.certified_error = 0.0002;
  plan.constraints.granularity = Granularity::kPhase;
  plan.constraints.time_margin_sigmas = 2;
  plan.constraints.time_margin_fraction = 0.01;
  plan.fixed.comm_delay_seconds = {0.001};
  plan.fixed.data_loading_seconds = 0.002;
  plan.fixed.iteration_overhead_seconds = 0.003;
  plan.split_ratio = 0.4;
  const auto add = [&](int rank, ComputationType type, double mhz, double start, double duration) {
    plan.ranks[rank].computations.push_back({.id = {type, rank, 0},
                                             .fused = std::nullopt,
                                             .knob = Clock(mhz),
                                             .start_seconds = start,
                                             .duration_seconds = duration,
                                             .energy_joules = duration * 300});
  };
  plan.ranks.resize(2);
  plan.ranks[0].blocking_power_watts = 83.64;
  plan.ranks[1].blocking_power_watts = 83.5;
  add(0, ComputationType::kForward, 1410, 0, 0.25);
  add(0, ComputationType::kBackward, 1305, 0.75, 0.5);
  add(1, ComputationType::kForward, 1410, 0.25, 0.125);
  add(1, ComputationType::kBackward, 1410, 0.375, 0.375);
  return plan;
}

}  // namespace perseus

#endif  // PERSEUS_TESTS_PLAN_SAMPLE_PLAN_H_
