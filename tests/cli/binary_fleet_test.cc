// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus fleet plan` from file to file.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class BinaryFleetTest : public testing::Test {
 protected:
  static json RunJson(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"fleet", "plan"});
    arguments.emplace_back("--json");
    const RunResult run = RunPerseus(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    return json::parse(run.out, nullptr, false);
  }

  // A site with two jobs of the sample profile.
  std::string Site(const std::string& power, const std::string& lines = "") const {
    const std::string job =
        "profile = \"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\nblocking_power = 20\n";
    return folder_.Write("site.toml", "power = " + power + "\n[[job]]\nname = \"a\"\n" + job +
                                          lines + "[[job]]\nname = \"b\"\ndp = 2\n" + job);
  }

  TemporaryFolder folder_;
  std::string profile_ = folder_.Write("profile.csv", SampleProfile(2));
};

// The sample profile: a plan without slowdown takes 4.5 s and 363.5 W, the slowest 5.625 s and
// 250 W. Between them power is linear in throughput.
TEST_F(BinaryFleetTest, JsonHasTheDocumentedNames) {
  const json document = RunJson({Site("\"1kW\"", "fixed_power = \"50W\"\nweight = 2\n")});
  for (const char* name : {"schema_version", "feasible", "objective_name", "objective",
                           "objective_bound", "gap_percent", "price_per_kw", "budget_w", "power_w",
                           "max_clocks_power_w", "pue", "plans_made", "jobs", "limits", "notes"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
  ASSERT_EQ(document["jobs"].size(), 2u);
  for (const json& job : document["jobs"]) {
    for (const char* name :
         {"name", "tenant", "pipelines", "gpus", "weight", "iteration_time_s", "slowdown_percent",
          "speed", "power_w", "fixed_power_w", "energy_j", "max_clocks_power_w", "held_by",
          "held_by_limit", "planned", "plan", "bound"}) {
      EXPECT_TRUE(job.contains(name)) << name;
    }
  }
  double drawn = 0;
  double objective = 0;
  for (const json& job : document["jobs"]) {
    drawn += job["power_w"].get<double>();
    objective += job["weight"].get<double>() * 4.5 / job["iteration_time_s"].get<double>();
  }
  EXPECT_LE(drawn, 1000);
  EXPECT_NEAR(document["power_w"].get<double>(), drawn, 1e-6);
  EXPECT_NEAR(document["objective"].get<double>(), objective, 1e-9);
  EXPECT_LE(document["objective"], document["objective_bound"]);
  EXPECT_GT(document["price_per_kw"], 0);
  // Job a counts twice and is one pipeline: it is at full speed.
  EXPECT_NEAR(document["jobs"][0]["iteration_time_s"].get<double>(), 4.5, 1e-6);
  EXPECT_EQ(document["jobs"][1]["gpus"], 4);
}

TEST_F(BinaryFleetTest, TheBoundIsTheFrontiers) {
  // 3 pipelines share 900 W. All are alike, so each pipeline gets the same slope: what is left
  // beside job a at full speed goes to the two of job b.
  const json document = RunJson({Site("\"900W\"", "weight = 10\n")});
  const json frontier =
      json::parse(RunPerseus({"frontier", profile_, "--schedule", "1f1b", "--microbatches", "4",
                              "--blocking-power", "20", "--json"})
                      .out);
  // On the frontier as the command prints it.
  const auto watts_at = [&](double seconds) {
    const json& points = frontier["frontier"];
    for (std::size_t k = 1; k < points.size(); ++k) {
      const double t0 = points[k - 1]["iteration_time_s"];
      const double t1 = points[k]["iteration_time_s"];
      if (seconds > t1 * (1 + 1e-12)) continue;
      const double e0 = points[k - 1]["energy_j"];
      const double e1 = points[k]["energy_j"];
      return (e0 + (e1 - e0) * (seconds - t0) / (t1 - t0)) / seconds;
    }
    return 0.0;
  };
  for (const json& job : document["jobs"]) {
    const json& bound = job["bound"];
    EXPECT_NEAR(bound["power_w"].get<double>(),
                job["pipelines"].get<double>() * watts_at(bound["iteration_time_s"]), 1e-6);
  }
  EXPECT_NEAR(document["jobs"][0]["bound"]["power_w"].get<double>() +
                  document["jobs"][1]["bound"]["power_w"].get<double>(),
              900, 1e-6);
}

TEST_F(BinaryFleetTest, TextSaysWhatEachJobGets) {
  const RunResult run = RunPerseus({"fleet", "plan", Site("\"0.9kW\"", "weight = 10\n")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, Mentions("site.toml", "900.0"));
  for (const char* fact : {"Budget", "Drawn", "Work", "Price"}) {
    EXPECT_THAT(run.out, HasSubstr(fact));
  }
  EXPECT_THAT(run.out, HasSubstr("held by"));
  EXPECT_THAT(run.out, HasSubstr("nothing\n"));
  EXPECT_THAT(run.out, HasSubstr("site\n"));
}

TEST_F(BinaryFleetTest, WritesThePlanOfEachJob) {
  const std::string folder = folder_.Path("fleet");
  const json printed = RunJson({Site("\"900W\""), "-o", folder});
  EXPECT_EQ(json::parse(ReadText(folder + "/fleet.json")), printed);
  for (const json& job : printed["jobs"]) {
    const std::string of_job = folder + "/" + job["name"].get<std::string>();
    const json plan = json::parse(ReadText(of_job + "/plan.json"));
    EXPECT_EQ(plan["iteration_time_s"], job["plan"]["iteration_time_s"]);
    EXPECT_EQ(plan["energy_j"], job["plan"]["energy_j"]);
    EXPECT_EQ(plan["data_parallel"], job["pipelines"]);
  }
  // The written job is a site's job, too: the same frontiers, so the same bound.
  const std::string again = folder_.Write(
      "again.toml", fmt::format("power = 900\n[[job]]\nname = \"a\"\nplan = \"{0}/a\"\n"
                                "[[job]]\nname = \"b\"\nplan = \"{0}/b\"\n",
                                folder));
  const json of_plans = RunJson({again});
  EXPECT_NEAR(of_plans["objective_bound"].get<double>(), printed["objective_bound"].get<double>(),
              1e-9);
  EXPECT_EQ(of_plans["jobs"][1]["pipelines"], 2);
  EXPECT_FALSE(of_plans["jobs"][0]["planned"]);
}

TEST_F(BinaryFleetTest, TheSameBytesTwice) {
  const std::string site = Site("\"900W\"");
  EXPECT_EQ(RunPerseus({"fleet", "plan", site, "--json"}).out,
            RunPerseus({"fleet", "plan", site, "--json"}).out);
}

TEST_F(BinaryFleetTest, ABudgetBelowTheLeastIsRefused) {
  const std::string site = Site("\"700W\"", "max_slowdown = \"5%\"\nweight = 3\n");
  // Job b may be as slow as it likes: there is room.
  EXPECT_EQ(RunPerseus({"fleet", "plan", site}).exit_code, 0);
  const std::string tight = Site("\"300W\"", "max_slowdown = \"5%\"\nweight = 3\n");
  const std::string sentence = Refused({"fleet", "plan", tight});
  EXPECT_THAT(sentence, Mentions(tight + ":1:9:", "'site'", "W", "suspend", "'a'"));
  const RunResult run = RunPerseus({"fleet", "plan", tight, "--json"});
  EXPECT_EQ(run.exit_code, 2);
  const json document = json::parse(run.out);
  EXPECT_FALSE(document["feasible"]);
  ASSERT_EQ(document["shortages"].size(), 1u);
  EXPECT_EQ(document["shortages"][0]["limit"], "site");
  EXPECT_EQ(document["shortages"][0]["suspend"][0], "a");
  EXPECT_GT(document["shortages"][0]["missing_w"], 0);
  EXPECT_EQ("perseus: " + document["sentence"].get<std::string>() + "\n",
            RunPerseus({"fleet", "plan", tight}).err);
}

TEST_F(BinaryFleetTest, RefusesBadSitesWithTheirPlace) {
  const std::string path = folder_.Path("bad.toml");
  for (const auto& [text, place] : {std::pair("power = \"40kWh\"\n", ":1:9:"),
                                    {"power = 3\n", ":1:1:"},
                                    {"power = 3\n[[job]]\nname = \"a\"\n", ":2:1:"}}) {
    folder_.Write("bad.toml", text);
    EXPECT_THAT(Refused({"fleet", "plan", path}), HasSubstr(path + place));
  }
  EXPECT_THAT(Refused({"fleet", "plan", folder_.Path("none.toml")}), Mentions("none.toml"));
  EXPECT_THAT(Refused({"fleet", "plan"}), Mentions("site.toml"));
  EXPECT_THAT(Refused({"fleet", "plan", Site("900"), "-o", folder_.path() + "/profile.csv"}),
              Mentions("profile.csv"));
  EXPECT_THAT(Refused({"fleet", "plan", Site("900"), "--server", "unix:/none/at/all"}),
              HasSubstr("/none/at/all"));
}

// A server with one job, which the site file weighs.
TEST_F(BinaryFleetTest, DividesAmongTheJobsOfAServer) {
  folder_.Write("job.toml",
                "profile = \"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\n"
                "blocking_power = 20\ndp = 2\n");
  folder_.Write("site.toml",
                "power = \"600W\"\n[[job]]\nname = \"one\"\nweight = 2\nmax_slowdown = \"25%\"\n");
  folder_.Write("wrong.toml", "power = 600\n[[job]]\nname = \"other\"\n");
  const RunResult run = RunShell(fmt::format(R"(cd {}; perseus={}; at=unix:$PWD/socket
$perseus serve --store sqlite:jobs.db --listen $at > log 2>&1 &
server=$!
for attempt in $(seq 300); do $perseus job list --server $at > list 2>&1 && break; sleep 0.1; done
$perseus job create job.toml --name one --server $at > created 2>&1
for attempt in $(seq 300); do
  $perseus fleet plan site.toml --server $at --json > answer 2> refused && break; sleep 0.1
done
$perseus fleet plan wrong.toml --server $at 2>&1
kill $server; wait $server; cat answer)",
                                             folder_.path(), PERSEUS_BINARY),
                                 "");
  EXPECT_THAT(run.out, Mentions("wrong.toml:2:1:", "'other'"));
  const json document = json::parse(run.out.substr(run.out.find('{')), nullptr, false);
  ASSERT_TRUE(document.is_object()) << run.out << ReadText(folder_.Path("refused"));
  ASSERT_EQ(document["jobs"].size(), 1u);
  const json& job = document["jobs"][0];
  EXPECT_EQ(job["name"], "one");
  EXPECT_EQ(job["pipelines"], 2);
  EXPECT_EQ(job["weight"], 2);
  EXPECT_FALSE(job["planned"]);
  EXPECT_NEAR(document["power_w"].get<double>(), 600, 1e-6);
}

// The example of docs/how-to/fleet.md.
TEST_F(BinaryFleetTest, TheExampleIsDivided) {
  const json document = RunJson({"examples/site.toml"});
  EXPECT_EQ(document["jobs"].size(), 5u);
  EXPECT_LE(document["power_w"], 12500);
  EXPECT_GE(document["power_w"], 12400);
  EXPECT_LE(document["gap_percent"], 0.2);
  for (const json& limit : document["limits"]) EXPECT_LE(limit["power_w"], limit["limit_w"]);
}

}  // namespace
}  // namespace perseus::cli
