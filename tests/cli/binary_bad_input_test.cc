// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Errors that need more than a command and files: exit code 2, one sentence on standard error,
// nothing on standard output. messages.golden has the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class BinaryBadInputTest : public SampleJobTest {};

// Refused() counts the lines.
TEST_F(BinaryBadInputTest, WhatIsQuotedIsOneShortLine) {
  EXPECT_EQ(Refused({"plan", "a\nb\x1b[31m.csv"}),
            "a\\nb\\x1b[31m.csv: cannot read: there is no such file; check the path");
  const std::string sentence = Refused(Arguments("plan", {"--at", "1" + std::string(9999, 'x')}));
  EXPECT_LT(sentence.size(), 2100u);
  EXPECT_THAT(sentence, testing::StartsWith("--at: '1xxx"));
  EXPECT_THAT(sentence, testing::EndsWith("min-energy, fastest or tstar"));
  // Cut between characters.
  const std::string wide = Refused(Arguments("plan", {"--at", std::string(2001, 'x') + "\u00e9"}));
  EXPECT_THAT(wide, testing::EndsWith("min-energy, fastest or tstar"));
}

TEST_F(BinaryBadInputTest, WithoutACommandAllAreNamed) {
  EXPECT_THAT(Refused({}), Mentions("plan,", "frontier,"));
}

// The sentence says how to start an agent; of clocks, why they stay, too.
TEST_F(BinaryBadInputTest, NoAgent) {
  const std::string socket = folder_.Path("agent.sock");
  EXPECT_EQ(
      Refused({"agent", "status", "--socket", socket}),
      "the agent at " + socket +
          ": No such file or directory; is it running? 'sudo perseus agent run' starts one, and "
          "--socket names another");
  const std::string kept = Refused({"agent", "release", "--all", "--socket", socket, "--driver",
                                    "nvml:" + folder_.Path("none.so")});
  EXPECT_THAT(kept, AllOf(HasSubstr(socket), HasSubstr("'sudo perseus agent run'"),
                          HasSubstr("cannot load NVIDIA's library")));
}

TEST_F(BinaryBadInputTest, AFileOverTheLimitLeavesNothing) {
  std::string command = "ulimit -f 1; exec " PERSEUS_BINARY;
  for (const std::string& word : Arguments("plan", {"-o", folder_.Path("out")}))
    command += " " + word;
  const RunResult run = RunShell(command, "");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, Mentions("ulimit"));
  for (const std::string& name : folder_.List()) EXPECT_FALSE(name.starts_with('.')) << name;
  EXPECT_EQ(access(folder_.Path("out/plan.json").c_str(), F_OK), -1);
}

// All commands that talk to a server take the same variables; an option wins.
TEST_F(BinaryBadInputTest, AServersVariablesAreRead) {
  RunOptions options;
  options.environment = {"LANG=C", "PERSEUS_SERVER=https://127.0.0.1:1",
                         "PERSEUS_CA_FILE=/none/ca.pem"};
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"job", "list"},
           {"profile", "list"},
           {"report", "energy"},
           {"agent", "relay", "--socket", folder_.Path("relay.sock")}}) {
    const RunResult run = RunPerseus(words, options);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, Mentions("/none/ca.pem"));
  }
  const RunResult run = RunPerseus({"job", "list", "--ca-file", "/none/mine.pem"}, options);
  EXPECT_THAT(run.err, Mentions("/none/mine.pem"));
}

TEST_F(BinaryBadInputTest, APlanOfAnotherJobDoesNotFit) {
  const std::string out = folder_.Path("out");
  ASSERT_EQ(RunPerseus({"plan", profile_, "--schedule", "1f1b", "--microbatches", "3",
                        "--blocking-power", "20", "-o", out})
                .exit_code,
            0);
  EXPECT_THAT(Refused(Arguments("emulate", {"--plan", out + "/plan.json"})),
              testing::StartsWith(out + "/plan.json: "));
  EXPECT_THAT(Refused(Arguments("emulate", {"--plan", out + "/zeus_plan.py"})),
              testing::StartsWith(out + "/zeus_plan.py"));
}

TEST_F(BinaryBadInputTest, AnOutputThatCannotBeWrittenLeavesNothing) {
  const std::string file = folder_.Write("taken", "mine");
  // A folder in the place of one of the files.
  ASSERT_EQ(mkdir(folder_.Path("out").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(folder_.Path("out/report.html").c_str(), 0755), 0);
  for (const char* const command : {"plan", "emulate"}) {
    EXPECT_THAT(Refused(Arguments(command, {"-o", file})), Mentions(file));
    EXPECT_EQ(ReadText(file), "mine");
    Refused(Arguments(command, {"-o", folder_.Path("out")}));
    for (const char* const name : {"out/plan.json", "out/frontier.csv", "out/emulation.json"}) {
      EXPECT_EQ(access(folder_.Path(name).c_str(), F_OK), -1) << name;
    }
  }
  EXPECT_THAT(Refused(Arguments("frontier", {"-o", "/nonexistent/frontier.csv"})),
              Mentions("/nonexistent"));
  EXPECT_THAT(folder_.List(), testing::ElementsAre("out", "profile.csv", "taken"));
}

}  // namespace
}  // namespace perseus::cli
