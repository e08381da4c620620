// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What plans under conditions save on the sample, against what is known of it.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/conditions_testing.h"
#include "cli/run_perseus.h"

namespace perseus::cli {
namespace {

using nlohmann::json;

class BinaryConditionsSavingTest : public ConditionsTest {};

TEST_F(BinaryConditionsSavingTest, ConstraintsBesideConditionsLeaveMostOfTheSaving) {
  std::vector<std::string> flags = flags_;
  const json without = json::parse(ReadText(Write(flags, "without")));
  flags.insert(flags.end(), {"--time-margin", "0.1%"});
  const json with = json::parse(ReadText(Write(flags, "with")));
  EXPECT_GT(with["expected"]["saving_percent"].get<double>(),
            0.7 * without["expected"]["saving_percent"].get<double>());
}

// Where all stages are about equally slow, a margin leaves room off the critical path alone.
TEST_F(BinaryConditionsSavingTest, AMarginWithFewChangesSavesNearlyAsMuch) {
  const auto saving = [](const std::vector<std::string>& margin) {
    std::vector<std::string> arguments = {"plan",   "examples/gpt3-1.3b-a100-sxm.toml",
                                          "--json", "--switch-latency",
                                          "15ms",   "--max-changes",
                                          "20",     "--effort",
                                          "0.0157"};
    arguments.insert(arguments.end(), margin.begin(), margin.end());
    return json::parse(Out(arguments))["expected"]["saving_percent"].get<double>();
  };
  EXPECT_GT(saving({"--time-margin", "1%"}), 0.8 * saving({}));
}

// By hand, stage 0 at 1200 MHz but for its first and last computation: 4.2 % with two changes.
TEST_F(BinaryConditionsSavingTest, TwoChangesSaveWhatTwoByHandSave) {
  const std::vector<std::string> arguments = {"plan",      "examples/gpt3-1.3b-a100-sxm.toml",
                                              "--json",    "--switch-latency",
                                              "15ms",      "--call-ahead",
                                              "predicted", "--noise",
                                              "1%",        "--max-changes",
                                              "2",         "--effort",
                                              "0.0625"};
  const json plan = json::parse(Out(arguments));
  EXPECT_GT(plan["expected"]["saving_percent"], 4.2);
  EXPECT_LE(plan["expected"]["slowdown_percent"], 0.1);
}

// Limits that are searched one by one gave 4.56, 3.33, 3.93 and 4.79 %
// (docs/explanation/planning.md); a walk that may never pass the limit 0.98 % with 5, 2.75 %
// with 20.
TEST_F(BinaryConditionsSavingTest, AGranularityWithFewChangesSavesWhatFewChangesCan) {
  double before = 0;
  for (const std::string most : {"5", "10", "20", "50"}) {
    const std::vector<std::string> arguments = {"plan",   "examples/gpt3-1.3b-a100-sxm.toml",
                                                "--json", "--switch-latency",
                                                "15ms",   "--max-changes",
                                                most,     "--granularity",
                                                "phase"};
    const double saving = json::parse(Out(arguments))["expected"]["saving_percent"].get<double>();
    EXPECT_GE(saving, before - 1e-9) << most;
    EXPECT_GT(saving, 4) << most;
    before = saving;
  }
}

}  // namespace
}  // namespace perseus::cli
