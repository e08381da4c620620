// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Emulations under conditions: those of a plan that was written, and those of flags.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/conditions_testing.h"
#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class BinaryConditionsEmulateTest : public ConditionsTest {};

TEST_F(BinaryConditionsEmulateTest, EmulationJsonRecordsItsScenario) {
  const auto scenario = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments =
        Arguments("emulate", {"--iterations", "3", "--dp", "2", "-o", folder_.Path("scenario")});
    arguments.insert(arguments.end(), more.begin(), more.end());
    Out(arguments);
    return json::parse(ReadText(folder_.Path("scenario/emulation.json")))["scenario"];
  };
  const json with = scenario({"--noise", "1%", "--switch-latency", "20ms", "--call-ahead", "end",
                              "--straggler", "slow=1.2,pipeline=1,from=1"});
  EXPECT_EQ(with["noise"], 0.01);
  EXPECT_EQ(with["switch_latency_s"], 0.02);
  EXPECT_EQ(with["call_ahead"], "end");
  EXPECT_EQ(with["iterations"], 3);
  ASSERT_EQ(with["stragglers"].size(), 1u);
  EXPECT_EQ(with["stragglers"][0]["kind"], "slow");
  EXPECT_EQ(with["stragglers"][0]["value"], 1.2);
  EXPECT_EQ(with["stragglers"][0]["pipeline"], 1);
  EXPECT_EQ(with["stragglers"][0]["rank"], nullptr);
  EXPECT_EQ(with["stragglers"][0]["from"], 1);
  EXPECT_EQ(with["random_stragglers"], nullptr);
  EXPECT_THAT(with["in_words"].get<std::string>(), HasSubstr("noise of 1 % a computation"));
  EXPECT_THAT(ReadText(folder_.Path("scenario/report.html")), Mentions("Scenario:", "1"));
  const json without = scenario({});
  EXPECT_EQ(without["noise"], 0);
  EXPECT_TRUE(without["stragglers"].empty());
  const json random = scenario({"--straggler-rate", "5%"})["random_stragglers"];
  EXPECT_EQ(random["rate_per_day"], 0.05);
}

TEST_F(BinaryConditionsEmulateTest, EmulateSaysThatItSearchesLess) {
  const auto is_said = Mentions("0.2");
  EXPECT_THAT(Out(Arguments("emulate", {})), is_said);
  EXPECT_THAT(Out(Arguments("emulate", {"--effort", "0.2"})), Not(is_said));
  EXPECT_THAT(Out(Arguments("emulate", {"--plan", "max-clocks"})), Not(is_said));
}

TEST_F(BinaryConditionsEmulateTest, EmulateTakesThemFromThePlanUnlessAFlagSaysOtherwise) {
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

TEST_F(BinaryConditionsEmulateTest, ThePriceOfChangesIsStatedApart) {
  const std::vector<std::string> late = {"--switch-latency", "20ms", "--iterations", "4", "--json"};
  std::vector<std::string> priced = late;
  priced.insert(priced.end(), {"--set", "change_price=0.5"});
  const std::string path = Write(flags_, "held");
  const auto emulate = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--plan", path});
    return json::parse(Out(Arguments("emulate", flags)));
  };
  const json without = emulate(late);
  EXPECT_FALSE(without.contains("price_of_changes"));
  const json with = emulate(priced);
  EXPECT_EQ(with["energy_j"], without["energy_j"]);
  const json& price = with["price_of_changes"];
  EXPECT_EQ(price["price_j"], 0.5 * with["clock_calls"].get<double>());
  EXPECT_GT(price["price_j"], 0);
  EXPECT_EQ(price["baseline_price_j"], 0);
  EXPECT_LT(price["saving_percent"], with["saving_percent"]);
  // In text, too, and what the plan says of itself.
  std::vector<std::string> plan = Arguments("plan", flags_);
  plan.insert(plan.end(), {"--effort", "0.05", "--set", "change_price=0.5"});
  EXPECT_THAT(Out(plan), Mentions("change_price", "500.0", "1.0"));
}

TEST_F(BinaryConditionsEmulateTest, APlanForMicrobatchesThatDifferIsNotReplayedSilently) {
  const std::string work = folder_.Write("work.csv", "microbatch,factor\n0,1\n1,2\n2,1\n3,0.5\n");
  const std::string path = Write({"--work", work}, "work");
  const auto notes = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--plan", path, "--iterations", "2", "--json"};
    flags.insert(flags.end(), more.begin(), more.end());
    const json document = json::parse(Out(Arguments("emulate", flags)));
    return document["notes"].dump() + document["remarks"].dump();
  };
  EXPECT_THAT(notes({}), Mentions("--work"));
  EXPECT_THAT(notes({"--work", work}), Not(Mentions("work")));
  const std::string other = folder_.Write("other.csv", "microbatch,factor\n0,1\n1,2\n2,3\n");
  EXPECT_THAT(notes({"--work", other}), Mentions("lengths"));
  EXPECT_THAT(notes({"--work", other}), Mentions("3", "4"));
}

TEST_F(BinaryConditionsEmulateTest, ASpreadIsHeldAgainstTheLatencyOfThePlan) {
  const RunResult run = RunPerseus(Arguments(
      "emulate", {"--plan", Write(flags_, "held"), "--set", "switch_latency_spread=30ms"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, Mentions("switch_latency_spread", "0.03", "0.02"));
  // A latency below the spread that the plan was made for.
  std::vector<std::string> spread = flags_;
  spread.insert(spread.end(), {"--set", "switch_latency_spread=5ms"});
  const RunResult below = RunPerseus(
      Arguments("emulate", {"--plan", Write(spread, "spread"), "--switch-latency", "1ms"}));
  EXPECT_EQ(below.exit_code, 2);
  EXPECT_THAT(below.err, Mentions("--switch-latency", "0.001", "0.005"));
}

TEST_F(BinaryConditionsEmulateTest, EmulateMakesTheMakeRobustPlanWhereItIsTold) {
  std::vector<std::string> arguments = Arguments("emulate", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05", "--iterations", "20"});
  EXPECT_THAT(Out(arguments), Mentions("(holds)"));
}

// The flag, or the key of the job file or of the plan.
TEST_F(BinaryConditionsEmulateTest, ThePriceOfChangesIsNamedAsItWasGiven) {
  const std::string job = folder_.Write(
      "priced.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "effort = 0.05\n[conditions]\nnoise = '1 %'\nswitch_latency = '20 ms'\n"
      "call_ahead = 'predicted'\nchange_price = 0.5\n");
  const auto is_key = Mentions("'change_price'");
  const auto is_flag = Mentions("change_price");
  EXPECT_THAT(Words(Out({"plan", job, "-o", folder_.Path("priced")})), is_key);
  EXPECT_THAT(Words(Out({"plan", job, "--set", "change_price=0.6"})), is_flag);
  EXPECT_THAT(Words(Out({"emulate", job, "--iterations", "4"})), is_key);
  const std::vector<std::string> replay =
      Arguments("emulate", {"--iterations", "4", "--plan", folder_.Path("priced/plan.json")});
  EXPECT_THAT(Words(Out(replay)), Mentions("change_price_j"));
  std::vector<std::string> more = replay;
  more.insert(more.end(), {"--set", "change_price=0.6"});
  EXPECT_THAT(Words(Out(more)), is_flag);
}

}  // namespace
}  // namespace perseus::cli
