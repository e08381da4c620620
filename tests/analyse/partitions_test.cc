// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "perseus/analysis.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::ProfileOf;
using plan_testing::RandomRows;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kLittleEach = 0.01;  // Effort.

JobShape JobOf(const Profile& profile, int microbatches) {
  JobShape job;
  job.profile = &profile;
  job.schedule = {
      .name = "1f1b", .num_stages = profile.num_stages, .num_microbatches = microbatches};
  job.costs.blocking_power_watts = {70};
  return job;
}

std::vector<PartitionResult> Analysed(const JobShape& job, const std::vector<int>& layers) {
  auto results = AnalysePartitions(job, layers, kLittleEach);
  EXPECT_TRUE(results) << results.error().message;
  return results ? *std::move(results) : std::vector<PartitionResult>(3);
}

double BaselineSeconds(const OptionTable& table) {
  return table.options[table.baseline].time_seconds;
}

// The last stage longer by a factor.
Profile WithHead(Profile profile, double factor) {
  for (OptionTable& table : profile.tables) {
    if (table.stage + 1 != profile.num_stages) continue;
    for (Option& option : table.options) {
      option.time_seconds *= factor;
      option.energy_joules *= factor;
    }
  }
  return profile;
}

TEST(PartitionsTest, ShowsWhatAHeavyHeadCosts) {
  std::mt19937 random(51);
  const Profile profile = WithHead(ProfileOf(RandomRows(random, {.stages = 4, .clocks = 6})), 1.8);
  const auto results = Analysed(JobOf(profile, 16), {8, 8, 8, 8});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].name, "as measured");
  EXPECT_THAT(results[0].layers, ElementsAre(8, 8, 8, 8));
  EXPECT_EQ(results[1].name, "best partition");
  EXPECT_LT(results[1].layers.back(), 8);
  EXPECT_EQ(results[2].name, "perfectly even");
  EXPECT_THAT(results[2].layers, IsEmpty());
  EXPECT_NEAR(results[2].imbalance, 1, 1e-12);
  for (const PartitionResult& result : results) {
    EXPECT_EQ(result.why_not, "");
    EXPECT_GE(result.imbalance, 1 - 1e-12);
    EXPECT_LE(result.iteration_time_seconds, result.baseline_seconds);
    EXPECT_LE(result.energy_joules, result.baseline_joules);
    EXPECT_NEAR(result.saving_percent, 100 * (1 - result.energy_joules / result.baseline_joules),
                1e-9);
  }
  EXPECT_LT(results[1].baseline_seconds, results[0].baseline_seconds);
  EXPECT_LT(results[1].baseline_joules, results[0].baseline_joules);
  EXPECT_LT(results[1].imbalance, results[0].imbalance);
}

TEST(PartitionsTest, SaysWhereNoneIsBetter) {
  std::mt19937 random(52);
  const Profile profile = ProfileOf(RandomRows(random, {.stages = 3, .clocks = 3}));
  const auto results = Analysed(JobOf(profile, 6), {2, 2, 2});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[1].name, "best partition (as measured)");
  EXPECT_THAT(results[1].layers, ElementsAre(2, 2, 2));
  EXPECT_EQ(results[1].energy_joules, results[0].energy_joules);
}

// One microbatch goes through all stages, whichever is the slowest.
TEST(PartitionsTest, AFasterSlowestStageMayBeNoFasterPipeline) {
  std::mt19937 random(56);
  const Profile profile = WithHead(ProfileOf(RandomRows(random, {.stages = 4})), 1.8);
  const auto results = Analysed(JobOf(profile, 1), {8, 8, 8, 8});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[1].name, "best partition (as measured)");
  EXPECT_THAT(results[1].layers, ElementsAre(8, 8, 8, 8));
  EXPECT_EQ(results[1].baseline_seconds, results[0].baseline_seconds);
}

TEST(PartitionsTest, WithoutLayersThereAreTwoRows) {
  std::mt19937 random(53);
  const Profile profile = ProfileOf(RandomRows(random, {.stages = 2}));
  const auto results = Analysed(JobOf(profile, 4), {});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_THAT(results[0].layers, IsEmpty());
  EXPECT_EQ(results[1].name, "perfectly even");
}

// Even stages take (microbatches + stages - 1) (forward + backward). A pipeline
// whose last stage is no faster than the mean cannot be faster than that: the
// first microbatch passes all stages, and then the last one takes its time
// for each of the others.
TEST(PartitionsTest, EvenStagesAreNoSlowerThanAPipelineWithAHeavyHead) {
  std::mt19937 random(54);
  int slower = 0;
  for (int round = 0; round < 20; ++round) {
    const int stages = 2 + static_cast<int>(random() % 4);
    const int microbatches = 1 + static_cast<int>(random() % 10);
    const Profile profile =
        WithHead(ProfileOf(RandomRows(random, {.stages = stages, .noise = 0.1})), 1.4);
    double all_seconds = 0;
    for (const OptionTable& table : profile.tables) all_seconds += BaselineSeconds(table);
    const auto results = Analysed(JobOf(profile, microbatches), {});
    EXPECT_NEAR(results[1].baseline_seconds, (microbatches + stages - 1) * all_seconds / stages,
                1e-9);
    EXPECT_LE(results[1].baseline_seconds, results[0].baseline_seconds * (1 + 1e-12));
    if (results[1].baseline_seconds < 0.99 * results[0].baseline_seconds) ++slower;
  }
  EXPECT_GT(slower, 10);
}

TEST(PartitionsTest, StagesWithoutCommonKnobsAreSaid) {
  const Profile profile = ProfileOf(
      "0,forward,1400,1,9\n0,forward,1200,2,8\n0,backward,1400,1,9\n0,backward,1200,2,8\n"
      "1,forward,1400,1,9\n1,forward,1000,2,8\n1,backward,1400,1,9\n1,backward,1000,2,8\n");
  const auto results = Analysed(JobOf(profile, 4), {});
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[0].why_not, "");
  EXPECT_THAT(results[1].why_not, Mentions("stages", "0", "1"));
  EXPECT_EQ(results[1].baseline_seconds, 0);
}

TEST(PartitionsTest, BadInputIsSaid) {
  std::mt19937 random(55);
  const Profile profile = ProfileOf(RandomRows(random, {.stages = 3}));
  JobShape job = JobOf(profile, 4);
  EXPECT_FALSE(AnalysePartitions(job, {1, 2}, kLittleEach));
  EXPECT_FALSE(AnalysePartitions(job, {}, 0));
  job.schedule.num_microbatches = 0;
  EXPECT_FALSE(AnalysePartitions(job, {}, kLittleEach));
  job.profile = nullptr;
  EXPECT_FALSE(AnalysePartitions(job, {}, kLittleEach));
}

}  // namespace
}  // namespace perseus
