// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "emulate/emulate.h"
#include "emulate/emulation_testing.h"
#include "support/mentions.h"

namespace perseus::emulate {
namespace {

using testing::HasSubstr;

EmulationSpec ValidSpec() {
  EmulationSpec spec;
  spec.pipelines = 4;
  spec.iterations = 10;
  spec.target_seconds = 6;
  return spec;
}

TEST(CheckSpecTest, AcceptsTheDefaultsAndTheBounds) {
  const CostedPipeline pipeline = emulator_testing::TinyPipeline(2);
  EmulationSpec spec = ValidSpec();
  EXPECT_TRUE(CheckSpec(pipeline, spec));
  spec.noise = {.per_computation = 0.25, .per_stage = 0.25, .per_gpu = 0.25};
  spec.stragglers.push_back({.pipeline = 3, .rank = 1, .first_iteration = 9});
  spec.timeline_iteration = 9;
  EXPECT_TRUE(CheckSpec(pipeline, spec));
}

TEST(CheckSpecTest, NamesTheNumberThatIsOutOfRange) {
  const CostedPipeline pipeline = emulator_testing::TinyPipeline(2);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  using Change = std::function<void(EmulationSpec&)>;
  const auto with = [](const Straggler& straggler) -> Change {
    return [straggler](EmulationSpec& spec) { spec.stragglers.push_back(straggler); };
  };
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](auto& s) { s.pipelines = 0; }, "the number of pipelines is 0"},
      {[](auto& s) { s.pipelines = 2000001; }, "are 4000002 ranks; at most 4000000"},
      {[](auto& s) { s.iterations = 0; }, "the number of iterations is 0; expected 1 to 10000000"},
      {[](auto& s) { s.iterations = 10000001; }, "the number of iterations is 10000001"},
      {[](auto& s) { s.target_seconds = 0; }, "the target time of an iteration is 0 s"},
      {[](auto& s) { s.target_seconds = kNan; }, "the target time of an iteration is nan s"},
      {[](auto& s) { s.noise.per_computation = 0.5; },
       "'noise' is 0.5; expected a share (0.01 is 1 %) from 0 to 0.25"},
      {[](auto& s) { s.noise.per_stage = -0.1; }, "'stage_noise' is -0.1"},
      {[](auto& s) { s.noise.per_gpu = kNan; }, "'gpu_noise' is nan"},
      {[](auto& s) { s.noise.per_rank = 0.26; }, "'rank_noise' is 0.26"},
      {[](auto& s) { s.noise.rare_length = 0.05; },
       "'rare_noise' is 0.05 and 'rare_noise_share' is 0"},
      {[](auto& s) { s.noise.rare_share = 0.01; },
       "'rare_noise' is 0 and 'rare_noise_share' is 0.01"},
      {[](auto& s) { s.noise.correlation = 1; }, "'noise_correlation' is 1"},
      {[](auto& s) {
         s.switching.latency_at = {{1410, 1}};
       },
       "give 'switch_latency', too"},
      {[](auto& s) { s.switching.latency_seconds = -1; }, "'switch_latency' is -1"},
      {[](auto& s) { s.switching.stall_seconds = kNan; }, "'switch_stall' is nan"},
      {[](auto& s) { s.control.delay_seconds = -1; }, "the reaction delay in seconds is -1"},
      {[](auto& s) { s.random_stragglers.share_of_gpus_per_day = -1; }, "the share of GPUs"},
      {[](auto& s) { s.random_stragglers = {.share_of_gpus_per_day = 1, .duration_seconds = 0}; },
       "the time that random stragglers last is 0 s"},
      {[](auto& s) { s.random_stragglers = {.share_of_gpus_per_day = 1, .value = 0.5}; },
       "random stragglers 'slow=0.5': the factor of slow= is 0.5"},
      {[](auto& s) { s.power_interval_seconds = -1; }, "the interval of the power trace"},
      {[](auto& s) { s.power_interval_seconds = 0; }, "the interval of the power trace"},
      {[](auto& s) { s.power_interval_seconds = 1e-9; }, "more than 10000000 values"},
      {[](auto& s) { s.timeline_iteration = 10; }, "iteration 10, but the last one is 9"},
      {[](auto& s) { s.timeline_iteration = -1; }, "iteration -1, but the last one is 9"},
      {[](auto& s) { s.timeline_pipelines = -1; }, "the number of pipelines in the timeline"},
      {with({.value = 0.5}), "straggler 'slow=0.5': the factor of slow= is 0.5"},
      {with({.pipeline = 4}), "straggler 'slow=1': the pipeline is 4; expected 0 to 3"},
      {with({.rank = 2}), "the rank is 2; expected 0 to 1"},
      {with({.rank = -1}), "the rank is -1"},
      {with({.first_iteration = 10}), "the first iteration is 10; expected 0 to 9"},
      {with({.iterations = 0}), "the number of iterations is 0"},
      {with({.iterations = -1}), "the number of iterations is -1"}};
  for (const auto& [change, message] : cases) {
    EmulationSpec spec = ValidSpec();
    change(spec);
    const auto checked = CheckSpec(pipeline, spec);
    ASSERT_FALSE(checked) << message;
    EXPECT_EQ(checked.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(checked.error().message, HasSubstr(message));
  }
}

TEST(CheckSpecTest, LabelsHaveNoClocks) {
  CostedPipeline pipeline = emulator_testing::TinyPipeline(1);
  pipeline.knobs_are_numbers = false;
  EmulationSpec spec = ValidSpec();
  spec.stragglers.push_back({.kind = StragglerKind::kClockCap, .value = 700});
  const auto checked = CheckSpec(pipeline, spec);
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, Mentions("labels;"));
}

TEST(CheckSpecTest, ClocksOfStragglersAreThoseOfTheProfile) {
  const CostedPipeline pipeline = emulator_testing::TinyPipeline(1);  // 500 and 1000 MHz.
  for (const auto& [mhz, good] : {std::pair(1.0, false),
                                  {499, false},
                                  {500, true},
                                  {700, true},
                                  {1000, true},
                                  {1001, false},
                                  {5000, false}}) {
    EmulationSpec spec = ValidSpec();
    spec.stragglers.push_back({.kind = StragglerKind::kClockCap, .value = mhz});
    EXPECT_EQ(CheckSpec(pipeline, spec).has_value(), good) << mhz;
    spec.stragglers.clear();
    spec.random_stragglers = {
        .share_of_gpus_per_day = 1, .kind = StragglerKind::kClockCap, .value = mhz};
    EXPECT_EQ(CheckSpec(pipeline, spec).has_value(), good) << mhz;
  }
}

TEST(CheckSpecTest, PowersOfStragglersAreThoseOfTheJob) {
  CostedPipeline pipeline = emulator_testing::TinyPipeline(1);  // 10 W waiting, 50 to 150 W.
  const auto accepts = [&pipeline](double watts) {
    EmulationSpec spec = ValidSpec();
    spec.stragglers.push_back({.kind = StragglerKind::kPowerCap, .value = watts});
    const bool accepted = CheckSpec(pipeline, spec).has_value();
    spec.stragglers.clear();
    spec.random_stragglers = {
        .share_of_gpus_per_day = 1, .kind = StragglerKind::kPowerCap, .value = watts};
    EXPECT_EQ(CheckSpec(pipeline, spec).has_value(), accepted) << watts;
    return accepted;
  };
  for (const auto& [watts, good] : {std::pair(0.3, false),
                                    {9.9, false},
                                    {10, true},
                                    {40, true},
                                    {150, true},
                                    {150.1, false},
                                    {5000, false}}) {
    EXPECT_EQ(accepts(watts), good) << watts;
  }
  // A limit is of one GPU, and a rank has two.
  pipeline.tensor_parallel = 2;
  EXPECT_TRUE(accepts(5));
  EXPECT_FALSE(accepts(76));
}

}  // namespace
}  // namespace perseus::emulate
