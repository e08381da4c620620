// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "trace/length_fit.h"
#include "trace/links.h"
#include "trace/made_up_trace.h"
#include "trace/trace_policies.h"
#include "trace/trace_replay.h"

namespace perseus::trace {
namespace {

TEST(StragglerWatchTest, KnowsWhoWasSlowInMostOfTheWindow) {
  TraceEnergySpec spec;
  spec.detector_steps = 4;
  StragglerWatch watch(3, spec);
  EXPECT_EQ(watch.Known(), (std::vector<double>{1, 1, 1}));
  for (int step = 0; step < 3; ++step) watch.Add({1, 1.3, 1});
  EXPECT_EQ(watch.Known(), (std::vector<double>{1, 1, 1})) << "the window is not full";
  watch.Add({1, 1, 1});
  EXPECT_EQ(watch.Known(), (std::vector<double>{1, 1.3, 1})) << "three of four";
  watch.Add({1, 1, 1});
  EXPECT_EQ(watch.Known(), (std::vector<double>{1, 1, 1})) << "two of four";
}

TEST(StragglerWatchTest, IsNotMisledByStepsThatAreLongForAll) {
  TraceEnergySpec spec;
  spec.detector_steps = 2;
  StragglerWatch watch(3, spec);
  watch.Add({1, 1, 1});
  watch.Add({5, 5.1, 5});
  EXPECT_EQ(watch.Known(), (std::vector<double>{1, 1, 1}));
}

TEST(LengthFitTest, IsExactWhereTimesAreLinearInOneLength) {
  MadeUpJob job;
  job.seconds = [](int step, int pipeline, int stage, int m, bool forward) {
    const double length = 1 + 0.1 * ((step * 5 + pipeline * 3 + m) % 7);
    return (forward ? 0.5 + length : 0.2 + 2.5 * length) * (stage == 0 ? 1 : 1.3);
  };
  const auto recording = ParseRecording(MadeUpTrace(job), "t.csv");
  ASSERT_TRUE(recording);
  const auto links = LinkOperations(*recording);
  ASSERT_TRUE(links);
  const std::vector<double> own = OwnSeconds(*recording, *links);
  const LengthFit fit = FitLengths(*recording, own);
  EXPECT_LT(fit.error, 1e-9);
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(fit.seconds[i], own[i], 1e-9);
}

TEST(LengthFitTest, StatesItsError) {
  MadeUpJob job;
  job.seconds = [](int step, int, int stage, int m, bool forward) {
    // Forwards and backwards vary against each other.
    return 1 + (forward ? 0.1 : -0.1) * ((step + stage + m) % 2 == 0 ? 1 : -1);
  };
  const auto recording = ParseRecording(MadeUpTrace(job), "t.csv");
  ASSERT_TRUE(recording);
  const auto links = LinkOperations(*recording);
  ASSERT_TRUE(links);
  const LengthFit fit = FitLengths(*recording, OwnSeconds(*recording, *links));
  EXPECT_GT(fit.error, 0.05);
}

}  // namespace
}  // namespace perseus::trace
