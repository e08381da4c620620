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
  EXPECT_THAT(Emulate({"--straggler-kind", "slow=2"}),
              Mentions("--straggler-kind", "--straggler-rate"));
  EXPECT_THAT(Emulate({"--straggler-rate", "5"}), Mentions("5%"));
  EXPECT_THAT(Emulate({"--no-reaction", "--reaction-delay", "1s"}), Mentions("exclude"));
}

TEST_F(BinaryEmulateBadInputTest, AssignmentsThatWouldBeMisstated) {
  const std::string lengths =
      folder_.Write("lengths.csv", "microbatch,factor\n0,1\n1,2\n2,1\n3,1\n");
  EXPECT_THAT(Emulate({"--assignment", lengths, "--at", "1.2x"}), Mentions("--at"));
  EXPECT_THAT(Emulate({"--assignment", lengths, "--set", "work_fit=" + lengths}),
              Mentions("work_fit"));
  EXPECT_THAT(Emulate({"--assignment", lengths}), Mentions("1", "4", "--dp"));
  EXPECT_THAT(Emulate({"--assignment", folder_.Path("none.csv")}),
              StartsWith("--assignment: " + folder_.Path("none.csv")));
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
  EXPECT_EQ(Emulate({"--sweep", "microbatches=2", "--work", "work.csv"}),
            "--sweep is for microbatches that are alike; leave out the work table (--work)");
  EXPECT_THAT(Emulate({"--plan", "plan.json", "--max-changes", "4"}),
              Mentions("--max-changes", "--plan"));
  EXPECT_THAT(Emulate({"--policy", "envpipe", "--max-slowdown", "1%"}), Mentions("--max-slowdown"));
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
  EXPECT_THAT(Emulate({"--timeline-iteration", "10"}),
              StartsWith("--timeline-iteration is 10, but the iterations are 0 to 9"));
  EXPECT_THAT(Emulate({"--power-interval", "1us"}), Mentions("interval"));
  EXPECT_THAT(Emulate({"--at", "0.5x"}), Mentions("fastest"));
  EXPECT_THAT(Emulate({"--at", "1.02"}), Mentions("1.02x"));
}

TEST_F(BinaryEmulateBadInputTest, PoliciesAndPlans) {
  EXPECT_THAT(Emulate({"--policy", "perseu"}), Mentions("'perseus'"));
  EXPECT_THAT(Emulate({"--policy", "max-clocks", "--granularity", "stage"}),
              Mentions("max-clocks"));
  EXPECT_THAT(Emulate({"--policy", "perseus", "--plan", "plan.json"}), Mentions("exclude"));
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

TEST_F(BinaryEmulateBadInputTest, QuestionsThatLackSomething) {
  EXPECT_EQ(Emulate({"--price", "0.1"}), "--price needs --gpu-hours, the GPU hours of the run");
  EXPECT_EQ(Emulate({"--carbon", "300"}), "--carbon needs --gpu-hours, the GPU hours of the run");
  EXPECT_THAT(Emulate({"--deadline", "3d"}), Mentions("--run-iterations"));
  EXPECT_THAT(Emulate({"--run-iterations", "3"}), Mentions("--deadline"));
  EXPECT_EQ(Emulate({"--layers", "4,5"}), "--layers is for --imbalance; give both");
  EXPECT_THAT(Emulate({"--imbalance", "--layers", "4,5,6"}),
              AllOf(StartsWith("--imbalance: "), Mentions("3", "stages")));
  EXPECT_THAT(Emulate({"--sweep", "microbatches=0"}), StartsWith("--sweep: "));
  EXPECT_THAT(Emulate({"--power-budget", "100W"}), StartsWith("--power-budget: "));
  EXPECT_THAT(Emulate({"--deadline", "1s", "--run-iterations", "100"}), StartsWith("--deadline: "));
  const std::string schedule = folder_.Write("s.csv", "0F0,0B0\r\n1F0,1B0\r\n");
  EXPECT_THAT(Refused({"emulate", profile_, "--schedule-file", schedule, "--blocking-power", "20",
                       "--imbalance"}),
              StartsWith("--imbalance needs a schedule by name"));
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
