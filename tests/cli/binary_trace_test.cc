// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus trace` from file to file; what its numbers are is tested in tests/trace.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Two pipelines of one stage; the second one's second step is long.
constexpr const char* kTwoPipelines =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
    "0,0,0,1,forward-compute,0,1,0,0,0,0\n0,0,0,1,backward-compute,1,2,0,0,0,0\n"
    "0,0,0,1,optimizer-clip-main-grad,3,0.5,0,-1,-1,-1\n"
    "1,0,2,1,forward-compute,0,1,0,0,0,0\n1,0,2,1,backward-compute,1,2,0,0,0,0\n"
    "1,0,2,1,optimizer-clip-main-grad,3,0.5,0,-1,-1,-1\n"
    "0,0,0,2,forward-compute,0,1,0,0,0,0\n0,0,0,2,backward-compute,1,2,0,0,0,0\n"
    "0,0,0,2,optimizer-clip-main-grad,3,3.5,0,-1,-1,-1\n"
    "1,0,2,2,forward-compute,0,1,0,0,0,0\n1,0,2,2,backward-compute,1,5,0,0,0,0\n"
    "1,0,2,2,optimizer-clip-main-grad,6,0.5,0,-1,-1,-1\n";

TEST(BinaryTraceTest, AnswersWithTheNamesThatOthersRelyOn) {
  const TemporaryFolder folder;
  const std::string trace = folder.Write("t.csv", kTwoPipelines);
  const RunResult run = RunPerseus({"trace", trace, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["trace"], "t.csv");
  EXPECT_EQ(json["sizes"]["tp"], 2);
  EXPECT_EQ(json["sizes"]["dp"], 2);
  EXPECT_EQ(json["sizes"]["pp"], 1);
  ASSERT_EQ(json["steps"].size(), 2u);
  EXPECT_EQ(json["steps"][1]["step"], 2);
  EXPECT_DOUBLE_EQ(json["steps"][1]["recorded_s"], 6.5);
  EXPECT_DOUBLE_EQ(json["steps"][1]["replayed_s"], 6.5);
  // Backwards take 2.75 s in the mean, the clip half a second in the median.
  EXPECT_DOUBLE_EQ(json["steps"][1]["without_stragglers_s"], 4.25);
  EXPECT_DOUBLE_EQ(json["blocking_slowdown"], 5 / 4.25);
  EXPECT_DOUBLE_EQ(json["blocking_by_stage"]["0"], 5 / 4.25);
  EXPECT_DOUBLE_EQ(json["blocking_by_operation"]["backward-compute"], 5 / 4.25);
  EXPECT_DOUBLE_EQ(json["blocking_by_operation"]["forward-compute"], 1);
  EXPECT_EQ(json.count("energy"), 0u);
}

// The whole file that docs/explanation/traces.md shows, and what it says of it.
TEST(BinaryTraceTest, TheExampleOfTheDocsWorks) {
  std::istringstream docs(ReadText("docs/explanation/traces.md"));
  std::string trace;
  for (std::string line; std::getline(docs, line);) {
    if (line.starts_with("    dp_rank,")) {
      trace = line.substr(4) + "\n";
    } else if (!trace.empty() && line.starts_with("    ")) {
      trace += line.substr(4) + "\n";
    } else if (!trace.empty()) {
      break;
    }
  }
  const TemporaryFolder folder;
  const RunResult run = RunPerseus({"trace", folder.Write("t.csv", trace)});
  ASSERT_EQ(run.exit_code, 0) << run.err << trace;
  EXPECT_THAT(run.out, Mentions("2", "16"));
  EXPECT_THAT(run.out, ContainsRegex("0.9315[ \n]to[ \n]1.0685[ \n]"));
  EXPECT_THAT(run.out, Not(Mentions("overlap")));
  EXPECT_THAT(run.out, ContainsRegex("\n8 +0.7800 +0.7800 +.0.00 % +0.7300 +1.0685\n"));
}

// Durations in milliseconds beside starts in seconds.
TEST(BinaryTraceTest, ComputationsThatOverlapAreSaidToBeOfTwoUnits) {
  const TemporaryFolder folder;
  const std::string trace = folder.Write(
      "t.csv",
      "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
      "0,0,0,1,forward-compute,0,1000,0,0,0,0\n0,0,0,1,backward-compute,1,2000,0,0,0,0\n"
      "0,0,0,1,forward-compute,3,1000,1,0,1,0\n0,0,0,1,backward-compute,4,2000,1,0,1,0\n");
  const std::string note = "the computations of a rank overlap: they last 3.0 times";
  const RunResult refused = RunPerseus({"trace", trace, "-o", folder.Path("out")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr(note), Mentions("t.csv", "--accept-implausible")));
  EXPECT_FALSE(std::filesystem::exists(folder.Path("out")));
  const RunResult run =
      RunPerseus({"trace", trace, "-o", folder.Path("out"), "--accept-implausible"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Mentions("Note", "t.csv"));
  // In what may be passed on alone, too.
  EXPECT_THAT(ReadText(folder.Path("out/trace.html")), HasSubstr(note));
  const auto json = nlohmann::json::parse(ReadText(folder.Path("out/trace.json")));
  ASSERT_EQ(json["notes"].size(), 1u);
  EXPECT_THAT(json["notes"][0]["text"].get<std::string>(), HasSubstr(note));
  // Starts in milliseconds, too.
  const std::string slow = folder.Write(
      "slow.csv",
      "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
      "0,0,0,1,forward-compute,0,30,0,0,0,0\n0,0,0,1,backward-compute,30,60,0,0,0,0\n");
  EXPECT_THAT(RunPerseus({"trace", slow}).err, HasSubstr("the shortest computation lasts 30"));
  EXPECT_EQ(RunPerseus({"trace", slow, "--strict"}).exit_code, 2);
  const std::string good = folder.Write("good.csv", kTwoPipelines);
  EXPECT_THAT(RunPerseus({"trace", good, "-o", folder.Path("good")}).out, Not(Mentions("overlap")));
  EXPECT_THAT(ReadText(folder.Path("good/trace.html")), Not(Mentions("overlap")));
  EXPECT_TRUE(nlohmann::json::parse(ReadText(folder.Path("good/trace.json")))["notes"].empty());
}

// Short computations of a trace in milliseconds look like long ones in seconds; a profile tells.
TEST(BinaryTraceTest, AWrongUnitIsNoticedBesideTheProfile) {
  const TemporaryFolder folder;
  const std::string profile = folder.Write("profile.csv", SampleProfile(1));
  for (const auto& [factor, notes, code] :
       {std::tuple(1.0, 0U, 0), {1e3, 2U, 2}, {1e6, 2U, 2}, {1e-3, 1U, 2}, {10.0, 1U, 0}}) {
    const std::string trace = folder.Write(
        "t.csv",
        fmt::format("dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
                    "0,0,0,1,forward-compute,0,{},0,0,0,0\n"
                    "0,0,0,1,backward-compute,{},{},0,0,0,0\n",
                    0.25 * factor, 0.25 * factor, 0.5 * factor));
    std::vector<std::string> command = {"trace", trace,   "--profile", profile, "--blocking-power",
                                        "20",    "--json"};
    EXPECT_EQ(RunPerseus(command).exit_code, code) << factor;
    command.emplace_back("--accept-implausible");
    const auto json = nlohmann::json::parse(RunPerseus(command).out);
    EXPECT_EQ(json["notes"].size(), notes) << factor << json["notes"];
    for (const auto& note : json["notes"]) EXPECT_EQ(note["severity"], "odd") << factor;
    command.back() = "--strict";
    EXPECT_EQ(RunPerseus(command).exit_code, notes == 0 ? 0 : 2) << factor;
  }
}

// One stage and one microbatch leave nothing to save.
TEST(BinaryTraceTest, PlansThatChangeNothingAreOneLine) {
  const TemporaryFolder folder;
  const std::string trace =
      folder.Write("t.csv",
                   "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n"
                   "0,0,0,1,forward-compute,0,1,0,0,0,0\n0,0,0,1,backward-compute,1,2,0,0,0,0\n");
  const auto run = [&](const std::string& path, const std::string& out) {
    const RunResult result =
        RunPerseus({"trace", path, "--profile", folder.Write("profile.csv", SampleProfile(2)),
                    "--blocking-power", "20", "-o", folder.Path(out)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out;
  };
  const std::string line = "The 6 other plans ";
  const std::string text = run(trace, "none");
  EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Mentions("recorded"));
  EXPECT_THAT(text, Not(HasSubstr("one plan")));
  EXPECT_THAT(ReadText(folder.Path("none/trace.html")), HasSubstr(line));
  const auto json = nlohmann::json::parse(ReadText(folder.Path("none/trace.json")));
  EXPECT_EQ(json["energy"]["plans"].size(), 7u);
  EXPECT_THAT(run(folder.Write("some.csv", kTwoPipelines), "some"), Not(HasSubstr("other plans")));
}

// A row of zeros says nothing.
TEST(BinaryTraceTest, FoldsDelaysThatAreShownAsNothing) {
  const TemporaryFolder folder;
  std::string rows = kTwoPipelines;
  const std::string none = RunPerseus({"trace", folder.Write("none.csv", rows)}).out;
  EXPECT_THAT(none, Not(HasSubstr("0.000 ")));
  EXPECT_THAT(none, Mentions("0.001"));
  // The backward of the second step's slow pipeline starts a second late.
  const std::string before = "1,0,2,2,backward-compute,1,5";
  rows.replace(rows.find(before), before.size(), "1,0,2,2,backward-compute,2,4");
  const std::string out = RunPerseus({"trace", folder.Write("late.csv", rows)}).out;
  EXPECT_THAT(out, HasSubstr("backward-compute      0    500.000\nand 2 more below 0.001 ms\n"));
}

TEST(BinaryTraceTest, WritesItsPageAndTheSameBytesTwice) {
  const TemporaryFolder folder;
  const std::string trace = folder.Write("t.csv", kTwoPipelines);
  const std::string profile = folder.Write("profile.csv", SampleProfile(2));
  std::vector<std::string> pages;
  for (const char* name : {"a", "b"}) {
    const RunResult run = RunPerseus(
        {"trace", trace, "--profile", profile, "--blocking-power", "20", "-o", folder.Path(name)});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, ContainsRegex("\none plan an iteration.* [0-9.]+ %\n"));
    pages.push_back(ReadText(folder.Path(std::string(name) + "/trace.html")) +
                    ReadText(folder.Path(std::string(name) + "/trace.json")));
  }
  EXPECT_EQ(pages[0], pages[1]);
  EXPECT_THAT(pages[0], Mentions("2", "pipelines", "1", "stages"));
  EXPECT_THAT(pages[0], Not(HasSubstr("<script")));
  EXPECT_THAT(pages[0], Not(HasSubstr(folder.path())));
}

TEST(BinaryTraceTest, NeverReplacesWhatItReads) {
  const TemporaryFolder folder;
  const std::string trace = folder.Write("trace.json", kTwoPipelines);
  const RunResult run = RunPerseus({"trace", trace, "-o", folder.path()});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(ReadText(trace), kTwoPipelines);
  EXPECT_THAT(folder.List(), ElementsAre("trace.json"));
}

}  // namespace
}  // namespace perseus::cli
