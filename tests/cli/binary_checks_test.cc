// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Findings about a profile or a job are the same at every door of the program, before
// the figures that it spoils. One table of faults, one helper for each door.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

struct Row {
  std::string knob;
  double seconds;
  double joules;
  double seconds_std = 0;
  double joules_std = 0;
};
using Rows = std::vector<Row>;

// 250 to 120 W, and times that rise as clocks fall.
Rows Sound() {
  return {{"1400", 0.1, 25}, {"1200", 0.115, 24}, {"1000", 0.135, 23}, {"800", 0.165, 22}};
}

std::string Csv(const Rows& rows) {
  std::ostringstream csv;
  csv << "stage,instruction,frequency,time,energy,time_std,energy_std\n";
  for (const char* instruction : {"forward", "backward"}) {
    for (const Row& row : rows) {
      csv << "0," << instruction << ',' << row.knob << ',' << row.seconds << ',' << row.joules
          << ',' << row.seconds_std << ',' << row.joules_std << '\n';
    }
  }
  return csv.str();
}

Rows Each(const std::function<void(Row*)>& change) {
  Rows rows = Sound();
  for (Row& row : rows) change(&row);
  return rows;
}

Rows Highest(double factor) {
  Rows rows = Sound();
  rows.front().seconds *= factor;
  rows.front().joules *= factor;
  return rows;
}

struct Fault {
  std::string name;
  Rows rows;
  Words flags;
  std::string says;
  std::string severity = "implausible";
  int line = 0;  // Of the profile.
  int column = 0;
};
std::ostream& operator<<(std::ostream& out, const Fault& fault) { return out << fault.name; }

std::vector<Fault> Faults() {
  return {
      {"milliseconds",
       Each([](Row* row) { row->seconds *= 1e3; }),
       {},
       "in milliseconds",
       "implausible",
       2,
       16},
      {"millijoules",
       Each([](Row* row) { row->joules *= 1e3; }),
       {},
       "in millijoules",
       "implausible",
       2,
       20},
      {"all_gpus",
       Each([](Row* row) { row->joules *= 16; }),
       {},
       "of several GPUs together",
       "implausible",
       2,
       20},
      {"gigahertz",
       Each([](Row* row) {
         row->knob = row->knob[0] == '8' ? "0.8" : "1." + row->knob.substr(1, 1);
       }),
       {},
       "write 1.4GHz",
       "impossible",
       2,
       11},
      {"kilohertz", Each([](Row* row) { row->knob += "000"; }), {}, "in kHz", "impossible", 2, 11},
      {"slow_highest",
       {{"1400", 0.2, 50}, {"1200", 0.1, 24}},
       {},
       "slower than a lower one",
       "implausible",
       2,
       16},
      {"third_of_speed", Highest(4), {}, "neighbours on the curve", "implausible", 2, 16},
      {"a_little_slow", Highest(1.3), {}, "slower than a lower one", "odd", 2, 16},
      {"spread_of_times",
       Each([](Row* row) { row->seconds_std = 1; }),
       {},
       "spread of the time",
       "implausible",
       2,
       23},
      {"spread_of_energies",
       Each([](Row* row) { row->joules_std = 1000; }),
       {},
       "spread of the energy",
       "implausible",
       2,
       25},
      {"microseconds_short",
       Each([](Row* row) { row->seconds *= 1e-6, row->joules *= 1e-6; }),
       {},
       "computations take 10 us to 30 s",
       "implausible",
       2,
       16},
      // Each GPU draws what GPUs draw.
      {"all_in_milli",
       Each([](Row* row) { row->seconds *= 1e3, row->joules *= 1e3; }),
       {},
       "in milliseconds (and the energies in millijoules)",
       "implausible",
       2,
       16},
      {"short_ones_in_milli",
       Each([](Row* row) { row->seconds *= 130, row->joules *= 130; }),
       {"--microbatches", "24"},
       "computes for 10.4 minutes in an iteration"},
      {"no_waiting_power", Sound(), {"--blocking-power", "0"}, "that waits draws 0 W"},
      {"waiting_above_computing",
       Sound(),
       {"--blocking-power", "140"},
       "draws more while it waits (140 W"},
      {"delay", Sound(), {"--comm-delay", "1000000"}, "the communication delay"},
      {"delay_in_milliseconds", Sound(), {"--comm-delay", "5"}, "did you mean 5ms?"},
      {"margin", Sound(), {"--time-margin", "100%"}, "a time margin of 100 %"},
      {"latency", Sound(), {"--switch-latency", "15"}, "did you mean 15ms?"},
      {"one_clock", {{"1400", 0.1, 25}}, {}, "has one clock only", "odd"},
      {"flat_curve",
       {{"1400", 0.1, 25}, {"1200", 0.1, 25}, {"1000", 0.1, 25}},
       {},
       "no clock of the profile saves energy",
       "odd"},
      {"dear_clocks",
       {{"1400", 0.1, 25}, {"1200", 0.115, 28}, {"1000", 0.135, 32}},
       {},
       "no clock of the profile saves energy",
       "odd"},
  };
}

bool Fits(const json& notes, const Fault& fault, const std::string& severity) {
  for (const json& note : notes) {
    if (note.at("text").get<std::string>().find(fault.says) == std::string::npos) continue;
    EXPECT_EQ(note.at("severity"), severity);
    if (fault.line > 0) {
      EXPECT_EQ(note.at("source"), "profile.csv");
      EXPECT_EQ(note.at("line"), fault.line);
      EXPECT_EQ(note.at("column"), fault.column);
    }
    return true;
  }
  return false;
}

class ChecksTest : public testing::TestWithParam<Fault> {
 protected:
  Words Command(const std::string& command, const Words& more = {}) {
    const Fault& fault = GetParam();
    Words words = {command,      folder_.Write("profile.csv", Csv(fault.rows)),
                   "--schedule", "1f1b",
                   "--effort",   "0.01"};
    for (const auto& [flag, usual] :
         {std::pair("--blocking-power", "20"), {"--microbatches", "4"}}) {
      if (fault.flags.empty() || fault.flags[0] != flag) {
        words.insert(words.end(), {flag, usual});
      }
    }
    words.insert(words.end(), fault.flags.begin(), fault.flags.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  RunResult Run(const std::string& command, const Words& more = {}) {
    Words words = Command(command, more);
    if (command == "frontier") {
      // It makes no plan.
      for (const std::string flag : {"--effort", "--switch-latency"}) {
        const auto found = std::find(words.begin(), words.end(), flag);
        if (found != words.end()) words.erase(found, found + 2);
      }
    }
    return RunPerseus(words);
  }

  bool IsRefused() const { return GetParam().severity != "odd"; }

  void ExpectRefused(const RunResult& run) {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr(GetParam().says));
    if (GetParam().severity == "implausible") {
      EXPECT_THAT(run.err, HasSubstr("--accept-implausible"));
    }
  }

  // Figures come after what is said.
  void ExpectSaidFirst(const RunResult& run, const std::string& figures) {
    EXPECT_EQ(run.exit_code, 0) << run.err;
    const std::string text = AsOneLine(run.out);
    const std::size_t said = text.find(GetParam().says);
    ASSERT_NE(said, std::string::npos) << run.out;
    EXPECT_LT(said, text.find(figures));
    EXPECT_NE(text.find(figures), std::string::npos) << run.out;
    EXPECT_LT(text.find("Note "), said);
  }

  static std::string AsOneLine(const std::string& out) {
    std::string text;
    for (const char c : out) {
      if (c == '\n' || (c == ' ' && text.ends_with(' '))) {
        if (!text.ends_with(' ')) text += ' ';
      } else {
        text += c;
      }
    }
    return text;
  }

  // The option that the user must give, so that figures are shown.
  Words Accepting(Words words) const {
    if (IsRefused()) words.emplace_back("--accept-implausible");
    return words;
  }

  TemporaryFolder folder_;
};

TEST_P(ChecksTest, Check) {
  const bool is_odd = GetParam().severity == "odd";
  const RunResult run = Run("check", {"--json"});
  EXPECT_EQ(run.exit_code, is_odd ? 0 : 2) << run.err;
  EXPECT_TRUE(Fits(json::parse(run.out)["notes"], GetParam(), GetParam().severity)) << run.out;
  EXPECT_EQ(Run("check", {"--strict"}).exit_code, 2);
}

TEST_P(ChecksTest, PlanAndItsFiles) {
  if (IsRefused()) {
    ExpectRefused(Run("plan", {"-o", folder_.Path("out")}));
    EXPECT_FALSE(std::filesystem::exists(folder_.Path("out")));
  }
  if (GetParam().severity == "impossible") {
    return ExpectRefused(Run("plan", {"--accept-implausible"}));
  }
  ExpectSaidFirst(Run("plan", Accepting({"-o", folder_.Path("out")})), "slowdown");
  const std::string plan = ReadText(folder_.Path("out/plan.json"));
  const json notes = json::parse(plan)["notes"];
  EXPECT_TRUE(Fits(notes, GetParam(), "odd")) << notes;
  const std::string page = ReadText(folder_.Path("out/report.html"));
  const std::size_t banner = page.find("class=\"warning odd");
  ASSERT_NE(banner, std::string::npos);
  EXPECT_LT(banner, page.find("class=\"figures\""));
  ExpectSaidFirst(RunPerseus({"explain", folder_.Path("out/plan.json")}), "slowed");
  const RunResult as_json = RunPerseus({"explain", folder_.Path("out/plan.json"), "--json"});
  EXPECT_EQ(json::parse(as_json.out)["notes"], notes);
  ExpectSaidFirst(RunPerseus({"diff", folder_.Path("out"), folder_.Path("out")}), "Result");
}

TEST_P(ChecksTest, PlanAsJson) {
  if (IsRefused()) ExpectRefused(Run("plan", {"--json"}));
  if (GetParam().severity == "impossible") return;
  const RunResult run = Run("plan", Accepting({"--json"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(Fits(json::parse(run.out)["notes"], GetParam(), "odd")) << run.out;
}

TEST_P(ChecksTest, Emulate) {
  if (IsRefused()) ExpectRefused(Run("emulate", {"--iterations", "2"}));
  if (GetParam().severity == "impossible") return;
  ExpectSaidFirst(Run("emulate", Accepting({"--iterations", "2"})), "max-clocks");
  const RunResult run = Run("emulate", Accepting({"--iterations", "2", "--json"}));
  EXPECT_TRUE(Fits(json::parse(run.out)["notes"], GetParam(), "odd")) << run.out;
}

TEST_P(ChecksTest, Frontier) {
  if (GetParam().name == "latency") return;  // It has none.
  if (IsRefused()) ExpectRefused(Run("frontier", {"-o", folder_.Path("frontier.csv")}));
  EXPECT_FALSE(std::filesystem::exists(folder_.Path("frontier.csv")));
  if (GetParam().severity == "impossible") return;
  ExpectSaidFirst(Run("frontier", Accepting({})), "slowdown");
  EXPECT_TRUE(
      Fits(json::parse(Run("frontier", Accepting({"--json"})).out)["notes"], GetParam(), "odd"));
  EXPECT_THAT(Run("frontier", Accepting({"--csv"})).err, HasSubstr(GetParam().says));
}

TEST_P(ChecksTest, StrictRefuses) {
  for (const std::string command : {"plan", "emulate", "frontier"}) {
    if (command == "frontier" && GetParam().name == "latency") continue;
    const RunResult run = Run(command, {"--strict"});
    EXPECT_EQ(run.exit_code, 2) << command;
    EXPECT_EQ(run.out, "");
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, ChecksTest, testing::ValuesIn(Faults()),
                         [](const auto& info) { return info.param.name; });

// As a plan of an earlier Perseus, or of Python.
TEST(ChecksOfPlansTest, ExplainAndDiffRefuseWhatCannotBeBelieved) {
  const TemporaryFolder folder;
  const std::string profile = folder.Write("profile.csv", Csv(Sound()));
  ASSERT_EQ(RunPerseus({"plan", profile, "--schedule", "1f1b", "--microbatches", "4",
                        "--blocking-power", "0", "--accept-implausible", "-o", folder.Path("out")})
                .exit_code,
            0);
  std::string plan = ReadText(folder.Path("out/plan.json"));
  const std::string accepted = "\"severity\": \"odd\"";
  const std::size_t at = plan.find(accepted);
  ASSERT_NE(at, std::string::npos) << plan;
  plan.replace(at, accepted.size(), "\"severity\": \"implausible\"");
  const std::string path = folder.Write("plan.json", plan);
  for (const Words& words : {Words{"explain", path}, Words{"diff", path, path}}) {
    const RunResult run = RunPerseus(words);
    EXPECT_EQ(run.exit_code, 2) << words[0];
    EXPECT_THAT(run.out, Mentions("WARNING", "0", "--accept-implausible")) << words[0];
    EXPECT_THAT(run.out, Not(HasSubstr("slowed"))) << words[0];
  }
}

class CheckCommandTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(CheckCommandTest, ASoundInputHasNoNotes) {
  const std::string profile = folder_.Write("profile.csv", Csv(Sound()));
  const RunResult alone = RunPerseus({"check", profile});
  EXPECT_EQ(alone.exit_code, 0);
  EXPECT_THAT(alone.out, Mentions("Only", "checked;"));
  EXPECT_THAT(alone.out, HasSubstr("(or a job file)"));
  folder_.Write("job.toml", "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\n");
  const RunResult short_job = RunPerseus({"check", folder_.Path("job.toml")});
  EXPECT_THAT(short_job.out, HasSubstr("--blocking-power (or complete the job file)"));
  folder_.Write("job.toml",
                "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\n"
                "blocking_power = 20\n");
  const RunResult job = RunPerseus({"check", folder_.Path("job.toml")});
  EXPECT_EQ(job.exit_code, 0) << job.err;
  EXPECT_EQ(job.out, "Nothing is odd.\n");
}

// Of a job without another stage none is spoken of.
TEST_F(CheckCommandTest, ExplainSpeaksOfOtherStagesWhereThereAreSome) {
  const std::string header = "stage,instruction,frequency,time,energy\n";
  const std::string one =
      "0,forward,1400,0.1,25\n0,forward,1200,0.115,24\n"
      "0,backward,1400,0.2,50\n0,backward,1200,0.23,48\n";
  const std::string two = "1,forward,1400,0.05,12\n1,backward,1400,0.1,24\n";
  for (const std::string& rows : {one, one + two}) {
    const RunResult plan =
        RunPerseus({"plan", folder_.Write("profile.csv", header + rows), "--schedule", "1f1b",
                    "--microbatches", "4", "--blocking-power", "20", "-o", folder_.Path("out")});
    ASSERT_EQ(plan.exit_code, 0) << plan.err;
    const RunResult run = RunPerseus({"explain", folder_.Path("out/plan.json")});
    EXPECT_THAT(run.out, rows == one ? Mentions("no", "other", "stage,")
                                     : Mentions("Other", "stages", "may"));
  }
}

TEST_F(CheckCommandTest, TheExampleIsSound) {
  const RunResult run = RunPerseus({"check", "examples/gpt3-1.3b-a100-sxm.toml", "--strict"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
}

TEST_F(CheckCommandTest, APlaceInAJobFileIsNamed) {
  folder_.Write("profile.csv", Csv(Sound()));
  folder_.Write("job.toml",
                "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\n"
                "blocking_power = 0\n");
  const RunResult run = RunPerseus({"check", folder_.Path("job.toml"), "--json"});
  EXPECT_EQ(run.exit_code, 2);
  const json note = json::parse(run.out)["notes"][0];
  EXPECT_EQ(note["source"], "job.toml");
  EXPECT_EQ(note["line"], 4);
  EXPECT_EQ(note["column"], 18);
}

TEST_F(CheckCommandTest, WhatCannotBeReadIsImpossible) {
  const std::string profile = folder_.Write("profile.csv", "stage\n");
  const RunResult run = RunPerseus({"check", profile, "--json"});
  EXPECT_EQ(run.exit_code, 2);
  const json note = json::parse(run.out)["notes"][0];
  EXPECT_EQ(note["severity"], "impossible");
  EXPECT_EQ(note["source"], "profile.csv");
  EXPECT_EQ(note["line"], 1);
  EXPECT_EQ(note["column"], 1);
  EXPECT_THAT(note["text"].get<std::string>(), Not(Mentions("profile.csv:")));
  const RunResult text = RunPerseus({"check", profile});
  EXPECT_EQ(text.exit_code, 2);
  EXPECT_EQ(text.out, "");
  EXPECT_THAT(text.err, Mentions("profile.csv:1:"));
}

TEST_F(CheckCommandTest, AProfileAloneMayHaveOneClock) {
  const RunResult run =
      RunPerseus({"check", folder_.Write("profile.csv", Csv({{"1400", 0.1, 25}}))});
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_THAT(run.out, Mentions("one", "clock"));
}

TEST_F(CheckCommandTest, LimitsOfStragglersAreWithinTheProfile) {
  const std::string profile = folder_.Write("profile.csv", Csv(Sound()));
  for (const auto& [limit, code] : {std::pair("clock=5000", 2),
                                    {"clock=1", 2},
                                    {"clock=800", 0},
                                    {"clock=1000", 0},
                                    {"power=0.3", 2},
                                    {"power=19", 2},
                                    {"power=200", 0},
                                    {"power=251", 2}}) {
    const RunResult run =
        RunPerseus({"emulate", profile, "--schedule", "1f1b", "--microbatches", "4",
                    "--blocking-power", "20", "--iterations", "2", "--straggler", limit});
    EXPECT_EQ(run.exit_code, code) << limit << run.err;
    if (code == 2) {
      EXPECT_THAT(run.err, limit[0] == 'c' ? Mentions("800", "1400") : Mentions("20.0", "250.0"));
    }
  }
}

}  // namespace
}  // namespace perseus::cli
