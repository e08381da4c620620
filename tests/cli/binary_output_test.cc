// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Output of the program where nothing goes wrong, and its behaviour when
// standard output does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(BinaryOutputTest, VersionAndHelp) {
  const RunResult version = RunPerseus({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, testing::MatchesRegex("perseus [0-9.]+\n"));
  const RunResult help = RunPerseus({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, StartsWith("Usage: perseus COMMAND [OPTIONS]\n"));
  EXPECT_EQ(help.err, "");
}

TEST(BinaryOutputTest, ScheduleByName) {
  const RunResult drawn = RunPerseus({"schedule", "1f1b", "--stages", "2", "--microbatches", "2"});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_THAT(drawn.out, StartsWith("1f1b: 2 ranks, 2 stages, 2 microbatches\n\n"));
  const RunResult csv =
      RunPerseus({"schedule", "1F1B", "--stages", "2", "--microbatches", "2", "--format", "csv"});
  EXPECT_EQ(csv.out, "0F0,0F1,0B0,0B1\r\n1F0,1B0,1F1,1B1\r\n");
  const RunResult json =
      RunPerseus({"schedule", "1f1b", "--stages", "2", "--microbatches", "2", "--format", "json"});
  const auto document = nlohmann::json::parse(json.out);
  EXPECT_EQ(document["ranks"], 2);
  EXPECT_EQ(document["microbatches"], 2);
  EXPECT_EQ(document["order"][1][1], "1B0");
}

TEST(BinaryOutputTest, ScheduleFromFileAndToFile) {
  const TemporaryFolder folder;
  const std::string file = folder.Path("s.csv");
  const RunResult made = RunPerseus({"schedule", "dualpipev", "--stages", "4", "--virtual-stages",
                                     "2", "--microbatches", "6", "--format", "csv", "-o", file});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(made.out,
            "dualpipev: 2 ranks, 4 stages (2 each), 6 microbatches; written to " + file + ".\n");
  EXPECT_THAT(folder.List(), testing::ElementsAre("s.csv"));
  const RunResult valid = RunPerseus({"schedule", file, "--validate"});
  EXPECT_EQ(valid.exit_code, 0) << valid.err;
  EXPECT_THAT(valid.out, Mentions("valid,"));
  const RunResult again = RunPerseus({"schedule", file, "--format", "csv"});
  EXPECT_EQ(again.out, ReadText(file));
}

TEST(BinaryOutputTest, ManAndCompletion) {
  EXPECT_THAT(RunPerseus({"man"}).out, Mentions("PERSEUS", "1"));
  EXPECT_THAT(RunPerseus({"completion", "bash"}).out, HasSubstr("complete -F _perseus perseus"));
  EXPECT_THAT(RunPerseus({"completion", "zsh"}).out, StartsWith("#compdef perseus"));
  EXPECT_THAT(RunPerseus({"completion", "fish"}).out, HasSubstr("complete -c perseus"));
}

TEST(BinaryOutputTest, NoColourAndNoUtf8ForAPlainPipe) {
  const RunResult run = RunPerseus({"--help"});
  for (const char c : run.out) {
    EXPECT_LT(static_cast<unsigned char>(c), 0x80);
    EXPECT_NE(c, '\x1b');
  }
}

TEST(BinaryOutputTest, ADumbTerminalGetsAsciiRules) {
  const TemporaryFolder folder;
  const std::vector<std::string> arguments = {"plan",
                                              folder.Write("p.csv", SampleProfile(2)),
                                              "--schedule",
                                              "1f1b",
                                              "--microbatches",
                                              "2",
                                              "--effort",
                                              "0.01",
                                              "--blocking-power",
                                              "20"};
  RunOptions options;
  options.environment = {"LANG=C.UTF-8", "TERM=xterm"};
  EXPECT_THAT(RunPerseus(arguments, options).out, HasSubstr("\u2500"));
  options.environment = {"LANG=C.UTF-8", "TERM=dumb"};
  const std::string dumb = RunPerseus(arguments, options).out;
  EXPECT_THAT(dumb, testing::Not(HasSubstr("\u2500")));
  EXPECT_THAT(dumb, HasSubstr("-----"));
}

TEST(BinaryOutputTest, AFullDiskIsReported) {
  RunOptions options;
  options.stdout_path = "/dev/full";
  const RunResult run = RunPerseus({"man"}, options);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err,
            "perseus: cannot write to standard output: No space left on device; send it to a place "
            "that can be written\n");
}

TEST(BinaryOutputTest, AClosedOutputIsReported) {
  RunOptions options;
  options.close_stdout = true;
  const RunResult run = RunPerseus({"--version"}, options);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, StartsWith("perseus: cannot write to standard output: "));
}

TEST(BinaryOutputTest, AReaderThatWentAwayIsNoFailure) {
  RunOptions options;
  options.broken_stdout = true;
  const RunResult run = RunPerseus({"man"}, options);
  EXPECT_EQ(run.signal, 0);
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.err, "");
}

}  // namespace
}  // namespace perseus::cli
