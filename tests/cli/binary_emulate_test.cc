// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus emulate` from file to file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class BinaryEmulateTest : public testing::Test {
 protected:
  std::vector<std::string> Arguments(const std::vector<std::string>& more = {},
                                     const std::string& command = "emulate") const {
    std::vector<std::string> arguments = {command,          profile_, "--schedule",       "1f1b",
                                          "--microbatches", "4",      "--blocking-power", "20"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static RunResult Run(const std::vector<std::string>& arguments, const RunOptions& options = {}) {
    RunResult run = RunPerseus(arguments, options);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return run;
  }

  json Json(std::vector<std::string> more) const {
    more.emplace_back("--json");
    return json::parse(Run(Arguments(more)).out);
  }

  TemporaryFolder folder_;
  std::string profile_ = folder_.Write("profile.csv", SampleProfile(2));
};

// Without disturbances every iteration is the plan's own.
TEST_F(BinaryEmulateTest, AnUndisturbedJobIsThePlan) {
  const json plan =
      json::parse(Run(Arguments({"--json", "--effort", "0.2", "--at", "1.05x"}, "plan")).out);
  const json job = Json({"--dp", "3", "--iterations", "5", "--at", "1.05x"});
  EXPECT_EQ(job["pipelines"], 3);
  EXPECT_EQ(job["gpus"], 6);
  EXPECT_EQ(job["policy"], "perseus");
  EXPECT_EQ(job["target_s"], plan["requested_time_s"]);
  ASSERT_EQ(job["iterations"].size(), 5u);
  for (const json& iteration : job["iterations"]) {
    EXPECT_EQ(iteration["time_s"], plan["iteration_time_s"]);
    EXPECT_EQ(iteration["straggling_pipelines"], 0);
  }
  const double energy = 15 * plan["energy_j"].get<double>();
  const double before = 15 * plan["baseline"]["energy_j"].get<double>();
  EXPECT_NEAR(job["energy_j"].get<double>(), energy, 1e-9 * energy);
  EXPECT_NEAR(job["baseline"]["energy_j"].get<double>(), before, 1e-9 * before);
  EXPECT_NEAR(job["saving_percent"].get<double>(), plan["saving_percent"].get<double>(), 1e-9);
  EXPECT_EQ(job["replans"], 0);
}

TEST_F(BinaryEmulateTest, JsonHasTheDocumentedNames) {
  const json job = Json({"--iterations", "2"});
  for (const char* name : {"schema_version",
                           "profile",
                           "schedule",
                           "stages",
                           "virtual_stages",
                           "microbatches",
                           "tensor_parallel",
                           "pipelines",
                           "gpus",
                           "policy",
                           "seed",
                           "target_s",
                           "time_s",
                           "energy_j",
                           "useful_j",
                           "intrinsic_bloat_j",
                           "blocking_j",
                           "extrinsic_bloat_j",
                           "average_w",
                           "peak_w",
                           "gpu_average_w",
                           "gpu_peak_w",
                           "clock_calls",
                           "late_computations",
                           "power_interval_s",
                           "stragglers",
                           "replans",
                           "baseline",
                           "saving_percent",
                           "slowdown_percent",
                           "iterations",
                           "power_w",
                           "policies",
                           "notes",
                           "remarks",
                           "files"}) {
    EXPECT_TRUE(job.contains(name)) << name;
  }
  EXPECT_EQ(job["profile"]["file"], "profile.csv");
}

TEST_F(BinaryEmulateTest, EnergyAndPowerAddUpUnderDisturbances) {
  const std::vector<std::string> scenario = {"--dp",
                                             "4",
                                             "--iterations",
                                             "30",
                                             "--noise",
                                             "2%",
                                             "--set",
                                             "gpu_noise=1%",
                                             "--tp",
                                             "2",
                                             "--switch-latency",
                                             "20ms",
                                             "--switch-stall",
                                             "1ms",
                                             "--straggler",
                                             "slow=1.2,from=10,for=10",
                                             "--reaction-delay",
                                             "5s",
                                             "--seed",
                                             "7"};
  const json job = Json(scenario);
  const double total = job["energy_j"].get<double>();
  double parts = 0;
  for (const char* part : {"useful_j", "intrinsic_bloat_j", "extrinsic_bloat_j", "blocking_j"}) {
    parts += job[part].get<double>();
    double sum = 0;
    for (const json& iteration : job["iterations"]) sum += iteration[part].get<double>();
    EXPECT_NEAR(sum, job[part].get<double>(), 1e-9 * total) << part;
  }
  EXPECT_NEAR(parts, total, 1e-9 * total);
  EXPECT_NEAR(job["average_w"].get<double>() * job["time_s"].get<double>(), total, 1e-9 * total);
  EXPECT_EQ(job["stragglers"], 1);
  EXPECT_GE(job["replans"], 2);  // There and back.
  EXPECT_GT(job["clock_calls"], 0);
  EXPECT_EQ(job["baseline"]["clock_calls"], 0);
  // The straggler is there for ten iterations.
  int straggling = 0;
  for (const json& iteration : job["iterations"]) {
    straggling += iteration["straggling_pipelines"].get<int>();
  }
  EXPECT_EQ(straggling, 10);
  EXPECT_EQ(Json(scenario), job);
  auto other = scenario;
  other.back() = "8";
  EXPECT_NE(Json(other)["time_s"], job["time_s"]);
}

TEST_F(BinaryEmulateTest, TextSaysWhatWasEmulatedAndWhatCame) {
  const RunResult run = Run(Arguments({"--dp", "4", "--iterations", "10", "--straggler",
                                       "slow=1.2,pipeline=3,from=2", "--power-interval", "100ms"}));
  EXPECT_THAT(run.out,
              StartsWith("Profile   profile.csv: 12 rows, 2 stages, 3 clocks from 1000 to 1400 "
                         "MHz.\n"));
  EXPECT_THAT(run.out, ContainsRegex("\nJob       4 pipelines of 2 GPUs each, 8 GPUs in all; 10 "
                                     "iterations[.] [^.]* perseus [^.]* 4[.]5000 s"));
  EXPECT_THAT(run.out,
              ContainsRegex("\nScenario  pipeline 3 [^;]* 1[.]2 [^;]* iteration 2; seed 0[.]\n"));
  EXPECT_THAT(run.out, ContainsRegex("\n  longest, s +5[.]4000 +5[.]4000 +[+]0[.]00 %\n"));
  EXPECT_THAT(run.out, Mentions("100"));
  for (const char* part :
       {"\nuseful ", "\nintrinsic bloat ", "\nextrinsic bloat ", "\nblocking "}) {
    EXPECT_THAT(run.out, HasSubstr(part));
  }
  EXPECT_THAT(run.out, Mentions("Straggler", "1", "straggler", "time"));
  for (const char c : run.out) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  EXPECT_THAT(folder_.List(), ElementsAre("profile.csv"));
}

TEST_F(BinaryEmulateTest, ColourAndRulesAsTheTerminalCan) {
  RunOptions options;
  options.environment = {"LANG=C.UTF-8", "TERM=xterm", "NO_COLOR=1"};
  const RunResult run = Run(Arguments({"--iterations", "1"}), options);
  EXPECT_THAT(run.out, HasSubstr("\u2500"));
  EXPECT_THAT(run.out, Not(HasSubstr("\x1b")));
}

TEST_F(BinaryEmulateTest, NobodyReactsWhereNobodyMay) {
  const std::vector<std::string> scenario = {"--dp", "4",           "--iterations",
                                             "20",   "--straggler", "slow=1.3"};
  const json reacts = Json(scenario);
  auto more = scenario;
  more.insert(more.end(), {"--reaction-delay", "never"});
  const json rigid = Json(more);
  EXPECT_EQ(rigid["replans"], 0);
  EXPECT_LT(reacts["energy_j"], rigid["energy_j"]);
  EXPECT_LT(reacts["extrinsic_bloat_j"], rigid["extrinsic_bloat_j"]);
}

TEST_F(BinaryEmulateTest, ComparesPlansUnderTheSameConditions) {
  const std::string out = folder_.Path("out");
  Run(Arguments({"-o", out, "--at", "1.1x", "--granularity", "stage"}, "plan"));
  const std::string other = out + "/plan.json";
  const std::vector<std::string> scenario = {
      "--iterations", "3",         "--at", "1.1x",      "--noise",
      "2%",           "--compare", other,  "--compare", out + "/zeus_plan.py"};
  const json job = Json(scenario);
  std::vector<std::string> names;
  for (const json& row : job["policies"]) names.push_back(row["policy"]);
  EXPECT_THAT(names, ElementsAre("max-clocks", "perseus", other, out + "/zeus_plan.py"));
  EXPECT_EQ(job["policies"][0]["saving_percent"], 0);
  EXPECT_EQ(job["policies"][1]["energy_j"], job["energy_j"]);
  EXPECT_EQ(job["policies"][2]["energy_j"], job["policies"][3]["energy_j"]);
  const json alone = Json({"--iterations", "3", "--noise", "2%", "--plan", other});
  EXPECT_EQ(job["policies"][2]["energy_j"], alone["energy_j"]);
  EXPECT_EQ(job["policies"][2]["time_s"], alone["time_s"]);
  const RunResult text = Run(Arguments(scenario));
  EXPECT_THAT(text.out, ContainsRegex("policy +total s +slowdown +total J +saving"));
  EXPECT_THAT(text.out, ContainsRegex("\n/[^ ]*plan.json +[0-9.]+ "));
}

TEST_F(BinaryEmulateTest, ReplaysPlansThatWereMade) {
  const std::string out = folder_.Path("out");
  Run(Arguments({"-o", out, "--at", "1.1x"}, "plan"));
  const json plan = json::parse(ReadText(out + "/plan.json"));
  for (const std::string file : {"/plan.json", "/zeus_plan.py"}) {
    const json job = Json({"--plan", out + file, "--iterations", "2"});
    EXPECT_EQ(job["target_s"], plan["iteration_time_s"]) << file;
    EXPECT_EQ(job["iterations"][1]["time_s"], plan["iteration_time_s"]);
    EXPECT_NEAR(job["energy_j"].get<double>(), 2 * plan["energy_j"].get<double>(), 1e-6);
    EXPECT_EQ(job["replans"], 0);
  }
  const RunResult text = Run(Arguments({"--plan", out + "/plan.json"}));
  EXPECT_THAT(text.out, HasSubstr("(the plan's own time)"));
}

TEST_F(BinaryEmulateTest, APlanFromAnotherProfileIsNoted) {
  const std::string out = folder_.Path("out");
  Run(Arguments({"-o", out, "--at", "1.1x"}, "plan"));
  const std::vector<std::string> replay = {"--plan", out + "/plan.json", "--iterations", "2"};
  EXPECT_TRUE(Json(replay)["remarks"].empty());
  folder_.Write("profile.csv", ReadText(folder_.Path("profile.csv")) + "\n");
  EXPECT_THAT(Json(replay)["remarks"].get<std::vector<std::string>>(),
              ElementsAre("plan.json was made from another profile (profile.csv): its clocks are "
                          "replayed at the times and energies of profile.csv."));
}

TEST_F(BinaryEmulateTest, WritesAllFiles) {
  const std::string out = folder_.Path("out");
  const std::vector<std::string> asked = {"--dp", "2", "--iterations", "4", "-o", out};
  const RunResult run = Run(Arguments(asked));
  EXPECT_THAT(run.out,
              Mentions("emulation.json", "iterations.csv", "power.csv", "timeline.pftrace"));
  const json job = json::parse(ReadText(out + "/emulation.json"));
  EXPECT_EQ(job, Json(asked));
  EXPECT_EQ(job["files"].size(), 5u);
  const std::string iterations = ReadText(out + "/iterations.csv");
  EXPECT_EQ(std::count(iterations.begin(), iterations.end(), '\n'), 5);
  const std::string power = ReadText(out + "/power.csv");
  EXPECT_EQ(std::count(power.begin(), power.end(), '\n'),
            1 + static_cast<std::ptrdiff_t>(job["power_w"].size()));
  EXPECT_THAT(ReadText(out + "/report.html"), StartsWith("<!"));
  const std::string first = ReadText(out + "/report.html");
  Run(Arguments(asked));
  EXPECT_EQ(ReadText(out + "/report.html"), first);
}

// A job file is read as `plan` reads it, but its folder is for the plan.
TEST_F(BinaryEmulateTest, AJobFileIsTheSameJob) {
  const std::string job = folder_.Write(
      "job.toml",
      "profile = \"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\nblocking_power = 20\n"
      "dp = 3\ngranularity = \"stage\"\noutput = \"plan\"\n");
  EXPECT_EQ(Run({"emulate", job, "--json"}).out,
            Run(Arguments({"--dp", "3", "--granularity", "stage", "--json"})).out);
  EXPECT_THAT(folder_.List(), ElementsAre("job.toml", "profile.csv"));
}

}  // namespace
}  // namespace perseus::cli
