// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

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
  const std::string other = folder_.Path("b");
  RunPerseus({"plan", profile_, "--schedule", "gpipe", "--microbatches", "4", "--blocking-power",
              "20", "-o", other});
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

}  // namespace
}  // namespace perseus::cli
