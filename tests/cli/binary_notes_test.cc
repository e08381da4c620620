// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Notes of `perseus plan` and `perseus frontier` about an input that is valid and odd.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class BinaryNotesTest : public testing::Test {
 protected:
  std::vector<std::string> Notes(const std::string& csv,
                                 const std::vector<std::string>& schedule = {"1f1b"},
                                 const std::string& blocking_power = "20") const {
    std::vector<std::string> arguments = {"plan",           folder_.Write("profile.csv", csv),
                                          "--microbatches", "8",
                                          "--effort",       "0.01",
                                          "--json",         "--blocking-power",
                                          blocking_power,   "--schedule"};
    arguments.insert(arguments.end(), schedule.begin(), schedule.end());
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Texts(run.out);
  }

  // Notes, then remarks.
  static std::vector<std::string> Texts(const std::string& out) {
    const auto document = nlohmann::json::parse(out);
    std::vector<std::string> texts;
    for (const auto& note : document["notes"]) texts.push_back(note["text"]);
    for (const auto& remark : document["remarks"]) texts.push_back(remark);
    return texts;
  }

  // An iteration of 0.1 s at 1400 and of 0.12 s at 1000.
  static std::string Quick() {
    return "stage,instruction,frequency,time,energy\n"
           "0,forward,1400,0.05,15\n0,forward,1000,0.06,10\n"
           "0,backward,1400,0.05,15\n0,backward,1000,0.06,10\n";
  }

  // The sample without the lines that start with one of these.
  static std::string Without(std::string csv, const std::vector<std::string>& starts) {
    for (const std::string& start : starts) {
      const std::size_t at = csv.find("\n" + start);
      EXPECT_NE(at, std::string::npos) << start;
      csv.erase(at, csv.find('\n', at + 1) - at);
    }
    return csv;
  }

  TemporaryFolder folder_;
};

TEST_F(BinaryNotesTest, AnOrdinaryInputHasNone) {
  EXPECT_THAT(Notes(SampleProfile(4)), IsEmpty());
  // But that of stages that share a rank.
  EXPECT_THAT(Notes(SampleProfile(4), {"interleaved-1f1b", "--virtual-stages", "2"}),
              ElementsAre(Mentions("2", "4")));
}

TEST_F(BinaryNotesTest, AStageWithoutTheHighestClock) {
  const std::string one = Without(SampleProfile(2), {"1,forward,1400"});
  EXPECT_THAT(Notes(one), ElementsAre(Mentions("1", "forward", "1400", "1200")));
  const RunResult text = RunPerseus({"plan", folder_.Write("p.csv", one), "--schedule", "1f1b",
                                     "--microbatches", "2", "--blocking-power", "20"});
  EXPECT_THAT(text.out, testing::ContainsRegex("Note +[^ ]*p.csv:[ \n]+stage 1"));
  EXPECT_THAT(
      Notes(Without(SampleProfile(2), {"0,backward,1400", "1,forward,1400", "1,backward,1400"})),
      ElementsAre(AllOf(StartsWith("stage 0 backward has no row"), Mentions("2", "others"))));
}

TEST_F(BinaryNotesTest, WhatTheProfileAndItsCostsNote) {
  const std::string header = "stage,instruction,frequency,time,energy\n";
  std::string rows;
  for (const char* instruction : {"forward", "backward"}) {
    for (const int mhz : {1400, 1300, 1200, 1100, 1000}) {
      rows += "0," + std::string(instruction) + "," + std::to_string(mhz) + ",0.25,75\n";
    }
  }
  // Five clocks that cost the same save nothing.
  EXPECT_THAT(Notes(header + rows),
              ElementsAre(StartsWith("no clock of the profile saves energy")));
  rows += "0,forward,900,0.3,70\n0,backward,900,0.3,70\n";
  EXPECT_THAT(Notes(header + rows), IsEmpty());
  EXPECT_THAT(Notes(header + rows + "0,backward_input,1400,0.1,30\n"),
              ElementsAre(StartsWith("the schedule does not run backward_input by itself")));
  rows.replace(rows.find(",0.25,75\n"), 9, ",0.25,7.5\n");
  EXPECT_THAT(Refused({"plan", folder_.Write("p.csv", header + rows), "--schedule", "1f1b",
                       "--microbatches", "8", "--blocking-power", "20"}),
              Mentions("0", "1400", "--accept-implausible"));
  EXPECT_THAT(Notes(header + "0,forward,a,0.25,75\n0,backward,a,0.25,75\n"),
              ElementsAre(Mentions("labels", "baseline", "0", "forward"), Mentions("one", "knob")));
}

TEST_F(BinaryNotesTest, TheFrontierHasThemToo) {
  std::vector<std::string> arguments = {
      "frontier",         folder_.Write("p.csv", Without(SampleProfile(2), {"1,forward,1400"})),
      "--schedule",       "1f1b",
      "--microbatches",   "2",
      "--blocking-power", "20"};
  EXPECT_THAT(RunPerseus(arguments).out, testing::ContainsRegex("Note +[^ ]*p.csv:[ \n]+stage 1"));
  arguments.emplace_back("--json");
  EXPECT_THAT(Texts(RunPerseus(arguments).out),
              ElementsAre(StartsWith("stage 1 forward has no row at 1400,")));
}

TEST_F(BinaryNotesTest, TimesBeyondTStar) {
  const std::string quick = folder_.Write("quick.csv", Quick());
  const auto notes = [&](const std::string& at) -> std::vector<std::string> {
    const RunResult run = RunPerseus({"plan", quick, "--schedule", "1f1b", "--microbatches", "1",
                                      "--blocking-power", "20", "--json", "--at", at});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Texts(run.out);
  };
  EXPECT_THAT(notes("1.02x"), IsEmpty());
  EXPECT_THAT(notes("2.5s"), ElementsAre(AllOf(StartsWith("the time asked for, 2.5 s, is beyond"),
                                               Mentions("min-energy"))));
  EXPECT_THAT(notes("1.3x"), ElementsAre(Mentions("0.12")));
  EXPECT_THAT(notes("tstar"), IsEmpty());
  EXPECT_THAT(notes("1.2x"), IsEmpty());  // T* itself.
}

// A number without a unit is seconds.
TEST_F(BinaryNotesTest, TimesLongerThanAnIteration) {
  const std::string quick = folder_.Write("quick.csv", Quick());
  const auto notes = [&](const std::string& command,
                         const std::vector<std::string>& more) -> std::vector<std::string> {
    std::vector<std::string> arguments = {command,          quick, "--schedule",       "1f1b",
                                          "--microbatches", "1",   "--blocking-power", "20",
                                          "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return Texts(run.out);
  };
  EXPECT_THAT(notes("emulate", {"--switch-latency", "15", "--accept-implausible"}),
              ElementsAre(AllOf(Mentions("15"), Mentions("15ms"))));
  EXPECT_THAT(notes("emulate", {"--switch-latency", "15ms"}), IsEmpty());
}

// Watts are not clocks.
TEST_F(BinaryNotesTest, PowerCapsAreCalledKnobs) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (const char* type : {"forward", "backward"}) {
    csv += "0," + std::string(type) + ",400W,0.05,15\n0," + type + ",300W,0.06,10\n";
  }
  const RunResult run =
      RunPerseus({"plan", folder_.Write("w.csv", csv), "--schedule", "1f1b", "--microbatches", "1",
                  "--blocking-power", "20", "--granularity", "stage"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(Mentions("1", "knob", "knobs", "stage"), Not(HasSubstr("clock"))));
}

TEST_F(BinaryNotesTest, InterleavingNeedsVirtualStages) {
  for (const std::string schedule :
       {"interleaved-1f1b", "megatron-interleaved", "interleaved-zero-bubble"}) {
    EXPECT_THAT(Notes(SampleProfile(2), {schedule}),
                ElementsAre("each rank holds one stage, so " + schedule +
                            " has nothing to interleave; give virtual stages"));
  }
}

TEST_F(BinaryNotesTest, FusedComputationsTakeTheSum) {
  EXPECT_THAT(Notes(SampleProfile(4), {"dualpipev", "--virtual-stages", "2"}),
              ElementsAre(Mentions("2", "4"), Mentions("fused", "knob")));
}

// A modelled profile says so in everything that may be passed on alone.
TEST_F(BinaryNotesTest, AModelledProfileIsNamedInEveryOutput) {
  const std::string says = "MODELLED, not measured: for this test.";
  const std::string profile = folder_.Write("m.csv", "# " + says + "\n" + SampleProfile(2));
  const std::vector<std::string> common = {profile, "--schedule",       "1f1b", "--microbatches",
                                           "4",     "--blocking-power", "20"};
  const auto with = [&](const std::string& command, const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {command};
    arguments.insert(arguments.end(), common.begin(), common.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.out;
  };
  EXPECT_THAT(with("plan", {"-o", folder_.Path("plan")}), HasSubstr(says));
  EXPECT_THAT(with("plan", {"--json"}), HasSubstr(says));
  EXPECT_THAT(with("frontier", {}), HasSubstr(says));
  EXPECT_THAT(with("emulate", {"-o", folder_.Path("job")}), HasSubstr(says));
  for (const char* file :
       {"plan/plan.json", "plan/report.html", "job/emulation.json", "job/report.html"}) {
    EXPECT_THAT(ReadText(folder_.Path(file)), HasSubstr(says)) << file;
  }
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
    std::vector<std::string> arguments = {"explain", folder_.Path("plan/plan.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_THAT(RunPerseus(arguments).out, HasSubstr(says));
  }
}

// Notes of an answer without a place for them are on standard error.
TEST_F(BinaryNotesTest, OddCellsAreNotedBesideNumbersAlone) {
  std::string csv = "stage,instruction,frequency,time,energy\n";
  for (const std::string name : {"forward", "backward"}) {
    for (int i = 0; i < 8; ++i) {
      csv += "0," + name + "," + std::to_string(1400 - 50 * i) + "," +
             std::to_string(1 + 0.04 * i) + "," +
             std::to_string((i == 4 ? 0.1 : 1) * (100 - 3 * i)) + "\n";
    }
  }
  const std::string profile = folder_.Write("odd.csv", csv);
  const RunResult run =
      RunPerseus({"frontier", profile, "--schedule", "1f1b", "--microbatches", "4",
                  "--blocking-power", "20", "--csv", "--accept-implausible"});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.err, Mentions("odd.csv:6:"));
  EXPECT_THAT(run.out, Not(HasSubstr("odd.csv")));
}

}  // namespace
}  // namespace perseus::cli
