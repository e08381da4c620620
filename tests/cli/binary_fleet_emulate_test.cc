// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/run_perseus.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::HasSubstr;

// Two jobs of a profile of two stages.
std::string WriteSite(const TemporaryFolder& folder, const std::string& emulate,
                      const std::string& power = "700") {
  folder.Write("profile.csv", SampleProfile(2));
  return folder.Write("site.toml", "power = " + power +
                                       "\n[[job]]\nname = \"a\"\ncount = 2\nprofile = "
                                       "\"profile.csv\"\nschedule = \"1f1b\"\nmicrobatches = 4\n"
                                       "blocking_power = 20\n[emulate]\n" +
                                       emulate);
}

RunResult RunDays(const std::string& site, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"fleet", "emulate", site, "--days", "0.1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return RunPerseus(arguments);
}

TEST(BinaryFleetEmulate, TheExampleShowsAllRules) {
  const RunResult run =
      RunPerseus({"fleet", "emulate", "examples/site-days.toml", "--days", "1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  std::vector<std::string> names;
  for (const auto& rule : json["rules"]) names.push_back(rule["rule"]);
  EXPECT_THAT(names, ::testing::ElementsAre("max-clocks", "shedding", "uniform-cap", "one-clock",
                                            "proportional-cap", "request-matching", "greedy",
                                            "frontier-proportional", "frontier-alike", "perseus",
                                            "perseus-priced", "bound"));
  const auto lost = [&](std::size_t rule) {
    return json["rules"][rule]["work_lost_percent"]["mean"].get<double>();
  };
  for (std::size_t rule = 1; rule <= 6; ++rule) EXPECT_GE(lost(rule), lost(9)) << names[rule];
}

TEST(BinaryFleetEmulate, WritesAPageAndTables) {
  const TemporaryFolder folder;
  const std::string site = WriteSite(
      folder, "[[emulate.event]]\nstart = \"1h\"\nduration = \"30min\"\npower = \"-30%\"\n");
  const RunResult run = RunDays(site, {"--seeds", "2", "-o", folder.Path("out")});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("+-"));
  const std::string page = ReadText(folder.Path("out/report.html"));
  for (const char* id : {"power-title", "price-title", "Who gave what"}) {
    EXPECT_NE(page.find(id), std::string::npos) << id;
  }
  const std::string csv = ReadText(folder.Path("out/power.csv"));
  EXPECT_THAT(csv, ::testing::StartsWith("time_s,limit_w,max-clocks_w,"));
  const auto json = nlohmann::json::parse(ReadText(folder.Path("out/fleet-days.json")));
  EXPECT_EQ(json["seeds"].size(), 2);
  EXPECT_EQ(json["limits"].size(), 3);
  // The same arguments give the same bytes.
  const RunResult again = RunDays(site, {"--seeds", "2", "-o", folder.Path("again")});
  EXPECT_EQ(again.out, run.out);
  EXPECT_EQ(ReadText(folder.Path("again/report.html")), page);
}

TEST(BinaryFleetEmulate, ALimitThatCannotBeKeptIsSaid) {
  const TemporaryFolder folder;
  const std::string event = "[[emulate.event]]\nstart = \"1h\"\nduration = \"1h\"\npower = 2\n";
  EXPECT_THAT(RunDays(WriteSite(folder, "", "2")).out, Mentions("site.toml:1:9:", "'a-1'"));
  EXPECT_THAT(RunDays(WriteSite(folder, event)).out, Mentions("site.toml:1:9:", "'a-1'"));
  EXPECT_THAT(RunDays(WriteSite(folder, "")).out, ::testing::Not(HasSubstr("'a-1'")));
}

TEST(BinaryFleetEmulate, BadInputIsOneSentence) {
  const TemporaryFolder folder;
  const auto fault = [&](const std::string& emulate, std::vector<std::string> more = {}) {
    const RunResult run = RunDays(WriteSite(folder, emulate), std::move(more));
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_THAT(fault("[[emulate.job]]\nname = \"b\"\n"), Mentions("site.toml:11:8:", "b"));
  EXPECT_THAT(fault("[[emulate.event]]\nstart = 0\nduration = 9\npower = 5\nlimit = \"rack\"\n"),
              Mentions("site.toml:14:9:", "rack"));
  EXPECT_THAT(fault("price = \"none.csv\"\n"), Mentions("site.toml:10:9:", "none.csv"));
  folder.Write("short.csv", "time_h,price_per_kwh\n0,1\n1,2\n");
  EXPECT_THAT(fault("price = \"short.csv\"\n"), Mentions("site.toml:10:9:", "short.csv", "--days"));
  EXPECT_THAT(fault("", {"--seeds", "0"}), Mentions("--seeds"));
  EXPECT_THAT(fault("", {"-o", ""}), Mentions("--output"));
}

}  // namespace
}  // namespace perseus::cli
