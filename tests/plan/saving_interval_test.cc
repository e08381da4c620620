// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "model/saving_interval.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perseus/pipeline.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

namespace perseus::plan {
namespace {

// A recompute that was not measured costs what the forward does, and has its errors.
TEST(SavingIntervalTest, ARecomputeHasTheErrorsOfItsForward) {
  std::string rows = "stage,instruction,frequency,time,energy,error_sources\n";
  for (const char* const stage : {"0,", "1,"}) {
    for (const char* const row : {"forward,1400,1,100", "forward,1200,1.1,80",
                                  "backward,1400,2,200", "backward,1200,2.2,160"}) {
      rows.append(stage).append(row).append(",0.01 0.001|0.01 0.001|0.01\n");
    }
  }
  const Result<Profile> profile = ParseProfile(rows, "p.csv");
  ASSERT_TRUE(profile) << profile.error().message;
  const auto schedule = BuildSchedule({"early-recomputation-1f1b", 2, 1, 2});
  CostSpec spec;
  spec.blocking_power_watts = {20};
  const auto pipeline = CostPipeline(*profile, *BuildDag(*schedule, {}), spec);
  ASSERT_TRUE(pipeline) << pipeline.error().message;
  std::vector<CostOption> slowest;
  for (int i = 0; i < pipeline->dag.size(); ++i) {
    slowest.push_back(pipeline->TableOf(i).all_options.back());
  }
  const auto interval = model::IntervalOfSaving(*pipeline, slowest);
  ASSERT_TRUE(interval);
  EXPECT_GT(interval->most_percent, interval->least_percent);
}

}  // namespace
}  // namespace perseus::plan
