// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Inputs are not harmed, and not believed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "cli/planning/job.h"
#include "cli/run_perseus.h"
#include "job/job_fields.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

const Words kJob = {"--schedule", "1f1b", "--microbatches", "4", "--blocking-power", "20"};

Words With(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class SafetyTest : public ::testing::Test {
 protected:
  // Refused, and nothing in the folder has changed.
  void ExpectRefused(const Words& words, const std::string& named) {
    const std::vector<std::string> names = folder_.List();
    const RunResult run = RunPerseus(words);
    EXPECT_EQ(run.exit_code, 2) << words.front();
    EXPECT_THAT(run.err, Mentions(named, "--output"));
    EXPECT_EQ(folder_.List(), names);
    EXPECT_EQ(ReadText(profile_), SampleProfile(2));
  }

  TemporaryFolder folder_;
  std::string profile_ = folder_.Write("good.csv", SampleProfile(2));
};

TEST_F(SafetyTest, NoOutputReplacesAnInput) {
  ExpectRefused(With({"frontier", profile_, "-o", profile_}, kJob), profile_);
  // Under other names: links, and a folder that holds the input.
  std::filesystem::create_symlink(profile_, folder_.Path("link.csv"));
  ExpectRefused(With({"frontier", profile_, "-o", folder_.Path("link.csv")}, kJob),
                folder_.Path("link.csv"));
  std::filesystem::create_hard_link(profile_, folder_.Path("report.html"));
  ExpectRefused(With({"plan", profile_, "-o", folder_.path()}, kJob), folder_.Path("report.html"));
  ExpectRefused(With({"emulate", folder_.Path("report.html"), "-o", folder_.path()}, kJob),
                folder_.Path("report.html"));
}

TEST_F(SafetyTest, NoOutputReplacesAJobFileAScheduleOrAPlan) {
  const std::string job = folder_.Write(
      "plan.json",
      R"({"profile": "good.csv", "schedule": "1f1b", "microbatches": 4, "blocking_power": 20})");
  const std::string before = ReadText(job);
  ExpectRefused({"plan", job, "-o", folder_.path()}, job);
  ExpectRefused({"frontier", job, "-o", job}, job);
  EXPECT_EQ(ReadText(job), before);

  const std::string order = folder_.Path("order.csv");
  ASSERT_EQ(RunPerseus({"schedule", "1f1b", "--stages", "2", "--microbatches", "4", "--format",
                        "csv", "-o", order})
                .exit_code,
            0);
  const std::string steps = ReadText(order);
  ExpectRefused({"schedule", order, "-o", order}, order);
  ExpectRefused(
      {"frontier", profile_, "--schedule-file", order, "--blocking-power", "20", "-o", order},
      order);
  EXPECT_EQ(ReadText(order), steps);
}

// Before the profile is read: it is not there.
TEST_F(SafetyTest, AnImpossibleOutputIsRefusedBeforeTheWork) {
  for (const std::string command : {"plan", "frontier", "emulate"}) {
    const RunResult run =
        RunPerseus(With({command, folder_.Path("none.csv"), "-o", profile_ + "/x"}, kJob));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, Mentions("good.csv/x:")) << command;
  }
}

TEST_F(SafetyTest, AFullTerminalDoesNotHideThatFilesAreWritten) {
  RunOptions options;
  options.stdout_path = "/dev/full";
  const std::string out = folder_.Path("out");
  const RunResult run = RunPerseus(With({"plan", profile_, "-o", out}, kJob), options);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("all files in " + out + " are written"));
  EXPECT_TRUE(std::filesystem::exists(out + "/plan.json"));
}

class EditedPlanTest : public SafetyTest {
 protected:
  EditedPlanTest() {
    EXPECT_EQ(RunPerseus(With({"plan", profile_, "-o", folder_.Path("out")}, kJob)).exit_code, 0);
    plan_ = ReadText(folder_.Path("out/plan.json"));
  }

  // With the number, or the text, behind the first `key` replaced.
  RunResult Explain(const std::string& key, const std::string& value) {
    std::string text = plan_;
    const std::size_t at = text.find("\"" + key + "\": ") + key.size() + 4;
    text.replace(at, text.find_first_of(",\n}", at) - at, value);
    return RunPerseus({"explain", folder_.Write("edited.json", text)});
  }

  std::string plan_;
};

TEST_F(EditedPlanTest, ExplainRecomputesWhatThePlanSaysOfItself) {
  EXPECT_EQ(RunPerseus({"explain", folder_.Path("out/plan.json")}).exit_code, 0);
  for (const std::string key : {"saving_percent", "energy_j", "iteration_time_s"}) {
    const RunResult run = Explain(key, "0.5");
    EXPECT_EQ(run.exit_code, 2) << key;
    EXPECT_THAT(run.err, Mentions("edited.json")) << key;
  }
  EXPECT_THAT(Explain("saving_percent", "99.9").err, Mentions("saving_percent", "99.9"));
  for (const std::string key : {"knob_changes", "distinct_knobs", "average_power_w"}) {
    const RunResult run = Explain(key, "123");
    EXPECT_EQ(run.exit_code, 2) << key;
    EXPECT_THAT(run.err, Mentions("edited.json", key, "123")) << key;
  }
  EXPECT_THAT(Explain("knob_changes", "0").err, Mentions("knob_changes", "0"));
  EXPECT_THAT(Explain("start_s", "0.125").err, Mentions("start_s", "0", "0.125"));
}

TEST_F(EditedPlanTest, ExplainHoldsBoundsAgainstThePlan) {
  EXPECT_THAT(Explain("lower_bound_j", "1e9").err,
              Mentions("edited.json", "lower_bound_j", "1000000000"));
  EXPECT_THAT(Explain("lower_bound_j", "0.5").err, Mentions("edited.json", "gap_percent"));
  EXPECT_THAT(Explain("gap_percent", "99").err, Mentions("edited.json", "gap_percent", "99"));
  const std::string out = folder_.Path("shared");
  ASSERT_EQ(
      RunPerseus(With({"plan", profile_, "--granularity", "stage", "-o", out}, kJob)).exit_code, 0);
  EXPECT_EQ(RunPerseus({"explain", out + "/plan.json"}).exit_code, 0);
  plan_ = ReadText(out + "/plan.json");
  const std::string shared = plan_.substr(plan_.find("\"shared_clocks\""));
  for (const std::string bound : {"1e9", "0.5"}) {
    std::string text = shared;
    const std::size_t at = text.find(": ", text.find("lower_bound_j")) + 2;
    text.replace(at, text.find(',', at) - at, bound);
    const RunResult run = RunPerseus(
        {"explain",
         folder_.Write("edited.json", plan_.substr(0, plan_.size() - shared.size()) + text)});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, Mentions("edited.json", "shared_clocks"));
  }
}

TEST_F(EditedPlanTest, ExplainReadsAPipe) {
  const std::string pipe = folder_.Path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(pipe) << plan_; });
  const RunResult run = RunPerseus({"explain", pipe});
  writer.join();
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, RunPerseus({"explain", folder_.Path("out/plan.json")}).out);
}

TEST_F(EditedPlanTest, ExplainKnowsTheSchedulesByName) {
  for (const std::string name : {"gpipe", "interleaved-1f1b"}) {
    const RunResult run = Explain("schedule", "\"" + name + "\"");
    EXPECT_EQ(run.exit_code, 2) << name;
    EXPECT_THAT(run.err, Mentions("edited.json", "schedule", name));
  }
  // By another of its names, too.
  EXPECT_EQ(Explain("schedule", "\"GPipe\"").exit_code, 2);
  EXPECT_EQ(Explain("schedule", "\"order.csv\"").exit_code, 0);
}

// A file may have a name of ours, and hold another order.
TEST_F(SafetyTest, ExplainBelievesAPlanOfAFileThatIsNamedAsASchedule) {
  const std::string profile = folder_.Write("four.csv", SampleProfile(4));
  const std::string file = folder_.Path("1f1b");
  ASSERT_EQ(RunPerseus({"schedule", "gpipe", "--stages", "4", "--microbatches", "8", "--format",
                        "csv", "-o", file})
                .exit_code,
            0);
  const RunResult planned =
      RunPerseus({"plan", profile, "--schedule-file", file, "--blocking-power", "20", "--effort",
                  "0.05", "-o", folder_.Path("of_file")});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  const RunResult run = RunPerseus({"explain", folder_.Path("of_file/plan.json")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Mentions("1f1b", "file"));
}

// Whatever the planner makes is what its name says.
TEST_F(SafetyTest, ExplainBelievesAPlanOfEverySchedule) {
  const std::string profile = folder_.Write("four.csv", SampleProfile(4));
  const std::vector<std::pair<std::string, Words>> schedules = {
      {"gpipe", {}},
      {"1f1b", {}},
      {"looped-bfs", {"--virtual-stages", "2"}},
      {"interleaved-1f1b", {"--virtual-stages", "2"}},
      {"megatron-interleaved", {"--virtual-stages", "2"}},
      {"megatron-interleaved", {"--virtual-stages", "2", "--set", "microbatch_group_size=3"}},
      {"megatron-interleaved", {"--virtual-stages", "2", "--set", "microbatch_group_size=8"}},
      {"interleaved-zero-bubble", {"--virtual-stages", "2"}},
      {"zbv-zero-bubble", {"--virtual-stages", "2"}},
      {"dualpipev", {"--virtual-stages", "2"}}};
  int number = 0;
  for (const auto& [name, more] : schedules) {
    const std::string out = folder_.Path("plan" + std::to_string(++number));
    const Words job = {
        "plan",     profile, "--schedule", name, "--microbatches", "8", "--blocking-power", "20",
        "--effort", "0.05",  "-o",         out};
    const RunResult planned = RunPerseus(With(job, more));
    ASSERT_EQ(planned.exit_code, 0) << name << planned.err;
    const RunResult run = RunPerseus({"explain", out + "/plan.json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(name));
  }
}

// A profile without energies, whose sums are all rounding.
TEST_F(EditedPlanTest, ExplainTakesRoundingForNothing) {
  const std::string none =
      folder_.Write("none.csv",
                    "stage,instruction,frequency,time,energy\n0,forward,1400,0.1,0\n"
                    "0,backward,1400,0.2,0\n");
  for (const std::string microbatches : {"3", "7", "8"}) {
    const std::string out = folder_.Path("none" + microbatches);
    ASSERT_EQ(RunPerseus({"plan", none, "--schedule", "1f1b", "--microbatches", microbatches,
                          "--blocking-power", "20.3", "--accept-implausible", "-o", out})
                  .exit_code,
              0);
    const RunResult run = RunPerseus({"explain", out + "/plan.json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

// Waiting that uses 1e11 times what computing does.
TEST_F(EditedPlanTest, ExplainKnowsWhatRoundingMakesOfASaving) {
  const std::string little = folder_.Write(
      "little.csv",
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1000,0.490921268954149,1.604e-07\n0,forward,900,0.5520715448602995,1.444e-07\n"
      "0,backward,1000,1.6108571492637607,1.636e-07\n"
      "0,backward,900,1.7435827016945742,1.473e-07\n");
  for (const std::string microbatches : {"1", "2", "8"}) {
    const std::string out = folder_.Path("little" + microbatches);
    ASSERT_EQ(RunPerseus({"plan", little, "--schedule", "1f1b", "--microbatches", microbatches,
                          "--blocking-power", "25745.5", "--accept-implausible", "--at", "1.05x",
                          "--effort", "0.01", "-o", out})
                  .exit_code,
              0);
    const RunResult run = RunPerseus({"explain", out + "/plan.json"});
    EXPECT_EQ(run.exit_code, 0) << run.err;
  }
}

TEST_F(EditedPlanTest, NothingInAFileSpeaksToTheTerminal) {
  const RunResult run = Explain("schedule", "\"\\u001b]0;title\\u0007\\u009bx\"");
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(run.out, Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(run.out, HasSubstr("\\x1b]0;title\\x07"));
}

TEST_F(SafetyTest, OptionsAfterDoubleDashAreNamedAsSuch) {
  const RunResult run = RunPerseus(With({"plan", "--", profile_}, kJob));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, Mentions("'--'"));
  EXPECT_THAT(run.err, Not(Mentions("mean")));
}

TEST_F(SafetyTest, WhatIsShownAsTheFastestTimeIsTaken) {
  folder_.Write("third.csv",
                "stage,instruction,frequency,time,energy\n0,forward,1400,0.14,9\n"
                "0,backward,1400,0.28,9\n");
  const Words job = {"--schedule", "1f1b", "--microbatches", "1", "--blocking-power", "20"};
  const RunResult refused =
      RunPerseus(With({"plan", folder_.Path("third.csv"), "--at", "0.1s"}, job));
  EXPECT_THAT(refused.err, Mentions("0.42"));
  EXPECT_EQ(RunPerseus(With({"plan", folder_.Path("third.csv"), "--at", "0.42s"}, job)).exit_code,
            0);
}

TEST_F(SafetyTest, StagesThatShareARankAreSaid) {
  const std::string four = folder_.Write("four.csv", SampleProfile(4));
  const RunResult run = RunPerseus({"plan", four, "--schedule", "zbv", "--virtual-stages", "2",
                                    "--microbatches", "4", "--blocking-power", "20"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Mentions("2", "4"));
}

TEST_F(SafetyTest, FiguresTooLargeToStateAreRefused) {
  const std::string huge =
      folder_.Write("huge.csv",
                    "stage,instruction,frequency,time,energy\n0,forward,1400,1e-300,1e11\n"
                    "0,backward,1400,1e-300,1e11\n");
  for (const std::string command : {"plan", "frontier", "emulate"}) {
    const RunResult run = RunPerseus(With({command, huge}, kJob));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, Mentions("huge.csv", "0")) << command;
  }
}

TEST(JobFlagsTest, EveryFieldHasAFlag) {
  // The profile is an argument, and a schedule's text comes from its file.
  const std::set<std::string_view> without = {"profile", "schedule_csv"};
  for (const job::Field& field : job::Fields()) {
    EXPECT_EQ(FlagOfField(field.key).empty(), without.contains(field.key)) << field.key;
  }
}

// Before a server is asked: half of a value with a unit must change nothing.
TEST_F(SafetyTest, WordsThatAServersClientDoesNotTakeAreRefused) {
  for (const Words& words :
       {Words{"job", "point", "b", "2", "x"}, Words{"job", "delete", "b", "c"},
        Words{"job", "list", "all"}, Words{"job", "show", "b", "now"},
        Words{"job", "straggler", "set", "b", "hour"}, Words{"profile", "list", "extra"},
        Words{"-V", "extra"}, Words{"--version", "plan"}}) {
    const RunResult run = RunPerseus(words);
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, Mentions("'" + words.back() + "'"));
  }
  EXPECT_THAT(RunPerseus({"job", "shew", "b", "now"}).err, Mentions("'show'"));
}

}  // namespace
}  // namespace perseus::cli
