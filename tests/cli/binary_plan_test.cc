// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus plan`, `frontier` and `explain` from file to file.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "cli/sample_job_testing.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

class BinaryPlanTest : public SampleJobTest {
 protected:
  static RunResult Run(const std::vector<std::string>& arguments) {
    RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return run;
  }
};

TEST_F(BinaryPlanTest, SaysWhatWasReadAndWritesNothing) {
  const RunResult run = Run(Arguments("plan"));
  // Stage 1 is busy for 4 x 0.9375 s after the first forward of stage 0 and
  // before its last backward: 0.25 + 3.75 + 0.5 s.
  EXPECT_THAT(
      run.out,
      testing::StartsWith(
          "Profile   profile.csv: 12 rows, 2 stages, 3 clocks from 1000 to 1400 MHz.\n"
          "Pipeline  1f1b, 2 stages (from the profile) on 2 ranks, 4 microbatches: 16 "
          "computations.\n"
          "Waiting   one pipeline (2 GPUs) draws 40.0 W while it waits, at any clock.\n"
          "Today     with all clocks at maximum, one iteration of one pipeline takes 4.5000 s and "
          "1,773.0 J (394.0 W).\n"
          "\n"
          "   point           time s  slowdown  energy J   saving  power W      gap\n"
          "------------------------------------------------------------------------\n"
          ">  no slowdown     4.5000   +0.00 %   1,635.8   7.74 %    363.5  0.000 %\n"))
      << run.out;
  // Slowest clocks everywhere: 1.25 times as long, and no reason to wait.
  EXPECT_THAT(
      run.out,
      HasSubstr("   min energy, T*  5.6250  +25.00 %   1,406.2  20.69 %    250.0  0.000 %\n"));
  EXPECT_THAT(run.out, Mentions("Next"));
  EXPECT_THAT(folder_.List(), ElementsAre("profile.csv"));
}

TEST_F(BinaryPlanTest, JsonHasTheDocumentedNames) {
  const RunResult run = Run(Arguments("plan", {"--json", "--dp", "3", "--at", "1.05x"}));
  const json document = json::parse(run.out);
  for (const char* name :
       {"schema_version", "schedule", "stages", "virtual_stages", "microbatches",
        "requested_time_s", "iteration_time_s", "energy_j", "lower_bound_j", "gap_percent",
        "saving_percent", "average_power_w", "profile", "baseline", "frontier", "points", "job"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
  EXPECT_NEAR(document["baseline"]["iteration_time_s"].get<double>(), 4.5, 1e-9);
  EXPECT_NEAR(document["requested_time_s"].get<double>(), 4.725, 1e-9);
  EXPECT_LE(document["iteration_time_s"].get<double>(), document["requested_time_s"].get<double>());
  // 4 microbatches: stage 0 192 J each, stage 1 240 J, and 20 W while waiting
  // (4.5 - 3 s and 4.5 - 3.75 s).
  EXPECT_NEAR(document["baseline"]["energy_j"].get<double>(), 4 * 432 + 20 * 2.25, 1e-6);
  EXPECT_NEAR(document["job"]["baseline_energy_j"].get<double>(), 3 * 1773, 1e-6);
  int chosen = 0;
  for (const json& point : document["points"]) {
    EXPECT_TRUE(point["feasible"]);
    if (point["chosen"]) {
      ++chosen;
      EXPECT_EQ(point["name"], "plus_5_percent");
      EXPECT_EQ(point["energy_j"], document["energy_j"]);
    }
  }
  EXPECT_EQ(chosen, 1);
  EXPECT_EQ(run.out, Run(Arguments("plan", {"--json", "--dp", "3", "--at", "1.05x"})).out);
}

// A measured profile states its errors; then all doors state the same interval of the saving.
TEST_F(BinaryPlanTest, AMeasuredProfileGivesAnInterval) {
  std::string csv = SampleProfile(2);
  for (std::size_t end = csv.find('\n'); end != std::string::npos; end = csv.find('\n', end + 1)) {
    const std::string cell = end < csv.find('\n') + 1 ? ",error_sources" : ",0.001|0.004|0.002";
    csv.insert(end, cell);
    end += cell.size();
  }
  const std::string profile = folder_.Write("measured.csv", csv);
  const std::string out = folder_.Path("measured");
  const std::vector<std::string> job = {"plan",           profile, "--schedule",       "1f1b",
                                        "--microbatches", "4",     "--blocking-power", "20"};
  std::vector<std::string> with_json = job;
  with_json.insert(with_json.end(), {"--json", "-o", out});
  const json said = json::parse(Run(with_json).out);
  const json interval = said["saving_interval"];
  const double least = interval["least_percent"];
  const double most = interval["most_percent"];
  EXPECT_LT(least, said["saving_percent"]);
  EXPECT_GT(most, said["saving_percent"]);
  EXPECT_LT(most - least, 5);
  EXPECT_EQ(json::parse(ReadText(out + "/plan.json"))["saving_interval"], interval);
  const std::string shown = fmt::format("95 %: {:.2f} to {:.2f} %", least, most);
  EXPECT_THAT(ReadText(out + "/report.html"), HasSubstr(shown));
  EXPECT_THAT(Run(job).out, HasSubstr(shown));
}

TEST_F(BinaryPlanTest, WritesAllFilesAndExplainsThem) {
  const std::string out = folder_.Path("out");
  const RunResult run = Run(Arguments("plan", {"-o", out}));
  EXPECT_THAT(run.out, Mentions("plan.json", "frontier.csv", "zeus_plan.py", "timeline.pftrace"));
  const json plan = json::parse(ReadText(out + "/plan.json"));
  EXPECT_EQ(plan["schedule"], "1f1b");
  EXPECT_EQ(plan["ranks"].size(), 2u);
  EXPECT_THAT(ReadText(out + "/frontier.csv"),
              testing::StartsWith("iteration_time_s,energy_j,slope_w\n"));
  EXPECT_THAT(ReadText(out + "/report.html"), testing::StartsWith("<!"));
  EXPECT_FALSE(ReadText(out + "/zeus_plan.py").empty());

  const json explained = json::parse(Run({"explain", out + "/plan.json", "--json"}).out);
  EXPECT_EQ(explained["critical_stage"], 1);
  EXPECT_NEAR(explained["saving_j"].get<double>(),
              plan["baseline"]["energy_j"].get<double>() - plan["energy_j"].get<double>(), 1e-6);
  double by_stage = 0;
  for (const json& share : explained["by_stage"]) by_stage += share["saving_j"].get<double>();
  EXPECT_NEAR(by_stage, explained["computation_saving_j"].get<double>(), 1e-9);
  const RunResult text = Run({"explain", out + "/plan.json"});
  EXPECT_THAT(text.out, Mentions("Stage", "1"));
  EXPECT_THAT(text.out, Mentions("cool-down"));
}

TEST_F(BinaryPlanTest, AJobFileSaysWhatFlagsSayAndFlagsWin) {
  const std::string job = folder_.Write("job.toml",
                                        "profile = \"profile.csv\"\nschedule = \"gpipe\"\n"
                                        "microbatches = 4\nblocking_power = 20\n");
  EXPECT_EQ(Run({"plan", job, "--schedule", "1f1b"}).out, Run(Arguments("plan")).out);
  EXPECT_THAT(Run({"plan", job}).out, Mentions("gpipe", "2", "stages"));
}

TEST_F(BinaryPlanTest, ConstraintsStateTheirPrice) {
  const RunResult run = Run(Arguments(
      "plan", {"--granularity", "stage", "--time-margin", "1%", "--at", "1.1x", "--json"}));
  const json document = json::parse(run.out);
  ASSERT_EQ(document["constraints"].size(), 3u);
  EXPECT_EQ(document["constraints"][0]["constraint"], "--granularity stage");
  for (const json& price : document["constraints"]) {
    EXPECT_GE(price["extra_energy_percent"].get<double>(), 0);
  }
  EXPECT_THAT(Run(Arguments("plan", {"--granularity", "stage"})).out,
              Mentions("--granularity", "8.391", "same"));
  // The plan without the constraint is the slower one here: no "-4.000 % time".
  const RunResult faster = Run(Arguments("plan", {"--granularity", "stage", "--at", "1.1x"}));
  EXPECT_THAT(faster.out, Mentions("faster"));
}

TEST_F(BinaryPlanTest, SharedClocksSayHowFarTheBestSuchPlanIs) {
  const auto arguments = Arguments("plan", {"--granularity", "stage", "--at", "1.1x"});
  EXPECT_THAT(Run(arguments).out, Mentions("Best"));
  EXPECT_THAT(Run(Arguments("plan")).out, Not(Mentions("Best")));
  const json document =
      json::parse(Run(Arguments("plan", {"--granularity", "stage", "--at", "1.1x", "--json"})).out);
  EXPECT_EQ(document["shared_clocks"]["proven"], true);
  EXPECT_NEAR(document["shared_clocks"]["gap_percent"].get<double>(), 0, 1e-6);
}

TEST_F(BinaryPlanTest, ASplitBackwardIsSaid) {
  const RunResult run =
      Run({"plan", folder_.Write("four.csv", SampleProfile(4)), "--schedule", "zbv-zero-bubble",
           "--virtual-stages", "2", "--microbatches", "4", "--blocking-power", "20,20", "--set",
           "split_ratio=0.4", "-o", folder_.Path("out")});
  EXPECT_THAT(run.out, Mentions("split_ratio", "0.4"));
  EXPECT_THAT(run.out, Mentions("Zeus", "written:"));
}

TEST_F(BinaryPlanTest, FrontierAsTableCsvAndJson) {
  const RunResult text = Run(Arguments("frontier"));
  EXPECT_THAT(text.out, testing::HasSubstr("min energy"));
  EXPECT_THAT(folder_.List(), ElementsAre("profile.csv"));
  const RunResult csv = Run(Arguments("frontier", {"--csv"}));
  EXPECT_THAT(csv.out, testing::StartsWith("iteration_time_s,energy_j,slope_w\n"));
  const json document = json::parse(Run(Arguments("frontier", {"--json"})).out);
  EXPECT_GE(document["frontier"].size(), 2u);
  EXPECT_EQ(document["frontier"].back()["slope_w"], 0);
  const std::string file = folder_.Path("f.csv");
  Run(Arguments("frontier", {"-o", file}));
  EXPECT_EQ(ReadText(file), csv.out);
}

}  // namespace
}  // namespace perseus::cli
