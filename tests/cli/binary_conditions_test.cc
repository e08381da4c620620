// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans under conditions: what is written, and where they come from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

class BinaryConditionsTest : public ConditionsTest {};

TEST_F(BinaryConditionsTest, ExplainAndFrontierSayWhatHoldsWithoutConditionsAlone) {
  const std::string path = Write(flags_, "explained");
  const std::string text = Out({"explain", path});
  EXPECT_THAT(Words(text), Mentions("conditions:", "noise"));
  EXPECT_THAT(Words(text), Mentions("Emulated", "says:"));
  const json explained = json::parse(Out({"explain", path, "--json"}));
  const json plan = json::parse(ReadText(path));
  EXPECT_EQ(explained["conditions"], plan["conditions"]);
  EXPECT_EQ(explained["expected"], plan["expected"]);
  EXPECT_EQ(explained["as_the_file_says"], json::array({"conditions", "expected"}));
  json edited = plan;
  edited["conditions"]["max_changes"] = 0;
  const RunResult refused = RunPerseus({"explain", folder_.Write("edited.json", edited.dump())});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, Mentions("conditions.max_changes", "0"));
  const std::string paper = Write({}, "paper");
  EXPECT_THAT(Out({"explain", paper}), Not(Mentions("conditions")));
  EXPECT_FALSE(json::parse(Out({"explain", paper, "--json"})).contains("expected"));
  const auto is_said = Mentions("knows");
  const std::string job = folder_.Write(
      "conditions.toml",
      "profile = \"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\nblocking_power = 20\n"
      "[conditions]\nnoise = \"1%\"\n");
  EXPECT_THAT(Out({"frontier", job}), is_said);
  EXPECT_THAT(Out(Arguments("frontier", {})), Not(is_said));
}

TEST_F(BinaryConditionsTest, JobFileAndFlagsSayTheSame) {
  Write(flags_, "flags");
  const std::string job = folder_.Write(
      "job.toml",
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n"
      "effort = 0.05\noutput = 'file'\n[conditions]\nswitch_latency = '20ms'\nnoise = '1%'\n"
      "call_ahead = 'predicted'\nmax_slowdown = '0.5%'\nmax_changes = 6\n");
  Out({"plan", job});
  EXPECT_EQ(ReadText(folder_.Path("file/plan.json")), ReadText(folder_.Path("flags/plan.json")));
}

TEST_F(BinaryConditionsTest, ALatencyOfAClockThatIsNotThereIsSaid) {
  const auto said = [this](const std::string& latencies) {
    return Words(Out(Arguments("plan", {"--switch-latency", "2ms", "--set",
                                        "switch_latency_at=" + latencies, "--effort", "0.01"})));
  };
  EXPECT_THAT(said("1399=9ms"), Mentions("Note", "1399"));
  EXPECT_THAT(said("1400=9ms"), Not(Mentions("Note")));
}

TEST_F(BinaryConditionsTest, WithoutThemNothingIsSaidOfThem) {
  Write({}, "paper");
  EXPECT_THAT(ReadText(folder_.Path("paper/plan.json")), Not(Mentions("conditions")));
  EXPECT_THAT(Out(Arguments("plan", {"--json"})), Not(Mentions("expected")));
}

// The same number everywhere: with those from the end of an iteration to the start of the next.
TEST_F(BinaryConditionsTest, ChangesAreCountedAsTheLimitDoes) {
  std::vector<std::string> arguments = {"plan",          "examples/gpt3-1.3b-a100-sxm.toml",
                                        "--at",          "tstar",
                                        "--noise",       "1%",
                                        "--max-changes", "10",
                                        "--effort",      "0.25"};
  const std::string text = Words(Out(arguments));
  arguments.emplace_back("--json");
  const json document = json::parse(Out(arguments));
  const int last = document["price_curve"].back()["changes"];
  EXPECT_LE(last, 10);
  EXPECT_GT(last, document["knob_changes"]);
  EXPECT_THAT(text, Mentions(std::to_string(last), "changes"));
  EXPECT_NEAR(document["expected"]["clock_calls"], last, 0.1);
}

TEST_F(BinaryConditionsTest, TheTableMarksThePlanThatIsWritten) {
  std::vector<std::string> arguments = Arguments("plan", flags_);
  arguments.insert(arguments.end(), {"--effort", "0.05"});
  EXPECT_THAT(Out(arguments), HasSubstr("\n>  for the conditions"));
  arguments.insert(arguments.end(), {"--json", "-o", folder_.Path("out")});
  const json document = json::parse(Out(arguments));
  int chosen = 0;
  for (const json& point : document["points"]) {
    if (!point["chosen"]) continue;
    ++chosen;
    EXPECT_EQ(point["name"], "without_conditions");
    EXPECT_EQ(point["energy_j"], document["energy_j"]);
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_THAT(ReadText(folder_.Path("out/report.html")),
              HasSubstr("Saving of energy, under the conditions"));
}

TEST_F(BinaryConditionsTest, WhatIsMisplacedInAJobFileIsSaid) {
  const std::string job =
      "profile = 'profile.csv'\nschedule = '1f1b'\nmicrobatches = 4\nblocking_power = 20\n";
  const RunResult below =
      RunPerseus({"plan", folder_.Write("a.toml", job + "[conditions]\nnoise = '1%'\ndp = 2\n")});
  EXPECT_EQ(below.exit_code, 2);
  EXPECT_THAT(below.err, Mentions("a.toml:7:1:"));
  EXPECT_THAT(below.err, Mentions("[conditions]"));
  const RunResult above = RunPerseus({"plan", folder_.Write("b.toml", job + "noise = '1%'\n")});
  EXPECT_EQ(above.exit_code, 2);
  EXPECT_THAT(above.err, Mentions("[conditions]"));
}

}  // namespace
}  // namespace perseus::cli
