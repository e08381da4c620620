// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/plan_document.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/schedule.h"

namespace perseus {
namespace {

// Two ranks of four GPUs, one microbatch, 0.5 s of transfer between them; 1 s
// a computation at 1410 MHz, 2 s at 1305 MHz.
CostedPipeline SmallPipeline() {
  Schedule schedule;
  schedule.name = "/somewhere/else/order.csv";
  schedule.num_ranks = 2;
  schedule.num_stages = 2;
  schedule.num_microbatches = 1;
  schedule.ranks = {
      {{{ComputationType::kForward, 0, 0}, {}}, {{ComputationType::kBackward, 0, 0}, {}}},
      {{{ComputationType::kForward, 1, 0}, {}}, {{ComputationType::kBackward, 1, 0}, {}}}};
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.5};
  CostedPipeline pipeline;
  pipeline.dag = *BuildDag(schedule, fixed);
  pipeline.knobs = {{"1410", 1410}, {"1305", 1305}};
  pipeline.rank_blocking_power_watts = {320, 400};
  pipeline.total_blocking_power_watts = 720;
  pipeline.tensor_parallel = 4;
  for (const Computation& computation : pipeline.dag.computations) {
    CostTable table;
    table.stage = computation.id.stage;
    table.type = computation.id.type;
    table.options = {{0, 1, 100}, {1, 2, 80}};
    table.baseline = table.options[0];
    pipeline.table_of.push_back(static_cast<int>(pipeline.tables.size()));
    pipeline.tables.push_back(std::move(table));
  }
  return pipeline;
}

Plan UniformPlan(const CostedPipeline& pipeline, int option) {
  Plan plan;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    plan.options.push_back(pipeline.TableOf(i).options[option]);
  }
  plan.iteration_time_seconds = option == 0 ? 5 : 9;
  plan.requested_time_seconds = 10;
  plan.energy_joules = 1000;
  plan.saving_percent = 7;
  return plan;
}

TEST(PlanDocument, PlacesComputationsInExecutionOrderAndTime) {
  const CostedPipeline pipeline = SmallPipeline();
  const PlanDocument document =
      *MakePlanDocument(pipeline, UniformPlan(pipeline, 1), UniformPlan(pipeline, 0), {}, {});
  ASSERT_EQ(document.ranks.size(), 2U);
  const std::vector<PlannedComputation>& first = document.ranks[0].computations;
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].id, (ComputationId{ComputationType::kForward, 0, 0}));
  EXPECT_EQ(first[0].start_seconds, 0);
  EXPECT_EQ(first[1].id, (ComputationId{ComputationType::kBackward, 0, 0}));
  EXPECT_EQ(first[1].start_seconds, 7);  // Three computations and two transfers.
  EXPECT_EQ(first[1].knob.label, "1305");
  EXPECT_EQ(first[1].duration_seconds, 2);
  EXPECT_EQ(first[1].energy_joules, 80);
  EXPECT_EQ(document.ranks[1].computations[0].start_seconds, 2.5);
}

TEST(PlanDocument, StatesBlockingPowerPerGpu) {
  const CostedPipeline pipeline = SmallPipeline();
  const Plan plan = UniformPlan(pipeline, 0);
  const PlanDocument document = *MakePlanDocument(pipeline, plan, plan, {}, {});
  EXPECT_EQ(document.ranks[0].blocking_power_watts, 80);
  EXPECT_EQ(document.ranks[1].blocking_power_watts, 100);
  EXPECT_EQ(document.tensor_parallel, 4);
}

TEST(PlanDocument, KeepsNoDirectories) {
  const CostedPipeline pipeline = SmallPipeline();
  const Plan plan = UniformPlan(pipeline, 0);
  PlanContext context;
  context.profile_source = "/home/user/data/profile.csv";
  const PlanDocument document = *MakePlanDocument(pipeline, plan, plan, {}, context);
  EXPECT_EQ(document.profile_source, "profile.csv");
  EXPECT_EQ(document.schedule, "order.csv");
}

TEST(PlanDocument, StatesTheSplitRatioOnlyWhereItCounts) {
  CostedPipeline pipeline = SmallPipeline();
  const Plan plan = UniformPlan(pipeline, 0);
  pipeline.split_ratio = 0.25;
  EXPECT_EQ(MakePlanDocument(pipeline, plan, plan, {}, {})->split_ratio, std::nullopt);
  pipeline.tables[1].split = true;
  EXPECT_EQ(MakePlanDocument(pipeline, plan, plan, {}, {})->split_ratio, 0.25);
}

TEST(PlanDocument, StatesFixedTimesAndWhatBoundsThePlan) {
  const CostedPipeline pipeline = SmallPipeline();
  const Plan plan = UniformPlan(pipeline, 0);
  const BoundOrigin bound = {
      .slope_quantum_watts = 0.5, .exponential_fit = true, .certified_error = 0.001};
  const PlanDocument document = *MakePlanDocument(pipeline, plan, plan, bound, {});
  EXPECT_EQ(document.fixed.comm_delay_seconds, std::vector<double>{0.5});
  EXPECT_EQ(document.slope_quantum_watts, 0.5);
  EXPECT_TRUE(document.exponential_fit);
  EXPECT_EQ(document.certified_error, 0.001);
}

TEST(PlanDocument, CarriesTheBaseline) {
  const CostedPipeline pipeline = SmallPipeline();
  const PlanDocument document =
      *MakePlanDocument(pipeline, UniformPlan(pipeline, 1), UniformPlan(pipeline, 0), {}, {});
  EXPECT_EQ(document.baseline.iteration_time_seconds, 5);
  ASSERT_EQ(document.baseline.costs.size(), 4U);
  EXPECT_EQ(document.baseline.costs[0].knob.label, "1410");
  EXPECT_EQ(document.baseline.costs[0].duration_seconds, 1);
}

TEST(PlanDocument, ComparesWithNoClockSetWhereAllOfThatIsKnown) {
  CostedPipeline pipeline = SmallPipeline();
  const Plan plan = UniformPlan(pipeline, 1);
  const auto document = [&] {
    return MakePlanDocument(pipeline, plan, UniformPlan(pipeline, 0), {}, {}).value();
  };
  EXPECT_FALSE(document().default_clocks);
  for (CostTable& table : pipeline.tables) {
    table.default_clocks = table.baseline;
    table.default_clocks->energy_joules = 500;
  }
  ASSERT_TRUE(document().default_clocks);
  const DefaultClockFigures figures = *document().default_clocks;
  EXPECT_GT(figures.iteration_time_seconds, 0);
  EXPECT_NEAR(figures.slowdown_percent,
              100 * (plan.iteration_time_seconds / figures.iteration_time_seconds - 1), 1e-9);
  EXPECT_NEAR(figures.saving_percent, 100 * (1 - plan.energy_joules / figures.energy_joules), 1e-9);
  pipeline.tables.back().default_clocks.reset();
  EXPECT_FALSE(document().default_clocks);
}

TEST(PlanDocument, GivesItsScheduleBack) {
  const CostedPipeline pipeline = SmallPipeline();
  const Plan plan = UniformPlan(pipeline, 0);
  const Schedule schedule = ScheduleOf(*MakePlanDocument(pipeline, plan, plan, {}, {}));
  EXPECT_TRUE(ValidateSchedule(schedule).has_value());
  EXPECT_EQ(schedule.num_ranks, 2);
  EXPECT_EQ(schedule.ranks[1][1].id, (ComputationId{ComputationType::kBackward, 1, 0}));
}

}  // namespace
}  // namespace perseus
