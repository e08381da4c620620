// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "analyse/sweep_text.h"
#include "perseus/analysis.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using analyse::ParseSweep;
using plan_testing::ProfileOf;
using plan_testing::RandomRows;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kLittlePerPoint = 0.01;  // Effort.

JobShape JobOf(const Profile& profile) {
  JobShape job;
  job.profile = &profile;
  job.schedule = {.name = "1f1b", .num_stages = profile.num_stages, .num_microbatches = 4};
  job.costs.blocking_power_watts = {70};
  return job;
}

SweepSpec SweepOf(const std::vector<std::string>& texts) {
  SweepSpec sweep;
  sweep.effort = kLittlePerPoint;
  for (const std::string& text : texts) {
    const auto parsed = ParseSweep(text, &sweep);
    EXPECT_TRUE(parsed) << parsed.error().message;
  }
  return sweep;
}

std::vector<SweepRow> Swept(const JobShape& job, const std::vector<std::string>& texts) {
  auto rows = SweepShapes(job, SweepOf(texts));
  EXPECT_TRUE(rows) << rows.error().message;
  return rows ? *std::move(rows) : std::vector<SweepRow>();
}

Profile RandomProfile(int stages) {
  std::mt19937 random(61);
  return ProfileOf(RandomRows(random, {.stages = stages, .clocks = 4, .noise = 0.05}));
}

TEST(ParseSweepTest, ReadsLists) {
  SweepSpec sweep = SweepOf({"microbatches=8,16,32", "schedule=1F1B,zbv", "stages=4",
                             "virtual_stages=1,2", "microbatches=16,64"});
  EXPECT_THAT(sweep.microbatches, ElementsAre(8, 16, 32, 64));
  EXPECT_THAT(sweep.schedules, ElementsAre("1f1b", "zbv-zero-bubble"));
  EXPECT_THAT(sweep.stages, ElementsAre(4));
  EXPECT_THAT(sweep.virtual_stages, ElementsAre(1, 2));
  // Spaces around commas are no part of a value.
  sweep = SweepOf({"microbatches=8, 16", "schedule=1f1b , gpipe"});
  EXPECT_THAT(sweep.microbatches, ElementsAre(8, 16));
  EXPECT_THAT(sweep.schedules, ElementsAre("1f1b", "gpipe"));
}

TEST(ParseSweepTest, SaysWhatIsWrong) {
  SweepSpec sweep;
  const auto message = [&](const std::string& text) {
    const auto parsed = ParseSweep(text, &sweep);
    EXPECT_FALSE(parsed) << text;
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_THAT(message("microbatch=8"), Mentions("'microbatches'"));
  EXPECT_THAT(message("microbatches"), Mentions("microbatches=8,16,32"));
  EXPECT_THAT(message(""), Mentions("swept;"));
  EXPECT_THAT(message("stages"), Mentions("stages=8,16,32"));
  EXPECT_THAT(message("schedule"), Mentions("schedule=1f1b,gpipe"));
  for (const char* text : {"stages=", "stages=4,", "stages=,4", "stages=4.5", "stages=0",
                           "stages=-2", "stages=9999999999999", "stages=4 8"}) {
    EXPECT_THAT(message(text), Mentions("value", "stages")) << text;
  }
  EXPECT_THAT(message("schedule=1f1c"), Mentions("1f1b"));
  // All of the values, or none.
  EXPECT_FALSE(ParseSweep("stages=2,x", &sweep));
  EXPECT_THAT(sweep.stages, IsEmpty());
}

TEST(SweepShapesTest, RowsAreWhatThePlannerSays) {
  const Profile profile = RandomProfile(4);
  const JobShape job = JobOf(profile);
  const auto rows = Swept(job, {"schedule=1f1b,gpipe", "microbatches=3,5"});
  ASSERT_THAT(rows, SizeIs(4));
  int k = 0;
  for (const std::string name : {"1f1b", "gpipe"}) {
    for (const int microbatches : {3, 5}) {
      const SweepRow& row = rows[k++];
      auto pipeline = CostPipeline(profile, plan_testing::DagOf(name, 4, microbatches), job.costs);
      ASSERT_TRUE(pipeline);
      const auto planner = Planner::Create(*std::move(pipeline), {});
      ASSERT_TRUE(planner);
      const Plan& baseline = planner->baseline();
      const auto plan =
          planner->PlanFor(baseline.iteration_time_seconds, {.effort = kLittlePerPoint});
      ASSERT_TRUE(plan);
      EXPECT_EQ(row.why_not, "");
      EXPECT_EQ(row.schedule.name, name);
      EXPECT_EQ(row.schedule.num_microbatches, microbatches);
      EXPECT_EQ(row.baseline_seconds, baseline.iteration_time_seconds);
      EXPECT_EQ(row.baseline_joules, baseline.energy_joules);
      EXPECT_EQ(row.iteration_time_seconds, plan->iteration_time_seconds);
      EXPECT_EQ(row.energy_joules, plan->energy_joules);
      EXPECT_EQ(row.lower_bound_joules, plan->lower_bound_joules);
      EXPECT_EQ(row.saving_percent, plan->saving_percent);
      EXPECT_DOUBLE_EQ(row.seconds_per_microbatch, plan->iteration_time_seconds / microbatches);
      EXPECT_DOUBLE_EQ(row.joules_per_microbatch, plan->energy_joules / microbatches);
    }
  }
}

TEST(SweepShapesTest, NothingToSweepIsTheJobItself) {
  const Profile profile = RandomProfile(2);
  const auto rows = Swept(JobOf(profile), {});
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].schedule.num_microbatches, 4);
  EXPECT_GT(rows[0].energy_joules, 0);
}

TEST(SweepShapesTest, TheBubbleOfEqualStages) {
  const Profile profile = ProfileOf(
      "0,forward,1400,1,300\n0,backward,1400,2,600\n1,forward,1400,1,300\n"
      "1,backward,1400,2,600\n2,forward,1400,1,300\n2,backward,1400,2,600\n");
  for (const SweepRow& row : Swept(JobOf(profile), {"microbatches=1,4,10"})) {
    const int m = row.schedule.num_microbatches;
    EXPECT_NEAR(row.bubble_percent, 100.0 * 2 / (m + 2), 1e-9);
  }
}

TEST(SweepShapesTest, MergedStagesHaveTheBoundariesThatAreLeft) {
  const Profile profile = RandomProfile(6);
  JobShape job = JobOf(profile);
  job.schedule.num_microbatches = 1;  // Goes through all stages and back.
  const auto without = Swept(job, {"stages=3"});
  job.fixed.comm_delay_seconds = {100, 0.25, 100, 0.5, 100};
  const auto with = Swept(job, {"stages=3"});
  ASSERT_THAT(with, SizeIs(1));
  ASSERT_EQ(with[0].why_not, "");
  EXPECT_NEAR(with[0].baseline_seconds - without[0].baseline_seconds, 2 * (0.25 + 0.5), 1e-9);
}

TEST(SweepShapesTest, ShapesThatCannotBeBuiltSayWhy) {
  const Profile profile = RandomProfile(4);
  JobShape job = JobOf(profile);
  const auto why = [&](const std::vector<std::string>& texts) {
    const auto rows = Swept(job, texts);
    EXPECT_THAT(rows, SizeIs(1));
    EXPECT_EQ(rows[0].baseline_seconds, 0);
    EXPECT_EQ(rows[0].energy_joules, 0);
    return rows[0].why_not;
  };
  EXPECT_THAT(why({"virtual-stages=2"}), Mentions("1f1b", "runs"));
  EXPECT_THAT(why({"virtual-stages=3", "schedule=looped-bfs"}), Mentions("multiple"));
  EXPECT_THAT(why({"stages=3"}), Mentions("4", "3"));
  EXPECT_THAT(why({"stages=8"}), Mentions("merged"));
  job.costs.blocking_power_watts = {70, 71, 72, 73};
  EXPECT_THAT(why({"stages=2"}), Mentions("4", "2"));
}

TEST(SweepShapesTest, TheJobsGroupsAreMegatronsAlone) {
  const Profile profile = RandomProfile(4);
  JobShape job = JobOf(profile);
  job.schedule.name = "Megatron_Interleaved";
  job.schedule.virtual_stages = 2;
  job.schedule.microbatch_group_size = 4;
  const auto rows = Swept(job, {"schedule=megatron-interleaved,looped-bfs"});
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].why_not, "");
  EXPECT_EQ(rows[0].schedule.microbatch_group_size, 4);
  EXPECT_EQ(rows[1].why_not, "");
  EXPECT_EQ(rows[1].schedule.microbatch_group_size, std::nullopt);
}

TEST(SweepShapesTest, IsBounded) {
  const Profile profile = RandomProfile(2);
  SweepSpec sweep;
  for (int k = 1; k <= 40; ++k) sweep.microbatches.push_back(k);
  for (int k = 1; k <= 26; ++k) sweep.virtual_stages.push_back(k);
  const auto many = SweepShapes(JobOf(profile), sweep);
  ASSERT_FALSE(many);
  EXPECT_THAT(many.error().message, Mentions("1000"));
  sweep.virtual_stages.clear();
  sweep.microbatches = {1000000, 999999};
  const auto large = SweepShapes(JobOf(profile), sweep);
  ASSERT_FALSE(large);
  EXPECT_THAT(large.error().message, Mentions("7999996"));
  sweep = SweepOf({});
  sweep.effort = 0;
  EXPECT_FALSE(SweepShapes(JobOf(profile), sweep));
  EXPECT_FALSE(SweepShapes(JobShape{}, SweepOf({})));
}

TEST(SweepShapesTest, ReportsProgress) {
  const Profile profile = RandomProfile(2);
  std::vector<double> shares;
  const auto rows =
      SweepShapes(JobOf(profile), SweepOf({"microbatches=1,2,3"}), [&](const Progress& now) {
        shares.push_back(now.share);
        return true;
      });
  ASSERT_TRUE(rows);
  ASSERT_THAT(shares, SizeIs(3));
  EXPECT_THAT(shares, testing::WhenSorted(testing::ContainerEq(shares)));
  EXPECT_EQ(shares.back(), 1);
  const auto stopped = SweepShapes(JobOf(profile), SweepOf({"microbatches=1,2,3"}),
                                   [](const Progress&) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kCancelled);
}

}  // namespace
}  // namespace perseus
