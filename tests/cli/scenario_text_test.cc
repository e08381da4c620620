// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "cli/planning/summary.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

TEST(ScenarioTextTest, SpansHaveTheirUnit) {
  EXPECT_EQ(SpanOfTime(0), "0 s");
  EXPECT_EQ(SpanOfTime(0.0005), "500 us");
  EXPECT_EQ(SpanOfTime(0.015), "15 ms");
  EXPECT_EQ(SpanOfTime(0.015549004069), "15.55 ms");
  EXPECT_EQ(SpanOfTime(90), "90 s");
  EXPECT_EQ(SpanOfTime(900), "15 min");
  EXPECT_EQ(SpanOfTime(5400), "1.5 h");
  EXPECT_EQ(SpanOfTime(30 * 86400.0), "30 d");
}

TEST(ScenarioTextTest, NothingIsNamedAsNothing) {
  EmulationSpec spec;
  // There is no straggler to react to.
  spec.control.reacts = false;
  EXPECT_FALSE(HasStragglers(spec));
  EXPECT_EQ(ScenarioInWords(spec), "no noise, no late clocks, no stragglers.");
}

TEST(ScenarioTextTest, EveryDisturbanceIsNamed) {
  EmulationSpec spec;
  spec.noise = {.per_computation = 0.01, .per_stage = 0.02, .per_gpu = 0.005};
  spec.switching = {
      .latency_seconds = 0.015, .stall_seconds = 0.002, .call_ahead = CallAhead::kEnd};
  spec.stragglers.push_back({StragglerKind::kSlow, 1.2, 3, std::nullopt, 20, 1});
  spec.stragglers.push_back({StragglerKind::kDataStall, 0.5, 0, 0, 0, std::nullopt});
  spec.random_stragglers.share_of_gpus_per_day = 0.05;
  spec.random_stragglers.kind = StragglerKind::kClockCap;
  spec.random_stragglers.value = 1100;
  spec.control.delay_seconds = 2;
  spec.seed = 7;
  EXPECT_EQ(
      ScenarioInWords(spec),
      "noise of 1 % a computation, 2 % a stage, 0.5 % a GPU; a clock takes effect 15 ms after "
      "the call, and is called for when the computation before has ended; a rank pauses 2 ms "
      "at a change of clock; pipeline 3 takes 1.2 times as long from iteration 20 for 1 "
      "iteration; pipeline 0 rank 0 waits 500 ms for data; 5 % of the GPUs a day become "
      "stragglers for 1 h (its rank runs at 1100 MHz at most); new plans 2 s after a change; "
      "seed 7.");
  spec.control.reacts = false;
  EXPECT_NE(ScenarioInWords(spec).find("; nobody reacts to stragglers; seed 7."),
            std::string::npos);
  spec.noise.correlation = 0.9;
  spec.noise.per_rank = 0.003;
  EXPECT_THAT(ScenarioInWords(spec), Mentions("0.9", "0.3"));
}

TEST(ScenarioTextTest, ConditionsAreSaidInOneSentence) {
  Conditions conditions;
  EXPECT_EQ(ConditionsInWords(conditions),
            "no noise, no late clocks; at most 0.1 % slower with a confidence of 95 %.");
  conditions.noise.per_computation = 0.01;
  conditions.switching = {.latency_seconds = 0.015,
                          .latency_spread_seconds = 0.002,
                          .call_ahead = CallAhead::kPredicted,
                          .min_interval_seconds = 0.01};
  conditions.change_joules = 2;
  conditions.max_changes = 300;
  EXPECT_EQ(
      ConditionsInWords(conditions),
      "noise of 1 % a computation; a clock takes effect 15 ms (spread 2 ms) after the call, "
      "and is called for early enough to be there when its computation starts; at least 10 ms "
      "between calls; 2 J for a change of clock; at most 300 changes an iteration; at most 0.1 % "
      "slower with a "
      "confidence of 95 %.");
}

TEST(ScenarioTextTest, ManyStragglersAreCounted) {
  EmulationSpec spec;
  for (int pipeline = 0; pipeline < 6; ++pipeline) {
    spec.stragglers.push_back(
        {StragglerKind::kPowerCap, 250, pipeline, std::nullopt, 0, std::nullopt});
  }
  const std::string words = ScenarioInWords(spec);
  EXPECT_NE(words.find("pipeline 3 draws 250 W a GPU at most; 2 stragglers more;"),
            std::string::npos)
      << words;
}

}  // namespace
}  // namespace perseus::cli
