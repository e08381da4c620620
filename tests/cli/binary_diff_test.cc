// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

class DiffTest : public SampleJobTest {
 protected:
  // Plans the job with these options, into a folder.
  std::string Plan(const std::string& name, std::vector<std::string> more) const {
    const std::string folder = folder_.path() + "/" + name;
    more.insert(more.end(), {"-o", folder});
    const RunResult run = RunPerseus(Arguments("plan", more));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return folder;
  }

  std::string PlanOf(const std::string& schedule) const {
    const std::string folder = folder_.Path(schedule);
    const RunResult run = RunPerseus({"plan", profile_, "--schedule", schedule, "--microbatches",
                                      "4", "--blocking-power", "20", "-o", folder});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return folder;
  }
};

TEST_F(DiffTest, FoldersAndFilesGiveTheSameFigures) {
  const std::string before = Plan("a", {});
  const std::string after = Plan("b", {"--at", "1.1x"});
  const RunResult run = RunPerseus({"diff", before, after + "/plan.json", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json diff = json::parse(run.out);
  EXPECT_EQ(diff["schema_version"], 1);
  EXPECT_EQ(diff["same_profile"], true);
  EXPECT_EQ(diff["computations"], 16);
  EXPECT_GT(diff["moved"], 0);
  const json plan = json::parse(ReadText(after + "/plan.json"));
  for (const char* figure : {"iteration_time_s", "energy_j", "saving_percent"}) {
    EXPECT_EQ(diff["new"][figure], plan[figure]) << figure;
  }
  int moved = 0;
  for (const json& rank : diff["ranks"]) moved += rank["moved"].get<int>();
  EXPECT_EQ(moved, diff["moved"]);
  moved = 0;
  for (const json& kind : diff["kinds"]) moved += kind["moved"].get<int>();
  EXPECT_EQ(moved, diff["moved"]);

  const RunResult text = RunPerseus({"diff", before, after});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("longer and uses"));
  EXPECT_THAT(text.out, HasSubstr("mean MHz"));
}

TEST_F(DiffTest, PlansOfDifferentJobsAreRefused) {
  const std::string before = Plan("a", {});
  const std::string other = PlanOf("gpipe");
  const RunResult run = RunPerseus({"diff", before, other});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("are plans of different jobs (computation "));
  EXPECT_THAT(run.err, HasSubstr("give two plans of one job"));
}

TEST_F(DiffTest, APlanThatWasEditedIsRefused) {
  const std::string before = Plan("a", {});
  json plan = json::parse(ReadText(before + "/plan.json"));
  plan["saving_percent"] = 99;
  const std::string edited = folder_.Write("edited.json", plan.dump());
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{before, edited}, std::vector<std::string>{edited, before}}) {
    const RunResult run = RunPerseus({"diff", order[0], order[1]});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr("saving_percent is 99, but the plan's own computations make"));
  }
}

// Plans of three schedules, which `diff` alone refuses to compare.
class FrontiersTest : public DiffTest {
 protected:
  std::string first_ = PlanOf("1f1b");
  std::string second_ = PlanOf("gpipe");
};

TEST_F(FrontiersTest, AreThoseOfTheFiles) {
  const RunResult run = RunPerseus(
      {"diff", "--frontiers", first_, second_ + "/plan.json", "--with", first_, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const json found = json::parse(run.out);
  ASSERT_EQ(found["frontiers"].size(), 3u);
  const json plan = json::parse(ReadText(first_ + "/plan.json"));
  const json& first = found["frontiers"][0];
  EXPECT_EQ(first["file"], first_);
  EXPECT_EQ(first["plan"]["energy_j"], plan["energy_j"]);
  EXPECT_EQ(first["max_clocks"]["energy_j"], plan["baseline"]["energy_j"]);
  const json whole = json::parse(RunPerseus(Arguments("frontier", {"--json"})).out);
  EXPECT_EQ(first["fastest_s"], whole["frontier"].front()["iteration_time_s"]);
  double least = whole["frontier"].front()["energy_j"];
  for (const json& point : whole["frontier"]) {
    least = std::min(least, point["energy_j"].get<double>());
  }
  EXPECT_EQ(first["least_energy"]["energy_j"], least);
  // In the same time the first and the third, which are one, need the same.
  for (const json& at : found["at"]) EXPECT_EQ(at["energy_j"][0], at["energy_j"][2]);
}

TEST_F(FrontiersTest, ArePlottedOnOnePage) {
  const std::string page = folder_.Path("frontiers.html");
  const RunResult run = RunPerseus({"diff", "--frontiers", first_, second_, "-o", page});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("least energy in"));
  EXPECT_THAT(run.out, HasSubstr("Written to " + page));
  const std::string html = ReadText(page);
  EXPECT_THAT(html, HasSubstr("Frontiers compared"));
  EXPECT_THAT(html, HasSubstr("maximum clocks"));
  EXPECT_THAT(html, HasSubstr("\"kind\":\"lines\""));
}

TEST_F(FrontiersTest, WhatIsWrongIsSaidBeforeAnythingIsWritten) {
  const std::string page = folder_.Path("frontiers.html");
  EXPECT_THAT(Refused({"diff", first_, second_, "-o", page}), HasSubstr("give --frontiers, too"));
  EXPECT_THAT(Refused({"diff", "--frontiers", first_, second_, "-o", first_ + "/plan.json"}),
              HasSubstr("would replace the plan"));
  std::vector<std::string> many = {"diff", "--frontiers", first_, second_, "-o", page};
  for (int i = 0; i < 5; ++i) many.insert(many.end(), {"--with", first_});
  EXPECT_THAT(Refused(many), HasSubstr("at most 6 plans, got 7"));
  const std::string alone = folder_.Write("plan.json", ReadText(first_ + "/plan.json"));
  EXPECT_THAT(Refused({"diff", "--frontiers", first_, alone, "-o", page}),
              HasSubstr("frontier.csv: cannot read: there is no such file"));
  folder_.Write("frontier.csv", "iteration_time_s,energy_j\n1,many\n");
  EXPECT_THAT(Refused({"diff", "--frontiers", alone, first_, "-o", page}),
              HasSubstr("frontier.csv:2:3: expected a number"));
  EXPECT_THAT(folder_.List(), Not(Contains("frontiers.html")));
}

}  // namespace
}  // namespace perseus::cli
