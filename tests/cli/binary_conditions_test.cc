// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans under conditions, from the job file to the emulation of what was written.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class BinaryConditionsTest : public SampleJobTest {
 protected:
  static std::string Out(const std::vector<std::string>& arguments) {
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  }
  // What the plan of these flags is written to.
  std::string Write(const std::vector<std::string>& flags, const std::string& name) const {
    std::vector<std::string> arguments = Arguments("plan", flags);
    arguments.insert(arguments.end(), {"--effort", "0.05", "-o", folder_.Path(name)});
    Out(arguments);
    return folder_.Path(name) + "/plan.json";
  }

  std::vector<std::string> flags_ = {"--switch-latency", "20ms",      "--noise",        "1%",
                                     "--call-ahead",     "predicted", "--max-slowdown", "0.5%",
                                     "--max-changes",    "6"};
};

TEST_F(BinaryConditionsTest, EmulateTakesThemFromThePlanUnlessAFlagSaysOtherwise) {
  const std::string path = Write(flags_, "held");
  const json plan = json::parse(ReadText(folder_.Path("held/plan.json")));
  EXPECT_EQ(plan["conditions"]["switch_latency_s"], 0.02);
  EXPECT_EQ(plan["conditions"]["call_ahead"], "predicted");
  EXPECT_EQ(plan["conditions"]["max_changes"], 6);
  EXPECT_LE(plan["knob_changes"], 6);
  const json& expected = plan["expected"];
  EXPECT_LE(expected["slowdown_percent"], 0.5);
  // The first of its five seeds.
  const auto emulate = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        Arguments("emulate", {"--plan", path, "--iterations", "200", "--seed", "1001", "--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(Out(arguments));
  };
  const json same = emulate({});
  EXPECT_LT(
      std::fabs(same["saving_percent"].get<double>() - expected["saving_percent"].get<double>()),
      10 * expected["saving_spread_percent"].get<double>() + 1e-9);
  EXPECT_GT(same["clock_calls"], 0);
  EXPECT_EQ(same["iterations"], emulate({"--switch-latency", "20ms"})["iterations"]);
  EXPECT_NE(same["iterations"], emulate({"--noise", "0"})["iterations"]);
  EXPECT_NE(same["iterations"], emulate({"--call-ahead", "none"})["iterations"]);
}

TEST_F(BinaryConditionsTest, JobFileAndFlagsSayTheSame) {
  Write(flags_, "flags");
  const std::string job = folder_.Write(
      "job.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "effort = 0.05\noutput = 'file'\n[conditions]\nswitch_latency = '20ms'\nnoise = '1%'\n"
      "call_ahead = 'predicted'\nmax_slowdown = '0.5%'\nmax_changes = 6\n");
  Out({"plan", job});
  EXPECT_EQ(ReadText(folder_.Path("file/plan.json")), ReadText(folder_.Path("flags/plan.json")));
}

TEST_F(BinaryConditionsTest, WithoutThemNothingIsSaidOfThem) {
  Write({}, "paper");
  EXPECT_THAT(ReadText(folder_.Path("paper/plan.json")), Not(HasSubstr("conditions")));
  EXPECT_THAT(Out(Arguments("plan", {"--json"})), Not(HasSubstr("expected")));
}

TEST_F(BinaryConditionsTest, PlanSaysWhatItGivesUp) {
  std::vector<std::string> arguments = Arguments("plan", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05"});
  const std::string text = Out(arguments);
  EXPECT_THAT(text, HasSubstr("Under     noise of 1 % a computation; clocks in effect 20 ms"));
  EXPECT_THAT(text, HasSubstr("Emulated  "));
  EXPECT_THAT(text, HasSubstr("Given up  "));
  EXPECT_THAT(text, HasSubstr("On paper  "));
  arguments.emplace_back("--json");
  const json document = json::parse(Out(arguments));
  EXPECT_GT(document["paper_plan"]["saving_percent"], 0);
  EXPECT_TRUE(document["bound"].contains("proven"));
  EXPECT_TRUE(document["price_curve"].is_array());
}

TEST_F(BinaryConditionsTest, EmulateMakesThePlanThatHoldsWhereItIsTold) {
  std::vector<std::string> arguments = Arguments("emulate", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05", "--iterations", "20"});
  EXPECT_THAT(Out(arguments), HasSubstr("perseus (holds)"));
}

}  // namespace
}  // namespace perseus::cli
