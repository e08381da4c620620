// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Measured conditions as the store keeps them, and which jobs measure any.

#include "server/planning/conditions_state.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "perseus/computation.h"
#include "perseus/job.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

TEST(ConditionsState, IsReadAsItWasWritten) {
  ConditionsState state;
  EXPECT_EQ(ParseConditionsState(FormatConditionsState(state)), state);
  state.plan = {.values = {0.01, 0.002, 0.3, 0.0151, 1.0 / 3, 0.0001, 0.05, 0.015}};
  state.next = {.values = {0.1, 0, 0, 0.5, 0}, .measured = {true, false, false, true, false}};
  state.planned_at_seconds = 1.7e9;
  state.measured.figures[2] = {0.1, 0.02, 64};
  state.measured.iterations = 256;
  state.measured.calls = 4096;
  state.plan.times = {{1, ComputationType::kBackwardInput, 1410, 0.25, 1.0 / 3, 512}};
  state.plan.transfers = {{2, 0.0003, 1.0 / 3, 16}};
  EXPECT_EQ(ParseConditionsState(FormatConditionsState(state)), state);
  EXPECT_EQ(ParseConditionsState(""), std::nullopt);
  EXPECT_EQ(ParseConditionsState(R"({"plan":{"values":[0,0,0,0,0],"measured":[1,0,0,0,0]}})"),
            std::nullopt);
}

TEST(JobSpec, ConditionsWithoutNoiseAndLatencyAreMeasured) {
  const auto measures = [](const std::string& conditions) {
    const auto spec =
        MakeJobSpec(R"({"schedule":"1f1b","microbatches":4,"stages":2)" +
                        (conditions.empty() ? "" : ",\"conditions\":" + conditions) + "}",
                    "");
    EXPECT_TRUE(spec) << conditions;
    return spec && ParseConditionsState(spec->conditions_json).has_value();
  };
  EXPECT_TRUE(measures("{}"));
  EXPECT_TRUE(measures(R"({"max_changes":20,"call_ahead":"predicted"})"));
  EXPECT_FALSE(measures(""));
  EXPECT_FALSE(measures(R"({"noise":"1%"})"));
  EXPECT_FALSE(measures(R"({"switch_latency":"15ms"})"));
  EXPECT_FALSE(measures(R"({"rank_noise":0})"));
}

}  // namespace
}  // namespace perseus::server
