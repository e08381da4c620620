// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "misuse/misuse_testing.h"
#include "perseus/planner.h"
#include "perseus/stream.h"
#include "perseus/work.h"

namespace perseus::misuse {
namespace {

struct WrongProfile {
  std::string field;
  std::function<void(Profile*)> change;
};

std::vector<WrongProfile> WrongProfiles() {
  const auto option = [](Profile* p) -> Option& { return p->tables[1].options[2]; };
  return {
      {"knob", [=](Profile* p) { option(p).knob = 3; }},
      {"knob", [=](Profile* p) { option(p).knob = -1; }},
      {"knob", [=](Profile* p) { option(p).knob = 1; }},
      {"time_seconds", [=](Profile* p) { option(p).time_seconds = 0; }},
      {"time_seconds", [=](Profile* p) { option(p).time_seconds = -1; }},
      {"time_seconds", [=](Profile* p) { option(p).time_seconds = kNan; }},
      {"time_seconds", [=](Profile* p) { option(p).time_seconds = kInfinite; }},
      {"energy_joules", [=](Profile* p) { option(p).energy_joules = -5; }},
      {"energy_joules", [=](Profile* p) { option(p).energy_joules = kNan; }},
      {"time_std_seconds", [=](Profile* p) { option(p).time_std_seconds = -1; }},
      {"time_std_seconds", [=](Profile* p) { option(p).energy_std_joules = kNan; }},
      {"options", [](Profile* p) { p->tables[2].options.clear(); }},
      {"baseline", [](Profile* p) { p->tables[0].baseline = 3; }},
      {"baseline", [](Profile* p) { p->tables[0].baseline = -1; }},
      {"tables", [](Profile* p) { p->tables.clear(); }},
      {"tables", [](Profile* p) { std::swap(p->tables[0], p->tables[1]); }},
      {"tables", [](Profile* p) { p->tables[1] = p->tables[0]; }},
      {"tables", [](Profile* p) { p->tables[3].stage = 7; }},
      {"tables", [](Profile* p) { p->tables[3].type = static_cast<ComputationType>(9); }},
      {"tables", [](Profile* p) { p->num_stages = 3; }},
      {"tables", [](Profile* p) { p->num_stages = 1; }},
      {"num_stages", [](Profile* p) { p->num_stages = 0; }},
      {"num_stages", [](Profile* p) { p->num_stages = -1; }},
      {"stage", [](Profile* p) { p->tables[0].stage = -1; }},
      {"knobs", [](Profile* p) { p->knobs.clear(); }},
      {"knobs", [](Profile* p) { p->knobs[1].label.clear(); }},
      {"knobs", [](Profile* p) { p->knobs[1].label = p->knobs[0].label; }},
      {"knobs", [](Profile* p) { p->knobs[1].number = kNan; }},
      {"knobs", [](Profile* p) { std::swap(p->knobs[0], p->knobs[1]); }},
      {"tensor_parallel_ranks", [](Profile* p) { p->tensor_parallel_ranks = -2; }},
  };
}

PipelineDag SmallDag() {
  const auto schedule = BuildSchedule({.name = "1f1b", .num_stages = 2, .num_microbatches = 4});
  return *BuildDag(*schedule, {});
}

TEST(ProfileMisuse, EveryDoorRefusesWhatCanBeNoProfile) {
  ASSERT_TRUE(SmallProfile().Validate());
  const CostSpec costs = {.blocking_power_watts = {70}};
  int number = 0;
  for (const WrongProfile& wrong : WrongProfiles()) {
    SCOPED_TRACE(testing::Message() << "profile " << number++);
    Profile profile = SmallProfile();
    wrong.change(&profile);
    EXPECT_EQ(FieldOf(profile.Validate()), wrong.field);
    EXPECT_EQ(FieldOf(CostPipeline(profile, SmallDag(), costs)), wrong.field);
    EXPECT_EQ(FieldOf(Job::Make(profile, SmallSettings())), wrong.field);
    EXPECT_EQ(FieldOf(StreamPlanner::Create(profile, SmallDag(), costs, {})), wrong.field);
    EXPECT_EQ(FieldOf(MakeWork(WorkTable(), TokenRule(), profile, 4, {})), wrong.field);
  }
}

TEST(ProfileMisuse, NothingAtAllIsRefused) {
  EXPECT_TRUE(IsInvalid(Profile().Validate()));
  EXPECT_TRUE(IsInvalid(Job::Make(Profile(), SmallSettings())));
  EXPECT_TRUE(IsInvalid(ProfileBuilder().Build()));
}

TEST(ProfileMisuse, TheBuilderIsAsStrictAsAFile) {
  const auto build = [](int stage, double mhz, double seconds, double joules) {
    return ProfileBuilder("mine")
        .Add(0, ComputationType::kForward, 1400, 1, 1)
        .Add(stage, ComputationType::kBackward, mhz, seconds, joules)
        .Build();
  };
  ASSERT_TRUE(build(0, 1400, 1, 1));
  for (const auto& wrong :
       {build(-1, 1400, 1, 1), build(2, 1400, 1, 1), build(0, 1400, -1, 1), build(0, 1400, kNan, 1),
        build(0, 1400, 1, -1), build(0, 1400, 1, kInfinite), build(0, -5, 1, 1),
        build(0, kNan, 1, 1)}) {
    EXPECT_TRUE(IsInvalid(wrong));
  }
  const auto negative = build(0, 1400, 1, -1);
  EXPECT_EQ(negative.error().file, "mine");
  EXPECT_EQ(negative.error().line, 3);
  EXPECT_GT(negative.error().column, 0);
  EXPECT_TRUE(IsInvalid(
      ProfileBuilder().Add(0, ComputationType::kForward, "1400\n0,backward,1,1,1", 1, 1).Build()));
  const auto labels = ProfileBuilder()
                          .Add(0, ComputationType::kForward, "fast, \"1\"", 1, 2)
                          .Add(0, ComputationType::kForward, "slow", 2, 1)
                          .Add(0, ComputationType::kBackward, "slow", 2, 1)
                          .Build();
  ASSERT_TRUE(labels) << labels.error().message;
  EXPECT_EQ(labels->knobs[0].label, "fast, \"1\"");
}

TEST(WorkMisuse, WhatIsNoFactorIsNotDropped) {
  const Profile profile = SmallProfile();
  const auto refused = [&](const ComputationId& id, double factor) {
    CostSpec costs = {.blocking_power_watts = {70}};
    costs.work.Set(id, factor);
    return IsInvalid(CostPipeline(profile, SmallDag(), costs));
  };
  const ComputationId good = {ComputationType::kForward, 1, 2};
  EXPECT_FALSE(refused(good, 2));
  for (const double factor : {-1.0, 0.0, kNan, kInfinite, 1e-9, 1e9}) {
    EXPECT_TRUE(refused(good, factor)) << factor;
  }
  EXPECT_TRUE(refused({ComputationType::kForward, 2, 0}, 2));
  EXPECT_TRUE(refused({ComputationType::kForward, -1, 0}, 2));
  EXPECT_TRUE(refused({ComputationType::kForward, 0, 4}, 2));
  EXPECT_TRUE(refused({ComputationType::kForward, 0, -1}, 2));
  EXPECT_TRUE(refused({ComputationType::kForward, 2'000'000'000, 2'000'000'000}, 2));
  EXPECT_TRUE(refused({ComputationType::kBackwardInput, 0, 0}, 2));
  EXPECT_TRUE(refused({static_cast<ComputationType>(200), 0, 0}, 2));
  EXPECT_EQ(Work().FactorOf({ComputationType::kForward, -3, -3}), 1);
}

TEST(WorkMisuse, FactorsOfMicrobatchesAreChecked) {
  for (const std::vector<double>& factors :
       {std::vector<double>{1, kNan}, {1, 1, 1, 1, 1}, {-1}, {0}}) {
    CostSpec costs = {.blocking_power_watts = {70}, .work = Work(factors)};
    EXPECT_TRUE(IsInvalid(CostPipeline(SmallProfile(), SmallDag(), costs)));
  }
}

TEST(CostMisuse, NumbersOfTheSpecAreChecked) {
  for (const std::vector<double>& watts :
       {std::vector<double>{}, {1, 2, 3}, {-1}, {kNan}, {kInfinite}}) {
    EXPECT_TRUE(
        IsInvalid(CostPipeline(SmallProfile(), SmallDag(), {.blocking_power_watts = watts})));
  }
  for (const double ratio : {0.0, 1.0, -1.0, kNan}) {
    EXPECT_TRUE(IsInvalid(CostPipeline(SmallProfile(), SmallDag(),
                                       {.blocking_power_watts = {70}, .split_ratio = ratio})));
  }
  EXPECT_TRUE(IsInvalid(CostPipeline(SmallProfile(), SmallDag(),
                                     {.blocking_power_watts = {70}, .tensor_parallel = -1})));
}

TEST(NameMisuse, AnyNumberHasAName) {
  EXPECT_EQ(ComputationTypeName(static_cast<ComputationType>(200)), "?");
  EXPECT_EQ(ComputationTypeLetter(static_cast<ComputationType>(200)), '?');
}

}  // namespace
}  // namespace perseus::misuse
