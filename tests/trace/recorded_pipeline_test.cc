// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/recorded_pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "trace/links.h"
#include "trace/made_up_trace.h"
#include "trace/relative_costs.h"
#include "trace/trace_replay.h"

namespace perseus::trace {
namespace {

// The planner's DAG of a pipeline says of every computation what the replay of the whole
// job says.
RC_GTEST_PROP(RecordedPipelineTest, ReplaysAsTheJobDoes, ()) {
  MadeUpJob job;
  job.pipelines = *rc::gen::inRange(1, 4);
  job.microbatches = *rc::gen::inRange(1, 7);
  job.steps = *rc::gen::inRange(1, 3);
  job.transfer_seconds = *rc::gen::element(0.0, 0.01, 3.0);
  const auto seconds = *rc::gen::container<std::vector<int>>(97, rc::gen::inRange(1, 40));
  job.seconds = [&](int step, int pipeline, int stage, int m, bool forward) {
    return 0.1 * seconds[(step * 31 + pipeline * 17 + stage * 7 + m * 2 + (forward ? 1 : 0)) % 97];
  };
  const auto recording = ParseRecording(MadeUpTrace(job), "t.csv");
  RC_ASSERT(recording.has_value());
  const auto links = LinkOperations(*recording);
  RC_ASSERT(links.has_value());
  const std::vector<double> own = OwnSeconds(*recording, *links);
  TraceTiming timing;
  ReplayTrace(*recording, *links, own, &timing);
  const PipelineMaker maker(*recording, *links);
  for (int step = 0; step < job.steps; ++step) {
    for (int pipeline = 0; pipeline < job.pipelines; ++pipeline) {
      const RecordedPipeline made = maker.Make(step, pipeline, own);
      RC_ASSERT(made.dag.size() == 4 * job.microbatches);
      std::vector<double> durations;
      for (const int operation : made.operations) durations.push_back(own[operation]);
      const Timing replayed = Replay(made.dag, durations);
      for (int i = 0; i < made.dag.size(); ++i) {
        RC_ASSERT(std::abs(replayed.end_seconds[i] - timing.end_seconds[made.operations[i]]) <
                  1e-9);
      }
    }
  }
}

TEST(RelativeCostsTest, StagesOfTheProfileAreSpreadOverTheModel) {
  EXPECT_EQ(ProfileStage(0, 1, 8), 0);
  EXPECT_EQ(ProfileStage(0, 2, 8), 0);
  EXPECT_EQ(ProfileStage(1, 2, 8), 7);
  for (int stage = 0; stage < 8; ++stage) EXPECT_EQ(ProfileStage(stage, 8, 8), stage);
  EXPECT_EQ(ProfileStage(3, 8, 1), 0);
}

TEST(RelativeCostsTest, ScalesTimeAndEnergyAlike) {
  const auto recording = ParseRecording(MadeUpTrace({}), "t.csv");
  ASSERT_TRUE(recording);
  const auto links = LinkOperations(*recording);
  ASSERT_TRUE(links);
  const auto profile = ParseProfile(MadeUpProfile(2), "p.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  const std::vector<double> own = OwnSeconds(*recording, *links);
  const RecordedPipeline pipeline = PipelineMaker(*recording, *links).Make(0, 0, own);
  std::vector<double> seconds;
  for (const int operation : pipeline.operations) seconds.push_back(own[operation]);
  const auto costed = CostRecorded(pipeline, seconds, {&*profile, 10, 4});
  ASSERT_TRUE(costed) << costed.error().message;
  EXPECT_DOUBLE_EQ(costed->total_blocking_power_watts, 80);
  for (int i = 0; i < costed->dag.size(); ++i) {
    const CostTable& table = costed->TableOf(i);
    const bool forward = table.type == ComputationType::kForward;
    ASSERT_EQ(table.all_options.size(), 3u);
    EXPECT_NEAR(table.baseline.time_seconds, forward ? 1 : 2, 1e-9);
    // Power stays: 300 and 310 W of a GPU, four of them.
    EXPECT_NEAR(table.baseline.energy_joules, forward ? 1200 : 2480, 1e-6);
    EXPECT_NEAR(table.all_options[2].time_seconds, 1.31 * table.baseline.time_seconds, 1e-9);
    EXPECT_NEAR(table.all_options[2].energy_joules, 0.79 * table.baseline.energy_joules, 1e-6);
  }
}

}  // namespace
}  // namespace perseus::trace
