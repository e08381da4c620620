// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "policy/envpipe.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "plan/cost_options.h"
#include "plan/pipelines.h"

namespace perseus::policy {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::IterationSeconds;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;
using testing::ElementsAre;

// Knobs of a rank, in the order in which it computes.
std::vector<std::string> KnobsOfRank(const CostedPipeline& pipeline,
                                     const std::vector<CostOption>& options, int rank) {
  std::vector<std::string> knobs;
  for (const int i : pipeline.dag.rank_order[rank]) {
    knobs.push_back(pipeline.knobs[options[i].knob].label);
  }
  return knobs;
}

std::vector<CostOption> MaximumClocks(const CostedPipeline& pipeline) {
  std::vector<CostOption> options;
  for (const int table : pipeline.table_of) options.push_back(pipeline.tables[table].baseline);
  return options;
}

// Two equal stages. Forward: least energy at 750; backward: at 500.
const std::string kRows =
    "0,forward,1000,1,300\n0,forward,750,1.5,240\n0,forward,500,2,260\n"
    "0,backward,1000,2,600\n0,backward,750,2.5,480\n0,backward,500,4,400\n"
    "1,forward,1000,1,300\n1,forward,750,1.5,240\n1,forward,500,2,260\n"
    "1,backward,1000,2,600\n1,backward,750,2.5,480\n1,backward,500,4,400\n";

TEST(EnvPipe, RaisesWhatWouldMakeTheIterationLonger) {
  // Maximum clocks, in seconds:
  //   stage 0: F0 [0,1] F1 [1,2]  -  B0 [4,6]  -  B1 [7,9]
  //   stage 1:  -  F0 [1,2] B0 [2,4] F1 [4,5] B1 [5,7]
  // Inner: F1 and B0 of stage 0. F1 may end at 4 s and stays at 750 MHz. B0 may
  // end at 7 s: at 500 MHz it would end at 8 s, at 750 MHz it ends at 6.5 s.
  const CostedPipeline pipeline = Costed(kRows, DagOf("1f1b", 2, 2), Blocking(10));
  const std::vector<CostOption> options = EnvPipeOptions(pipeline);
  EXPECT_THAT(KnobsOfRank(pipeline, options, 0), ElementsAre("1000", "750", "750", "1000"));
  EXPECT_THAT(KnobsOfRank(pipeline, options, 1), ElementsAre("1000", "1000", "1000", "1000"));
  EXPECT_EQ(IterationSeconds(pipeline, options), 9);
}

TEST(EnvPipe, TheEnvelopeOf1F1BIsTheLastStageAndTheFirstForwardAndLastBackward) {
  const CostedPipeline pipeline = Costed(kRows, DagOf("1f1b", 2, 3), Blocking(10));
  const std::vector<bool> outer = OuterEnvelope(pipeline);
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const ComputationId& id = pipeline.dag.computations[i].id;
    const bool is_first_forward = id.type == ComputationType::kForward && id.microbatch == 0;
    const bool is_last_backward = id.type == ComputationType::kBackward && id.microbatch == 2;
    EXPECT_EQ(outer[i], id.stage == 1 || is_first_forward || is_last_backward) << i;
  }
}

TEST(EnvPipe, TheEnvelopeOfOtherSchedulesIsALongestPath) {
  const CostedPipeline pipeline =
      Costed(kRows, DagOf("interleaved-zero-bubble", 2, 4), Blocking(10));
  const std::vector<CostOption> maximum = MaximumClocks(pipeline);
  std::vector<double> durations;
  for (const CostOption& option : maximum) durations.push_back(option.time_seconds);
  const Timing timing = Replay(pipeline.dag, durations);
  const std::vector<bool> critical = CriticalComputations(pipeline.dag, timing);
  const std::vector<bool> outer = OuterEnvelope(pipeline);
  double seconds = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    if (!outer[i]) continue;
    EXPECT_TRUE(critical[i]);
    seconds += durations[i];
  }
  EXPECT_NEAR(seconds, timing.iteration_time_seconds, 1e-9);
}

TEST(EnvPipe, WorksWithLabelsTowardsTheFastestOfATable) {
  // "b" counts as maximum for stage 0, where it is the fastest, but is the
  // second knob of the profile. B0 of stage 0 has no time for "a".
  const CostedPipeline pipeline = Costed(
      "1,forward,a,1,300\n1,backward,a,2,600\n"
      "0,forward,b,1,300\n0,forward,a,2,200\n0,backward,b,2,600\n0,backward,a,4,400\n",
      DagOf("1f1b", 2, 2), Blocking(10));
  ASSERT_FALSE(pipeline.knobs_are_numbers);
  EXPECT_THAT(KnobsOfRank(pipeline, EnvPipeOptions(pipeline), 0), ElementsAre("b", "a", "b", "b"));
}

struct Shape {
  std::string schedule;
  int stages = 2;
  int microbatches = 2;
  int virtual_stages = 1;
};

TEST(EnvPipe, NeverTakesLongerThanMaximumClocks) {
  std::mt19937 random(3);
  const std::vector<Shape> shapes = {{"1f1b", 4, 6},
                                     {"gpipe", 3, 4},
                                     {"interleaved-1f1b", 4, 4, 2},
                                     {"interleaved-zero-bubble", 4, 8, 2},
                                     {"zbv-zero-bubble", 4, 4, 2},
                                     {"dualpipev", 4, 8, 2}};
  for (const Shape& shape : shapes) {
    for (int repeat = 0; repeat < 10; ++repeat) {
      ProfileShape profile;
      profile.stages = shape.stages;
      profile.clocks = 5;
      profile.noise = repeat % 2 == 0 ? 0 : 0.05;
      profile.labels = repeat % 3 == 0;
      const CostedPipeline pipeline =
          Costed(RandomRows(random, profile),
                 DagOf(shape.schedule, shape.stages, shape.microbatches, {}, shape.virtual_stages),
                 Blocking(60));
      const double seconds = IterationSeconds(pipeline, MaximumClocks(pipeline));
      const std::vector<bool> outer = OuterEnvelope(pipeline);
      const std::vector<CostOption> options = EnvPipeOptions(pipeline);
      EXPECT_LE(IterationSeconds(pipeline, options), seconds * (1 + 1e-9)) << shape.schedule;
      for (int i = 0; i < pipeline.dag.size(); ++i) {
        if (!outer[i]) continue;
        EXPECT_EQ(options[i].knob, pipeline.TableOf(i).baseline.knob);
      }
    }
  }
}

// The column of a CSV file with a header, where another column is as asked.
std::vector<double> Column(const std::filesystem::path& path, const std::string& wanted,
                           const std::string& row_starts_with) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  const auto cells_of = [](const std::string& text) {
    std::vector<std::string> cells;
    std::stringstream stream(text);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    return cells;
  };
  const std::vector<std::string> header = cells_of(line);
  const auto index = std::find(header.begin(), header.end(), wanted) - header.begin();
  std::vector<double> values;
  while (std::getline(file, line)) {
    if (line.starts_with(row_starts_with)) values.push_back(std::stod(cells_of(line)[index]));
  }
  return values;
}

struct Published {
  std::string model;
  std::string device;
  double blocking_watts = 0;
};

class EnvPipeOfThePaper : public testing::TestWithParam<Published> {};

// The savings of EnvPipe in the emulation of Chung et al. (SOSP'24), at their
// protocol's time: the least of the published frontier.
TEST_P(EnvPipeOfThePaper, SavesAsPublished) {
  const char* shared = std::getenv("PERSEUS_SHARED_DATA");
  const std::filesystem::path folder =
      std::filesystem::path(shared != nullptr ? shared : "../shared/data") / "sosp24" /
      "sosp24_data" / "emulation";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "no " << folder << "; set PERSEUS_SHARED_DATA to the folder above sosp24";
  }
  const auto& [model, device, watts] = GetParam();
  const auto profile =
      ReadProfile((folder / "stage_profile" / (model + "+" + device + "_bf16.csv")).string());
  ASSERT_TRUE(profile) << profile.error().message;
  CostSpec spec = Blocking(watts);
  spec.tensor_parallel = 8;
  for (const int microbatches : {12, 24, 48, 96}) {
    const auto pipeline = CostPipeline(*profile, DagOf("1f1b", 8, microbatches), spec);
    ASSERT_TRUE(pipeline) << pipeline.error().message;
    const std::vector<double> times =
        Column(folder / "iteration_time_energy" / device /
                   fmt::format("{}_bf16_mb{}.csv", model, microbatches),
               "time", "");
    const std::vector<double> energy =
        Column(folder / "envpipe_result.csv", "energy",
               fmt::format("{},bf16,{},{},", model, device, microbatches));
    ASSERT_FALSE(times.empty());
    ASSERT_EQ(energy.size(), 1);
    const double seconds = *std::min_element(times.begin(), times.end());
    const double baseline = plan::IterationEnergy(*pipeline, MaximumClocks(*pipeline), seconds);
    const std::vector<CostOption> options = EnvPipeOptions(*pipeline);
    // Waiting is counted until the plan's own end, as published. The published
    // energies are of ten times the profile's times.
    const double ours =
        plan::IterationEnergy(*pipeline, options, IterationSeconds(*pipeline, options));
    const double saving = 100 * (baseline - ours) / baseline;
    const double published = 100 * (baseline - energy[0] / 10) / baseline;
    RecordProperty(fmt::format("saving_{}", microbatches), fmt::format("{:.4f}", saving));
    RecordProperty(fmt::format("published_{}", microbatches), fmt::format("{:.4f}", published));
    EXPECT_NEAR(saving, published, 0.02) << microbatches;
  }
}

INSTANTIATE_TEST_SUITE_P(Emulations, EnvPipeOfThePaper,
                         testing::Values(Published{"gpt3-175b", "a100_sxm", 83.64},
                                         Published{"bloom", "a40", 70.38}),
                         [](const testing::TestParamInfo<Published>& info) {
                           return info.param.device;
                         });

}  // namespace
}  // namespace perseus::policy
