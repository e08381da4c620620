// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Against the public answers of Lin et al. 2025 (arXiv 2505.05713), where the traces are.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "trace/links.h"
#include "trace/recording.h"
#include "trace/what_if.h"

namespace perseus::trace {
namespace {

class PublishedTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedTest, ComesToTheSame) {
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const std::string folder =
      std::string(shared == nullptr ? "../shared/data" : shared) + "/traces25/";
  std::ifstream file(folder + "result-" + GetParam() + ".json");
  if (!file) GTEST_SKIP() << "no recorded traces at " << folder << "; set PERSEUS_SHARED_DATA";
  const nlohmann::json published = nlohmann::json::parse(file);
  const auto recording = ReadRecording(folder + "trace-" + GetParam() + ".csv.gz");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->stages, published["job_meta"]["pp_size"]);
  EXPECT_EQ(recording->pipelines, published["job_meta"]["dp_size"]);
  EXPECT_EQ(recording->gpus_per_rank * recording->places(), published["job_meta"]["world_size"]);
  const auto links = LinkOperations(*recording);
  ASSERT_TRUE(links) << links.error().message;
  const WhatIf answer = AskWhatIf(*recording, *links);
  // The artifact keeps times in 32 bits.
  constexpr double kTolerance = 1e-4;
  for (const StepTimes& step : answer.steps) {
    const std::string key = std::to_string(step.step);
    EXPECT_NEAR(step.recorded_seconds, published["step_t_base"][key].get<double>(), kTolerance);
    EXPECT_NEAR(step.replayed_seconds, published["step_t_nodelay"][key].get<double>(), kTolerance);
    EXPECT_NEAR(step.without_stragglers_seconds, published["step_t_noblk"][key].get<double>(),
                kTolerance);
  }
  EXPECT_NEAR(answer.blocking_slowdown, published["blocking_slowdown"].get<double>(), kTolerance);
  const auto& by_stage = published["blocking_decompose_by_stage"];
  ASSERT_EQ(answer.by_stage.size(), by_stage.size());
  for (std::size_t i = 0; i < answer.by_stage.size(); ++i) {
    EXPECT_NEAR(answer.by_stage[i], by_stage[std::to_string(i)].get<double>(), kTolerance);
  }
  const auto& by_pipeline = published["blocking_decompose_by_dp_rank"];
  ASSERT_EQ(answer.by_pipeline.size(), by_pipeline.size());
  for (std::size_t i = 0; i < answer.by_pipeline.size(); ++i) {
    EXPECT_NEAR(answer.by_pipeline[i], by_pipeline[std::to_string(i)].get<double>(), kTolerance);
  }
  const auto& by_operation = published["blocking_decompose_by_optype"];
  ASSERT_EQ(answer.by_operation.size(), by_operation.size());
  for (const NamedSlowdown& each : answer.by_operation) {
    EXPECT_NEAR(each.slowdown, by_operation[each.name].get<double>(), kTolerance) << each.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, PublishedTest, ::testing::Values("ST", "SE"));

}  // namespace
}  // namespace perseus::trace
