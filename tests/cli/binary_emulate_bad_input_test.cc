// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What `perseus emulate` refuses: exit code 2, one sentence on standard error, nothing on
// standard output, no file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class BinaryEmulateBadInputTest : public testing::Test {
 protected:
  std::string Emulate(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {
        "emulate", profile_, "--schedule",   "1f1b", "--microbatches",   "4",
        "--dp",    "4",      "--iterations", "10",   "--blocking-power", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Refused(arguments);
  }

  TemporaryFolder folder_;
  std::string profile_ = folder_.Write("profile.csv", SampleProfile(2));
};

TEST_F(BinaryEmulateBadInputTest, StragglersThatCannotBe) {
  EXPECT_THAT(Emulate({"--straggler", "slo=1.2"}), StartsWith("--straggler: straggler 'slo=1.2'"));
  EXPECT_THAT(Emulate({"--straggler", "slow=0.5"}), StartsWith("--straggler: "));
  EXPECT_THAT(Emulate({"--straggler", "slow=1.2,from=x"}), StartsWith("--straggler: "));
  EXPECT_EQ(Emulate({"--straggler", "slow=1.2,pipeline=4"}),
            "--straggler slow=1.2: there is no pipeline 4; the job has 4 pipelines (--dp), counted "
            "from 0");
  EXPECT_EQ(Emulate({"--straggler", "slow=1.2,rank=2"}),
            "--straggler slow=1.2: there is no rank 2; a pipeline has 2 ranks, counted from 0");
  EXPECT_EQ(Emulate({"--straggler", "slow=1.2,from=10"}),
            "--straggler slow=1.2: it comes in iteration 10, but only 10 are emulated, counted "
            "from 0 (--iterations)");
  EXPECT_THAT(Emulate({"--straggler-rate", "5%,slow=2,pipeline=1"}),
              StartsWith("--straggler-rate: "));
  EXPECT_THAT(Emulate({"--straggler-rate", "5"}), Mentions("5%"));
  EXPECT_THAT(Emulate({"--reaction-delay", "soon"}), StartsWith("--reaction-delay: "));
}

TEST_F(BinaryEmulateBadInputTest, FlagsThatWouldBeIgnored) {
  EXPECT_EQ(Emulate({"--set", "switch_latency_spread=2ms"}),
            "--set switch_latency_spread is the spread of a latency; give --switch-latency, too");
  EXPECT_EQ(Emulate({"--set", "max_early_loss=3%"}),
            "--set max_early_loss is for --call-ahead predicted; give both");
  EXPECT_EQ(Emulate({"--set", "max_early_loss=3%", "--call-ahead", "end"}),
            "--set max_early_loss is for --call-ahead predicted; give both");
  EXPECT_EQ(Emulate({"--set", "work_fit=fit.csv"}),
            "--set work_fit is for a work table in tokens (--work); give both");
  EXPECT_EQ(Emulate({"--set", "work_tokens=100"}),
            "--set work_tokens is for a work table in tokens (--work); give both");
  EXPECT_THAT(Emulate({"--plan", "plan.json", "--max-changes", "4"}),
              Mentions("--max-changes", "--plan"));
}

TEST_F(BinaryEmulateBadInputTest, NumbersOutOfRange) {
  EXPECT_THAT(Emulate({"--noise", "1"}), Mentions("1%"));
  EXPECT_THAT(Emulate({"--set", "gpu_noise=30%"}), Mentions("25%"));
  EXPECT_EQ(
      Emulate({"--switch-latency", "1ms", "--set", "switch_latency_spread=2ms"}),
      "--set switch_latency_spread is 0.002 s, more than the latency of 0.001 s that it is the "
      "spread of");
  EXPECT_THAT(Emulate({"--max-slowdown", "2"}), Mentions("2%"));
  EXPECT_THAT(Emulate({"--set", "confidence=100%"}), Mentions("50%", "100%"));
  EXPECT_THAT(Emulate({"--seed", "-1"}), StartsWith("--seed: expected a whole number"));
  EXPECT_THAT(Emulate({"--iterations", "11"}), StartsWith("--iterations is given more than once"));
  EXPECT_THAT(Emulate({"--power-interval", "1us"}), Mentions("interval"));
  EXPECT_THAT(Emulate({"--at", "0.5x"}), Mentions("fastest"));
  EXPECT_THAT(Emulate({"--at", "1.02"}), Mentions("1.02x"));
}

TEST_F(BinaryEmulateBadInputTest, PoliciesAndPlans) {
  EXPECT_THAT(Emulate({"--compare", folder_.Path("none.json")}), Mentions("none.json"));
  EXPECT_THAT(Emulate({"--compare", folder_.Write("p.txt", "")}), StartsWith("--compare: "));
  EXPECT_THAT(Emulate({"--plan", folder_.Path("none.json")}), Mentions("none.json"));
  EXPECT_THAT(Emulate({"--plan", folder_.Path("none.py")}), Mentions("none.py"));
  EXPECT_THAT(Emulate({"--plan", folder_.Write("p.txt", "")}), Mentions("plan.json"));
  EXPECT_THAT(Emulate({"--plan", folder_.Write("p.py", "[[")}), Mentions("p.py:1:"));
  const std::vector<std::vector<std::string>> constraints = {{"--granularity", "stage"},
                                                             {"--time-margin", "1%"}};
  for (const std::vector<std::string>& constraint : constraints) {
    EXPECT_THAT(Emulate({"--plan", folder_.Write("p.json", "{}"), constraint[0], constraint[1]}),
                StartsWith(constraint[0] + " is for making plans"));
  }
}

TEST_F(BinaryEmulateBadInputTest, APlanOfAnotherJobDoesNotFit) {
  const std::string out = folder_.Path("out");
  ASSERT_EQ(RunPerseus({"plan", profile_, "--schedule", "1f1b", "--microbatches", "3",
                        "--blocking-power", "20", "-o", out})
                .exit_code,
            0);
  EXPECT_THAT(Emulate({"--plan", out + "/plan.json"}), StartsWith(out + "/plan.json: "));
  EXPECT_THAT(Emulate({"--plan", out + "/zeus_plan.py"}), StartsWith(out + "/zeus_plan.py"));
}

TEST_F(BinaryEmulateBadInputTest, WhatIsMissingIsNamed) {
  EXPECT_THAT(Refused({"emulate"}), Mentions("profile.csv"));
  EXPECT_THAT(
      Refused({"emulate", profile_}),
      testing::ContainsRegex("^--schedule .*, --microbatches .*, --blocking-power .* are missing"));
  EXPECT_THAT(Refused({"emulate", folder_.Path("none.csv")}), Mentions("none.csv"));
}

TEST_F(BinaryEmulateBadInputTest, AnOutputThatCannotBeWrittenLeavesNothing) {
  const std::string file = folder_.Write("taken", "mine");
  EXPECT_THAT(Emulate({"-o", file}), Mentions(file));
  EXPECT_EQ(ReadText(file), "mine");
  ASSERT_EQ(mkdir(folder_.Path("out").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(folder_.Path("out/report.html").c_str(), 0755), 0);
  Emulate({"-o", folder_.Path("out")});
  EXPECT_EQ(access(folder_.Path("out/emulation.json").c_str(), F_OK), -1);
  EXPECT_THAT(folder_.List(), testing::ElementsAre("out", "profile.csv", "taken"));
}

}  // namespace
}  // namespace perseus::cli
