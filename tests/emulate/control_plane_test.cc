// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/control_plane.h"

#include <gtest/gtest.h>

#include <vector>

#include "emulate/emulation_testing.h"

namespace perseus::emulate {
namespace {

using emulator_testing::FakePolicy;

// Plans of one computation that remember what they were asked for.
Result<Plan> PlanOfOne(double seconds) {
  Plan plan;
  plan.requested_time_seconds = seconds;
  plan.options.resize(1);
  return plan;
}

// Their pipeline.
const CostedPipeline& OfOne() {
  static const auto* const kPipeline = [] {
    auto* const pipeline = new CostedPipeline;
    pipeline->dag.num_ranks = 1;
    pipeline->dag.computations.resize(1);
    pipeline->knobs.resize(1);
    pipeline->tables.resize(1);
    pipeline->table_of = {0};
    pipeline->rank_blocking_power_watts = {0};
    return pipeline;
  }();
  return *kPipeline;
}

EmulationSpec SpecWithDelay(double seconds) {
  EmulationSpec spec;
  spec.target_seconds = 6;
  spec.control.delay_seconds = seconds;
  return spec;
}

TEST(PlanChooserTest, FollowsTheSlowestKnownStraggler) {
  const FakePolicy policy(PlanOfOne);
  const EmulationSpec spec = SpecWithDelay(0);
  PlanChooser chooser(policy, spec, OfOne());
  ASSERT_TRUE(chooser.Begin());
  EXPECT_EQ(chooser.plan(kBasePlan).requested_time_seconds, 6);
  EXPECT_EQ(chooser.React(0, 0)->plan, kBasePlan);
  EXPECT_EQ(chooser.React(6, 5.9)->plan, kBasePlan);  // Not beyond the target.
  const auto slower = chooser.React(12, 7.25);
  EXPECT_EQ(slower->target_seconds, 7.25);
  EXPECT_EQ(chooser.plan(slower->plan).requested_time_seconds, 7.25);
  const auto other = chooser.React(20, 9);
  EXPECT_EQ(other->target_seconds, 9);
  EXPECT_EQ(chooser.React(30, 7.25)->plan, slower->plan);  // Made once.
  EXPECT_EQ(chooser.React(40, 0)->target_seconds, 6);
}

TEST(PlanChooserTest, ReactsAfterTheDelay) {
  const FakePolicy policy(PlanOfOne);
  const EmulationSpec spec = SpecWithDelay(10);
  PlanChooser chooser(policy, spec, OfOne());
  ASSERT_TRUE(chooser.Begin());
  EXPECT_EQ(chooser.React(0, 8)->target_seconds, 6);  // Nothing is known yet.
  EXPECT_EQ(chooser.React(8, 8)->target_seconds, 6);
  EXPECT_EQ(chooser.React(10, 9)->target_seconds, 8);  // What was so at 0.
  EXPECT_EQ(chooser.React(19, 0)->target_seconds, 8);
  EXPECT_EQ(chooser.React(25, 0)->target_seconds, 9);
  EXPECT_EQ(chooser.React(29, 0)->target_seconds, 6);
}

TEST(PlanChooserTest, NobodyReacts) {
  EmulationSpec spec = SpecWithDelay(0);
  const FakePolicy fixed(PlanOfOne, false);
  PlanChooser without(fixed, spec, OfOne());
  ASSERT_TRUE(without.Begin());
  EXPECT_EQ(without.React(0, 9)->target_seconds, 6);
  const FakePolicy policy(PlanOfOne);
  spec.control.reacts = false;
  PlanChooser off(policy, spec, OfOne());
  ASSERT_TRUE(off.Begin());
  EXPECT_EQ(off.React(0, 9)->target_seconds, 6);
}

TEST(PlanChooserTest, RandomStragglersShareSteps) {
  const FakePolicy policy(PlanOfOne);
  EmulationSpec spec = SpecWithDelay(0);
  spec.random_stragglers.share_of_gpus_per_day = 0.1;
  PlanChooser chooser(policy, spec, OfOne());
  ASSERT_TRUE(chooser.Begin());
  EXPECT_EQ(chooser.React(0, 6.005)->plan, kBasePlan);
  const auto first = chooser.React(1, 7.2549);
  EXPECT_DOUBLE_EQ(first->target_seconds, 7.254);
  EXPECT_EQ(chooser.React(2, 7.2541)->plan, first->plan);
  EXPECT_NE(chooser.React(3, 7.2601)->plan, first->plan);
}

TEST(PlanChooserTest, KeepsTheBasePlanWhereThereIsNoOther) {
  const auto fail = [](ErrorCode code) {
    return FakePolicy([code](double seconds) -> Result<Plan> {
      if (seconds > 6) return MakeError(code, "no plan");
      return PlanOfOne(seconds);
    });
  };
  const EmulationSpec spec = SpecWithDelay(0);
  const FakePolicy infeasible = fail(ErrorCode::kInfeasible);
  PlanChooser keeps(infeasible, spec, OfOne());
  ASSERT_TRUE(keeps.Begin());
  EXPECT_EQ(keeps.React(0, 9)->target_seconds, 6);
  const FakePolicy broken = fail(ErrorCode::kOverflow);
  PlanChooser fails(broken, spec, OfOne());
  ASSERT_TRUE(fails.Begin());
  ASSERT_FALSE(fails.React(0, 9));
  EXPECT_EQ(fails.React(0, 9).error().code, ErrorCode::kOverflow);
}

TEST(PlanChooserTest, PassesOnThatThereIsNoPlanForTheTarget) {
  const FakePolicy policy(
      [](double) -> Result<Plan> { return MakeError(ErrorCode::kInfeasible, "too fast"); });
  const EmulationSpec spec = SpecWithDelay(0);
  const auto begun = PlanChooser(policy, spec, OfOne()).Begin();
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().message, "too fast");
  CostedPipeline of_two = OfOne();
  of_two.dag.computations.resize(2);
  of_two.table_of = {0, 0};
  EXPECT_EQ(PlanChooser(FakePolicy(PlanOfOne), spec, of_two).Begin().error().code,
            ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace perseus::emulate
