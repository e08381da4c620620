// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/planner_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "plan/pipelines.h"

namespace perseus::plan_testing {

Planner Plans(CostedPipeline pipeline, const PlannerOptions& options) {
  auto planner = Planner::Create(std::move(pipeline), options);
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

void CheckHonest(const Planner& planner, const Plan& plan) {
  const CostedPipeline& pipeline = planner.pipeline();
  ASSERT_EQ(static_cast<int>(plan.options.size()), pipeline.dag.size());
  double energy = pipeline.total_blocking_power_watts * plan.iteration_time_seconds;
  std::set<int> knobs;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostOption& option = plan.options[i];
    const CostTable& table = pipeline.TableOf(i);
    const auto measured =
        std::find_if(table.all_options.begin(), table.all_options.end(),
                     [&option](const CostOption& o) { return o.knob == option.knob; });
    ASSERT_NE(measured, table.all_options.end());
    EXPECT_EQ(option.time_seconds, measured->time_seconds);
    EXPECT_EQ(option.energy_joules, measured->energy_joules);
    energy += option.energy_joules - table.blocking_power_watts * option.time_seconds;
    knobs.insert(option.knob);
  }
  EXPECT_EQ(plan.iteration_time_seconds, IterationSeconds(pipeline, plan.options));
  EXPECT_LE(plan.iteration_time_seconds, plan.requested_time_seconds);
  EXPECT_NEAR(plan.energy_joules, energy, 1e-9 * energy);
  const double bound = planner.frontier().EnergyAt(plan.iteration_time_seconds);
  EXPECT_DOUBLE_EQ(plan.lower_bound_joules, bound * (1 - planner.frontier().certified_error));
  EXPECT_NEAR(plan.gap_percent, 100 * (plan.energy_joules / plan.lower_bound_joules - 1), 1e-9);
  EXPECT_GE(plan.gap_percent, -1e-9);
  const double baseline = planner.baseline().energy_joules;
  EXPECT_NEAR(plan.saving_percent, 100 * (1 - plan.energy_joules / baseline), 1e-9);
  EXPECT_DOUBLE_EQ(plan.average_power_watts, plan.energy_joules / plan.iteration_time_seconds);
  EXPECT_EQ(plan.distinct_knobs, static_cast<int>(knobs.size()));
  int changes = 0;
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (plan.options[order[k]].knob != plan.options[order[k - 1]].knob) ++changes;
    }
  }
  EXPECT_EQ(plan.knob_changes, changes);
}

}  // namespace perseus::plan_testing
