// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Every class of error: exit code 2, one sentence on standard error, nothing
// on standard output.

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
using testing::Not;

class BinaryBadInputTest : public testing::Test {
 protected:
  std::vector<std::string> Plan(const std::string& profile,
                                const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"plan",           profile, "--schedule",       "1f1b",
                                          "--microbatches", "4",     "--blocking-power", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  TemporaryFolder folder_;
  std::string profile_ = folder_.Write("profile.csv", SampleProfile(2));
};

// Refused() counts the lines.
TEST_F(BinaryBadInputTest, WhatIsQuotedIsOneShortLine) {
  EXPECT_EQ(Refused(Plan("a\nb\x1b[31m.csv")),
            "a\\nb\\x1b[31m.csv: cannot read: there is no such file; check the path");
  const std::string sentence = Refused(Plan(profile_, {"--at", "1" + std::string(9999, 'x')}));
  EXPECT_LT(sentence.size(), 2100u);
  EXPECT_THAT(sentence, testing::StartsWith("--at: '1xxx"));
  EXPECT_THAT(sentence, testing::EndsWith("min-energy, fastest or tstar"));
  // Cut between characters.
  const std::string wide = Refused(Plan(profile_, {"--at", std::string(2001, 'x') + "\u00e9"}));
  EXPECT_THAT(wide, testing::EndsWith("min-energy, fastest or tstar"));
}

// Whoever asks an agent that does not run hears how to start one; of clocks, why they stay, too.
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

// Whoever has no simulated GPUs yet hears what makes them.
TEST_F(BinaryBadInputTest, NoSimulatedGpus) {
  EXPECT_THAT(Refused({"agent", "run", "--driver", "simulated:" + folder_.Path("none"), "--socket",
                       folder_.Path("agent.sock"), "--journal", folder_.Path("journal")}),
              HasSubstr("'python3 -m perseus.simulate create FILE' makes one"));
}

TEST_F(BinaryBadInputTest, AFileOverTheLimitLeavesNothing) {
  std::string command = "ulimit -f 1; exec " PERSEUS_BINARY;
  for (const std::string& word : Plan(profile_, {"-o", folder_.Path("out")})) command += " " + word;
  const RunResult run = RunShell(command, "");
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, Mentions("ulimit"));
  for (const std::string& name : folder_.List()) EXPECT_FALSE(name.starts_with('.')) << name;
  EXPECT_EQ(access(folder_.Path("out/plan.json").c_str(), F_OK), -1);
}

TEST_F(BinaryBadInputTest, Usage) {
  EXPECT_THAT(Refused({"plam"}), Mentions("'plan'"));
  EXPECT_THAT(Refused({}), Mentions("plan,", "frontier,"));
  EXPECT_THAT(Refused({"frontier", profile_, "--jsn"}), Mentions("'--json'"));
  EXPECT_THAT(Refused({"completion", "tcsh"}), Mentions("tcsh"));
  EXPECT_THAT(Refused({"frontier", profile_, "--csv", "--json"}), Mentions("--csv"));
}

TEST_F(BinaryBadInputTest, WhatIsMissingIsNamedWithAnExample) {
  EXPECT_THAT(Refused({"plan"}), Mentions("missing,"));
  EXPECT_THAT(Refused({"plan", profile_, "--schedule", "1f1b"}),
              testing::ContainsRegex("^--microbatches .*, --blocking-power .* are missing"));
  EXPECT_THAT(Refused({"schedule", "1f1b", "--stages", "2"}),
              testing::StartsWith("--microbatches is missing"));
  EXPECT_THAT(Refused({"explain"}), Mentions("plan/plan.json"));
  EXPECT_THAT(Refused({"synth"}), testing::HasSubstr("python -m perseus synth"));
}

TEST_F(BinaryBadInputTest, ShapesThatContradict) {
  EXPECT_THAT(Refused(Plan(profile_, {"--stages", "3"})),
              testing::StartsWith("--stages is 3, but " + profile_));
  const std::string schedule = folder_.Write("s.csv", "0F0,0B0\r\n1F0,1B0\r\n");
  EXPECT_THAT(Refused({"plan", profile_, "--schedule-file", schedule, "--microbatches", "2",
                       "--blocking-power", "20"}),
              HasSubstr("--microbatches is 2, but " + schedule + " has 1 microbatch"));
  EXPECT_NE(Refused(Plan(profile_, {"--blocking-power", "1"})), "");  // Given twice.
  EXPECT_NE(Refused({"plan", profile_, "--schedule", "1f1b", "--microbatches", "4",
                     "--blocking-power", "1,2,3"}),
            "");
}

TEST_F(BinaryBadInputTest, FilesThatCannotBeRead) {
  EXPECT_THAT(Refused(Plan(folder_.Path("none.csv"))), Mentions("none.csv"));
  EXPECT_THAT(Refused(Plan(folder_.path())), Mentions(folder_.path()));
  // The path comes before the flags that are missing as well.
  EXPECT_THAT(Refused({"plan", folder_.Path("none.csv")}), Mentions("none.csv"));
  const std::string job =
      folder_.Write("job.toml", "schedule = \"1f1b\"\nprofile = \"none.csv\"\n");
  EXPECT_THAT(Refused({"plan", job}), Mentions(job + ":2:"));
  EXPECT_THAT(Refused({"frontier", folder_.path()}), Mentions("directory"));
  EXPECT_THAT(Refused(Plan(folder_.Write("empty.csv", ""))), Mentions("empty.csv"));
  EXPECT_THAT(Refused(Plan(folder_.Write("nan.csv",
                                         "stage,instruction,frequency,time,energy\n"
                                         "0,forward,1400,nan,1\n"))),
              Mentions("nan.csv:2:"));
  EXPECT_THAT(Refused({"explain", folder_.Write("plan.json", "{\"schema_version\": 1")}),
              Mentions("plan.json:1:"));
  EXPECT_THAT(Refused({"explain", folder_.Write("other.json", "{}")}),
              AllOf(Mentions("'schema_version'"),
                    testing::EndsWith("; is it a plan.json that perseus plan wrote?")));
  EXPECT_THAT(Refused({"plan", folder_.Write("job.toml", "profil = \"a\"\n")}),
              Mentions("job.toml:1:"));
  EXPECT_THAT(Refused({"schedule", folder_.Write("dead.csv", "0B0,0F0\r\n")}),
              Mentions("dead.csv"));
}

TEST_F(BinaryBadInputTest, AnInfeasibleTimeSaysWhatWouldWork) {
  for (const std::string at : {"0.5x", "0.001s"}) {
    const std::string sentence = Refused(Plan(profile_, {"--at", at}));
    EXPECT_THAT(sentence, AllOf(Mentions("fastest"), Mentions("4.5"))) << sentence;
  }
}

TEST_F(BinaryBadInputTest, ATargetWithoutAUnitIsRefused) {
  EXPECT_THAT(Refused(Plan(profile_, {"--at", "1.02"})),
              AllOf(Mentions("1.02x"), Mentions("1.02s")));
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

TEST_F(BinaryBadInputTest, AnOutputThatCannotBeWrittenLeavesNothing) {
  const std::string file = folder_.Write("taken", "mine");
  EXPECT_THAT(Refused(Plan(profile_, {"-o", file})), Mentions(file));
  EXPECT_EQ(ReadText(file), "mine");
  // A folder in the place of one of the files.
  ASSERT_EQ(mkdir(folder_.Path("out").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(folder_.Path("out/report.html").c_str(), 0755), 0);
  Refused(Plan(profile_, {"-o", folder_.Path("out")}));
  EXPECT_EQ(access(folder_.Path("out/plan.json").c_str(), F_OK), -1);
  EXPECT_EQ(access(folder_.Path("out/frontier.csv").c_str(), F_OK), -1);
  EXPECT_THAT(Refused({"frontier", profile_, "--schedule", "1f1b", "--microbatches", "4",
                       "--blocking-power", "20", "-o", "/nonexistent/frontier.csv"}),
              Mentions("/nonexistent"));
  EXPECT_THAT(folder_.List(), testing::ElementsAre("out", "profile.csv", "taken"));
}

}  // namespace
}  // namespace perseus::cli
