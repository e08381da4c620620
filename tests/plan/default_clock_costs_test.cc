// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Rows of a profile at default clocks: what is made of them, and what is warned of.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "model/iteration_energy.h"
#include "perseus/costed_pipeline.h"
#include "perseus/planner.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;

constexpr const char* kBothAtDefaultClocks =
    "0,forward,default,0.9,120\n0,backward,default,1.8,240\n1,forward,default,0.9,120\n"
    "1,backward,default,1.8,240\n";
constexpr const char* kBothLocked =
    "0,forward,1400,1,100\n0,backward,1400,2,200\n1,forward,1400,1,100\n"
    "1,backward,1400,2,200\n0,forward,1200,2,80\n";

// A card that boosts: no plan is as fast, and none chooses what no clock stands for.
TEST(DefaultClockCosts, WhatCostsLessTimeWithNoClockSetIsToldAndNoOption) {
  const CostedPipeline locked = Costed(kBothLocked, DagOf("1f1b", 2, 1), Blocking(10));
  EXPECT_FALSE(model::DefaultClockIterationOf(locked));
  EXPECT_TRUE(locked.notes.empty());
  const CostedPipeline pipeline =
      Costed(std::string(kBothLocked) + kBothAtDefaultClocks, DagOf("1f1b", 2, 1), Blocking(10));
  EXPECT_TRUE(pipeline.Validate());
  EXPECT_NE(pipeline.Fingerprint(), locked.Fingerprint());
  for (std::size_t i = 0; i < pipeline.tables.size(); ++i) {
    EXPECT_EQ(pipeline.tables[i].options.size(), locked.tables[i].options.size());
    EXPECT_EQ(pipeline.tables[i].baseline.time_seconds, locked.tables[i].baseline.time_seconds);
  }
  // 0.9 + 0.9 + 1.8 + 1.8 in a row; each rank waits for half of it.
  const auto iteration = model::DefaultClockIterationOf(pipeline);
  ASSERT_TRUE(iteration);
  EXPECT_DOUBLE_EQ(iteration->seconds, 5.4);
  EXPECT_DOUBLE_EQ(iteration->joules, 720 + 2 * 2.7 * 10);
  PlanFigures plan;
  plan.iteration_time_seconds = 6;
  plan.energy_joules = 660;
  const DefaultClockFigures figures = model::AgainstDefaultClocks(*iteration, plan);
  EXPECT_NEAR(figures.slowdown_percent, 100.0 / 9, 1e-9);
  EXPECT_NEAR(figures.saving_percent, 100.0 * 114 / 774, 1e-9);
  ASSERT_EQ(pipeline.notes.size(), 1);
  EXPECT_EQ(pipeline.notes[0].severity, Severity::kOdd);
  EXPECT_THAT(pipeline.notes[0].text, Mentions("5.4", "11.11", "1.0x"));
  // T_min and the optimality gap are those of before.
  const auto planner = Planner::Create(pipeline, {});
  const auto before = Planner::Create(locked, {});
  ASSERT_TRUE(planner);
  ASSERT_TRUE(before);
  EXPECT_EQ(planner->frontier().fastest_seconds, before->frontier().fastest_seconds);
  EXPECT_EQ(planner->baseline().energy_joules, before->baseline().energy_joules);
}

TEST(DefaultClockCosts, WhatIsCappedWithNoClockSetIsNoWarning) {
  const std::string slower =
      "0,forward,default,1.1,90\n0,backward,default,2.1,180\n1,forward,default,1,100\n"
      "1,backward,default,2,200\n";
  const CostedPipeline pipeline = Costed(kBothLocked + slower, DagOf("1f1b", 2, 1), Blocking(10));
  EXPECT_TRUE(pipeline.notes.empty());
  EXPECT_DOUBLE_EQ(model::DefaultClockIterationOf(pipeline)->seconds, 6.2);
}

// 10 % less time is no news where the times are known to 5 %.
TEST(DefaultClockCosts, WhatMayBeAnErrorOfMeasurementIsNoWarning) {
  for (const auto& [error, notes] : {std::pair("0.05", 0), {"0.001", 1}}) {
    std::string rows = "stage,instruction,frequency,time,energy,time_std\n";
    for (const char* const kind : {"0,forward", "0,backward"}) {
      rows += fmt::format("{},1400,1,100,{}\n{},default,0.9,100,{}\n", kind, error, kind, error);
    }
    EXPECT_EQ(Costed(rows, DagOf("1f1b", 1, 1), Blocking(0)).notes.size(), notes) << error;
  }
}

// Of each computation, at default clocks and at the highest clock.
std::string ProfileTimed(double default_seconds, double locked_seconds, double error_seconds) {
  std::string rows = "stage,instruction,frequency,time,energy,time_std\n";
  for (const char* const kind : {"forward", "backward"}) {
    rows += fmt::format("0,{},1400,{},100,{}\n0,{},default,{},100,{}\n", kind, locked_seconds,
                        error_seconds, kind, default_seconds, error_seconds);
  }
  return rows;
}

std::size_t NotesOn(const std::string& profile) {
  return Costed(profile, DagOf("1f1b", 1, 4), Blocking(0)).notes.size();
}

// The host's times of all computations of a clock err alike, by 25 us, and standard errors that say
// 5 us do not know it (docs/evidence/evidence.md).
TEST(DefaultClockCosts, WhatTheHostsClockErrsByIsNoWarning) {
  constexpr double kErrs = 25e-6;
  constexpr double kSays = 5e-6;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const double seconds : {0.001, 0.004, 0.02}) {
    for (int seed = 0; seed < 500; ++seed) {
      const double default_clocks = seconds + kErrs / std::sqrt(2) * normal(random);
      const double locked = seconds + kErrs / std::sqrt(2) * normal(random);
      ASSERT_EQ(NotesOn(ProfileTimed(default_clocks, locked, kSays)), 0) << seconds << ", " << seed;
    }
  }
}

TEST(DefaultClockCosts, TwoPercentOfAComputationOnAGpuIsSaid) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (const double seconds : {0.01, 0.05, 0.2}) {
    const double error = 0.001 * seconds;
    for (int seed = 0; seed < 200; ++seed) {
      const double default_clocks = 0.98 * seconds + error * normal(random);
      const double locked = seconds + error * normal(random);
      ASSERT_EQ(NotesOn(ProfileTimed(default_clocks, locked, error)), 1) << seconds << ", " << seed;
    }
  }
}

// 2 % less time, of which one of the two rows is sure.
TEST(DefaultClockCosts, TheErrorsOfBothRowsCount) {
  for (const auto& [default_clocks_error, locked_error, notes] :
       {std::tuple(0.0001, 0.0001, 1U), {0.001, 0.0001, 0U}, {0.0001, 0.001, 0U}}) {
    std::string rows = "stage,instruction,frequency,time,energy,time_std\n";
    for (const char* const kind : {"0,forward", "0,backward"}) {
      rows += fmt::format("{},1400,0.1,100,{}\n{},default,0.098,100,{}\n", kind, locked_error, kind,
                          default_clocks_error);
    }
    EXPECT_EQ(NotesOn(rows), notes) << default_clocks_error << ", " << locked_error;
  }
}

TEST(DefaultClockCosts, WithoutAllRowsWithNoClockSetNothingIsComparedWithIt) {
  const CostedPipeline pipeline =
      Costed(std::string(kBothLocked) + "0,forward,default,0.9,120\n0,backward,default,1.8,240\n",
             DagOf("1f1b", 2, 1), Blocking(10));
  EXPECT_FALSE(model::DefaultClockIterationOf(pipeline));
  ASSERT_EQ(pipeline.notes.size(), 1);
  EXPECT_THAT(pipeline.notes[0].text, Mentions("forward", "1", "default"));
}

TEST(DefaultClockCosts, RowsWithNoClockSetAreSplitJoinedAndMultipliedAsOthers) {
  const auto whole_of = [](const std::string& stage) {
    return stage + ",forward,1400,1,100\n" + stage + ",backward,1400,2,200\n" + stage +
           ",forward,default,0.9,120\n" + stage + ",backward,default,1.8,240\n";
  };
  const std::string whole = whole_of("0");
  CostSpec spec = Blocking(0);
  spec.split_ratio = 0.25;
  spec.tensor_parallel = 2;
  const CostedPipeline split =
      Costed(whole + whole_of("1"), DagOf("zbv-zero-bubble", 2, 2, {}, 2), spec);
  std::map<ComputationType, CostOption> costs;
  for (const CostTable& table : split.tables) costs[table.type] = table.default_clocks.value();
  EXPECT_DOUBLE_EQ(costs[ComputationType::kBackwardInput].time_seconds, 0.45);
  EXPECT_DOUBLE_EQ(costs[ComputationType::kBackwardInput].energy_joules, 120);
  EXPECT_DOUBLE_EQ(costs[ComputationType::kBackwardWeight].time_seconds, 1.35);
  EXPECT_DOUBLE_EQ(costs[ComputationType::kForward].energy_joules, 240);
  const std::string halves =
      "0,forward,1400,1,100\n0,backward_input,1400,1,100\n0,backward_weight,1400,1,100\n"
      "0,backward_input,default,0.9,110\n0,backward_weight,default,0.8,120\n";
  const CostedPipeline joined = Costed(halves, DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_FALSE(joined.TableOf(0).default_clocks);
  ASSERT_TRUE(joined.TableOf(1).default_clocks);
  EXPECT_DOUBLE_EQ(joined.TableOf(1).default_clocks->time_seconds, 1.7);
  EXPECT_DOUBLE_EQ(joined.TableOf(1).default_clocks->energy_joules, 230);
  CostSpec work = Blocking(0);
  work.work.Set({ComputationType::kForward, 0, 0}, 3);
  const CostedPipeline more = Costed(whole, DagOf("1f1b", 1, 1), work);
  EXPECT_DOUBLE_EQ(more.TableOf(0).default_clocks->time_seconds, 2.7);
  EXPECT_DOUBLE_EQ(more.TableOf(0).default_clocks->energy_joules, 360);
}

}  // namespace
}  // namespace perseus
