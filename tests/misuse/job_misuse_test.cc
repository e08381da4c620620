// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "misuse/misuse_testing.h"
#include "perseus/plan_file.h"
#include "perseus/schedule.h"
#include "perseus/stream.h"

namespace perseus::misuse {
namespace {

JobFile WithConditions() {
  JobFile settings = SmallSettings();
  settings.noise = 0.02;
  settings.max_slowdown = 0.02;
  return settings;
}

TEST(JobPlanTest, TheOneEntryHonoursTheConditions) {
  const auto job = Job::Make(SmallProfile(), WithConditions());
  ASSERT_TRUE(job) << job.error().message;
  const auto made = job->Plan();
  ASSERT_TRUE(made) << made.error().message;
  ASSERT_TRUE(made->held && made->expected && made->expected_of_paper_plan);
  EXPECT_EQ(made->document.conditions, ConditionsOf(job->settings));
  EXPECT_EQ(made->document.expected, made->expected);
  EXPECT_EQ(made->document.energy_joules, made->plan.energy_joules);
  const auto alone = job->MakePlan(made->planner);
  ASSERT_TRUE(alone) << alone.error().message;
  EXPECT_EQ(alone->energy_joules, made->plan.energy_joules);
}

TEST(JobPlanTest, WithoutConditionsNothingIsExpected) {
  const auto made = SmallJob().Plan();
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(made->held || made->expected || made->document.conditions);
  EXPECT_GT(made->plan.saving_percent, 0);
}

TEST(JobPlanTest, ACallbackThatSaysNoCancels) {
  for (const JobFile& settings : {SmallSettings(), WithConditions()}) {
    const auto job = Job::Make(SmallProfile(), settings);
    const auto made = job->Plan(*job->MakePlanner(), [](const Progress&) { return false; });
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().code, ErrorCode::kCancelled);
  }
}

TEST(JobMisuse, AStreamKnowsNoConditionsAndSaysSo) {
  const auto job = Job::Make(SmallProfile(), WithConditions());
  EXPECT_TRUE(IsInvalid(job->MakeStream()));
  EXPECT_TRUE(SmallJob().MakeStream());
}

TEST(JobMisuse, SettingsByHandAreChecked) {
  const auto make = [](const JobFile& settings) { return Job::Make(SmallProfile(), settings); };
  EXPECT_TRUE(IsInvalid(make({})));
  JobFile settings = SmallSettings();
  settings.microbatches = -3;
  EXPECT_FALSE(make(settings));
  settings = SmallSettings();
  settings.virtual_stages = 0;
  EXPECT_FALSE(make(settings));
  settings = SmallSettings();
  settings.blocking_power_watts = {kNan};
  EXPECT_TRUE(IsInvalid(make(settings)));
  settings = SmallSettings();
  settings.comm_delay_seconds = {-1};
  EXPECT_EQ(FieldOf(make(settings)), "comm_delay");
  settings = SmallSettings();
  settings.work = WorkSetting{.file = "", .factors = {1, 1, 1, kNan}};
  EXPECT_TRUE(IsInvalid(make(settings)));
  settings = SmallSettings();
  settings.stages = 5;
  EXPECT_EQ(FieldOf(make(settings)), "stages");
}

TEST(JobMisuse, ErrorsOfAFileHaveAPlace) {
  const auto job =
      ParseJobFile("microbatches = 4\nschedule = 7\n", "job.toml", JobFileFormat::kToml);
  ASSERT_FALSE(job);
  EXPECT_EQ(job.error().file, "job.toml");
  EXPECT_EQ(job.error().line, 2);
  EXPECT_GT(job.error().column, 0);
  const auto schedule = ParseSchedule("0F0,0B0\n0X0\n", "s.csv");
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().line, 2);
}

TEST(ScheduleMisuse, ASchedulesShapeIsChecked) {
  Schedule schedule = *BuildSchedule({.name = "1f1b", .num_stages = 2, .num_microbatches = 4});
  const auto refused = [](const Schedule& wrong) { return !BuildDag(wrong, {}); };
  EXPECT_FALSE(refused(schedule));
  EXPECT_TRUE(refused(Schedule()));
  Schedule wrong = schedule;
  wrong.ranks[0][0].id.type = static_cast<ComputationType>(50);
  EXPECT_TRUE(refused(wrong));
  wrong = schedule;
  wrong.ranks[0][0].id.microbatch = -1;
  EXPECT_TRUE(refused(wrong));
  wrong = schedule;
  wrong.ranks[0][0].id.stage = 100;
  EXPECT_TRUE(refused(wrong));
  wrong = schedule;
  wrong.num_ranks = 5;
  EXPECT_TRUE(refused(wrong));
  wrong = schedule;
  wrong.num_microbatches = 2'000'000'000;
  EXPECT_TRUE(refused(wrong));
  wrong = schedule;
  wrong.ranks[1].clear();
  EXPECT_TRUE(refused(wrong));
  EXPECT_FALSE(BuildSchedule({.name = "1f1b", .num_stages = -1, .num_microbatches = 4}));
  EXPECT_FALSE(BuildSchedule({}));
}

TEST(StreamMisuse, NumbersOfAStepAreChecked) {
  const auto stream = SmallJob().MakeStream();
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream->PlanFor(Work({1, 2, 1, 1})));
  EXPECT_FALSE(stream->PlanFor(Work({1, kNan})));
  EXPECT_FALSE(stream->PlanFor(Work({1, 1, 1, 1, 1})));
  EXPECT_FALSE(stream->PlanFor(Work(), kNan));
  EXPECT_FALSE(stream->PlanFor(Work(), std::numeric_limits<double>::infinity()));
  StreamOptions options;
  options.effort = -1;
  EXPECT_FALSE(stream->With(options).PlanFor(Work()));
}

}  // namespace
}  // namespace perseus::misuse
