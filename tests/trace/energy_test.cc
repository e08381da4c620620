// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "trace/made_up_trace.h"
#include "trace/trace_answer.h"
#include "trace/trace_energy.h"
#include "trace/what_if.h"

namespace perseus::trace {
namespace {

class TraceEnergyTest : public ::testing::Test {
 protected:
  void Compute(const MadeUpJob& job, int detector_steps = 2) {
    auto recording = ParseRecording(MadeUpTrace(job), "t.csv");
    ASSERT_TRUE(recording) << recording.error().message;
    recording_ = *recording;
    auto links = LinkOperations(recording_);
    ASSERT_TRUE(links) << links.error().message;
    links_ = *links;
    auto profile = ParseProfile(MadeUpProfile(2), "p.csv");
    ASSERT_TRUE(profile) << profile.error().message;
    profile_ = *profile;
    TraceEnergySpec spec;
    spec.costs = {&profile_, 20, 1};
    spec.detector_steps = detector_steps;
    const auto energy = ComputeTraceEnergy(recording_, links_, spec);
    ASSERT_TRUE(energy) << energy.error().message;
    energy_ = *energy;
    for (const TracePlanOutcome& plan : energy_.plans) plans_[plan.key] = plan;
  }

  Recording recording_;
  Links links_;
  Profile profile_;
  TraceEnergy energy_;
  std::map<std::string, TracePlanOutcome> plans_;
};

TEST_F(TraceEnergyTest, IsThePowerTimesTheTimeAtMaximumClocks) {
  Compute({});
  // A pipeline: 6 forwards of 300 J, 6 backwards of 620 J; ranks wait the rest at 20 W.
  const double step = 12.54;  // As in what_if_test.cc.
  const double computing = 6 * 300 + 6 * 620;
  const double waiting = 20 * (2 * step - 6 * 1 - 6 * 2);
  EXPECT_NEAR(energy_.step_seconds, step, 1e-9);
  EXPECT_NEAR(energy_.energy_joules, 2 * (computing + waiting), 1e-6);
  EXPECT_NEAR(energy_.blocking_joules, 2 * waiting, 1e-6);
  EXPECT_NEAR(energy_.useful_joules + energy_.intrinsic_joules + energy_.extrinsic_joules +
                  energy_.blocking_joules,
              energy_.energy_joules, 1e-6);
  EXPECT_GT(energy_.intrinsic_joules, 0);
  EXPECT_NEAR(energy_.extrinsic_joules, 0, 1e-6);
  // Every step is as the plan for the mean expects.
  EXPECT_NEAR(plans_["static"].slowdown_percent, 0, 1e-9);
  EXPECT_GT(plans_["static"].saving_percent, 1);
}

TEST_F(TraceEnergyTest, AnswersAPipelineThatIsSlowerThanAnyFactor) {
  MadeUpJob job;
  job.pipelines = 3;
  job.steps = 4;
  job.seconds = [](int, int pipeline, int, int, bool forward) {
    return (forward ? 1.0 : 2.0) * (pipeline == 1 ? 1e7 : 1.0);
  };
  Compute(job);
  EXPECT_GT(energy_.stragglers_answered, 0);
  EXPECT_LT(plans_["static-stragglers"].energy_joules, plans_["static"].energy_joules - 1);
}

TEST_F(TraceEnergyTest, PlansKeepTheTimeAndSaveTheBloat) {
  MadeUpJob job;
  job.microbatches = 6;
  job.seconds = [](int step, int pipeline, int stage, int m, bool forward) {
    const double length = 1 + 0.5 * ((step * 5 + pipeline * 11 + m * 3) % 4);
    return (forward ? 1.0 : 2.0) * length * (stage == 1 ? 1.2 : 1.0);
  };
  Compute(job);
  EXPECT_GT(energy_.extrinsic_joules, 0);
  EXPECT_NEAR(plans_["per-iteration-alone"].slowdown_percent, 0, 1e-6);
  EXPECT_LE(plans_["per-iteration"].slowdown_percent, 1e-6);
  // No plan can save more than the bloat, and these come close.
  const double bloat =
      100 * (energy_.intrinsic_joules + energy_.extrinsic_joules) / energy_.energy_joules;
  EXPECT_LE(plans_["per-iteration"].saving_percent, bloat + 1e-6);
  EXPECT_GT(plans_["per-iteration"].saving_percent, 0.9 * bloat);
  EXPECT_GT(plans_["per-iteration"].saving_percent, plans_["per-iteration-alone"].saving_percent);
  EXPECT_GT(plans_["static"].slowdown_percent, 0);
  // Times are linear in one length here, so knowing it is knowing all.
  EXPECT_LT(energy_.length_error, 1e-6);
  EXPECT_NEAR(plans_["per-iteration-lengths"].saving_percent,
              plans_["per-iteration"].saving_percent, 1e-3);
}

TEST_F(TraceEnergyTest, AnswersAStragglerOnceItIsKnown) {
  MadeUpJob job;
  job.pipelines = 3;
  job.steps = 5;
  job.seconds = [](int, int pipeline, int, int, bool forward) {
    return (forward ? 1.0 : 2.0) * (pipeline == 2 ? 1.25 : 1.0);
  };
  Compute(job, 2);
  EXPECT_EQ(energy_.stragglers_answered, 3);
  const TracePlanOutcome& answered = plans_["static-stragglers"];
  const TracePlanOutcome& base = plans_["static"];
  EXPECT_NEAR(answered.step_joules[1], base.step_joules[1], 1e-6);
  EXPECT_LT(answered.step_joules[2], base.step_joules[2]);
  EXPECT_NEAR(answered.step_seconds_each[2], base.step_seconds_each[2], 1e-6);
}

TEST_F(TraceEnergyTest, WritesTheSameBytesTwice) {
  std::string before;
  for (int run = 0; run < 2; ++run) {
    Compute({});
    TraceAnswer answer;
    answer.recording = &recording_;
    answer.links = &links_;
    answer.name = "<t>.csv";
    answer.what_if = AskWhatIf(recording_, links_);
    answer.energy = energy_;
    answer.costs.name = "p.csv";
    const std::string bytes = FormatTraceJson(answer) + FormatTraceHtml(answer);
    EXPECT_EQ(bytes.find("<t>"), bytes.rfind("<t>")) << "only JSON has the name as it is";
    if (run == 1) {
      EXPECT_EQ(bytes, before);
    }
    before = bytes;
  }
}

}  // namespace
}  // namespace perseus::trace
