// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A site file: what each key means, and what is said of wrong ones.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "fleet/site.h"
#include "perseus/fleet.h"
#include "support/mentions.h"

namespace perseus::fleet {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

// The name stands for a file in the folder of the sample job.
constexpr const char* kName = "examples/s.toml";

Result<SiteFile> Read(const std::string& text, bool jobs_may_be_missing = false) {
  return ParseSiteFile(text, kName, jobs_may_be_missing);
}

// A site of one job, with these lines in its table (after the name) and these at the top.
std::string OneJob(const std::string& lines, const std::string& top = "power = \"1kW\"\n") {
  return top + "[[job]]\nname = \"a\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\n" + lines + "\n";
}

// What is said of a bad site.
std::string Fault(const std::string& text) {
  const Result<SiteFile> site = Read(text);
  if (site) return "no fault";
  EXPECT_EQ(site.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(site.error().message, testing::Not(HasSubstr("\n")));
  return site.error().message;
}

TEST(ReadSiteTest, ReadsTheExample) {
  const Result<SiteFile> site = ReadSiteFile("examples/site.toml");
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->objective, FleetObjective::kThroughput);
  ASSERT_THAT(site->nodes, SizeIs(3));
  EXPECT_EQ(site->nodes[0].limit_watts, 12500);
  EXPECT_EQ(site->nodes[2].name, "rack-2");
  EXPECT_EQ(site->nodes[2].parent, 0u);
  ASSERT_THAT(site->jobs, SizeIs(5));
  const SiteJob& first = site->jobs[0];
  EXPECT_EQ(first.pipelines, 4);
  EXPECT_EQ(first.weight, 4);
  EXPECT_EQ(first.max_slowdown, 0.1);
  EXPECT_EQ(first.fixed_watts, 1000);
  EXPECT_EQ(first.settings.profile, "examples/gpt3-1.3b-a100-sxm.csv");
  ASSERT_THAT(site->jobs[1].shares, SizeIs(2));
  EXPECT_EQ(site->jobs[1].shares[1].node, 2u);
  EXPECT_EQ(site->jobs[1].shares[1].fraction, 0.5);
  EXPECT_EQ(site->jobs[1].settings.microbatches, 48);
  EXPECT_EQ(site->jobs[4].name, "small-3");
  EXPECT_EQ(site->jobs[4].settings.schedule, "gpipe");
  EXPECT_FALSE(site->jobs[4].max_slowdown);
}

TEST(ReadSiteTest, PowersHaveUnits) {
  const auto watts_of = [](const std::string& value) {
    const Result<SiteFile> site = Read(OneJob("", "power = " + value + "\n"));
    return site ? site->nodes[0].limit_watts : -1;
  };
  EXPECT_EQ(watts_of("\"40kW\""), 40e3);
  EXPECT_EQ(watts_of("\"0.04 MW\""), 40e3);
  EXPECT_EQ(watts_of("\"40000W\""), 40e3);
  EXPECT_EQ(watts_of("40000"), 40e3);
  for (const char* bad : {"\"40kWh\"", "\"40 bananas\"", "\"40mW\"", "\"-40kW\"", "0", "\"\"",
                          "\"nan\"", "true", "\"40 kV\"", "1e300"}) {
    EXPECT_THAT(Fault(OneJob("", fmt::format("power = {}\n", bad))),
                AllOf(StartsWith("examples/s.toml:1:9: power"), HasSubstr("expected a number")))
        << bad;
  }
}

TEST(ReadSiteTest, NamesOfObjectives) {
  for (const auto& [name, objective] : {std::pair("throughput", FleetObjective::kThroughput),
                                        {"max-min", FleetObjective::kMaxMin},
                                        {"max-min-tenants", FleetObjective::kMaxMinTenants}}) {
    const Result<SiteFile> site =
        Read(OneJob("", fmt::format("power = 1\nobjective = \"{}\"\n", name)));
    ASSERT_TRUE(site) << site.error().message;
    EXPECT_EQ(site->objective, objective);
    EXPECT_EQ(ObjectiveName(objective), name);
  }
  EXPECT_THAT(Fault(OneJob("", "power = 1\nobjective = \"thruput\"\n")),
              Mentions("examples/s.toml:2:13:", "throughput", "max-min-tenants"));
}

// Each with its place and what it is about.
TEST(ReadSiteTest, BadSitesGetASentence) {
  const struct {
    std::string text;
    std::vector<std::string> mentions;
  } kCases[] = {
      {"", {"examples/s.toml:1:1:", "'power'"}},
      {"power = 1", {"examples/s.toml:1:1:", "[[job]]"}},
      {"power = 1\njobs = 3", {"examples/s.toml:2:1:", "'job'"}},
      {OneJob("wieght = 2"), {"examples/s.toml:5:1:", "'weight'"}},
      {OneJob("blocking_pwer = 2"), {"examples/s.toml:5:1:", "'blocking_power'"}},
      {OneJob("weight = -1"), {"examples/s.toml:5:10:", "job[0].weight", "-1"}},
      {OneJob("weight = 0"), {"examples/s.toml:5:10:", "job[0].weight"}},
      {OneJob("max_slowdown = \"-5%\""), {"examples/s.toml:5:16:", "job[0].max_slowdown", "-5%"}},
      {OneJob("max_slowdown = 25"), {"examples/s.toml:5:16:", "25%"}},
      {OneJob("max_slowdown = true"), {"examples/s.toml:5:16:", "true"}},
      {OneJob("dp = 0"), {"examples/s.toml:5:6:", "job[0].dp", "0"}},
      {OneJob("dp = 1.5"), {"examples/s.toml:5:6:", "job[0].dp"}},
      {OneJob("fixed_power = \"2kWh\""), {"examples/s.toml:5:15:", "job[0].fixed_power", "2kWh"}},
      {OneJob("least_power = -2"), {"examples/s.toml:5:15:", "job[0].least_power"}},
      {OneJob("microbatches = \"many\""), {"examples/s.toml:5:16:", "job[0].microbatches"}},
      {OneJob("noise = 1"), {"examples/s.toml:5:1:", "'noise'"}},
      {OneJob("output = \"x\""), {"examples/s.toml:5:1:", "output"}},
      {OneJob("count = 0"), {"examples/s.toml:5:9:", "job[0].count"}},
      {OneJob("count = 100001"), {"examples/s.toml:5:9:", "100000"}},
      {OneJob("stragglers = \"slow\""), {"examples/s.toml:5:14:", "slow"}},
      {OneJob("stragglers = [\"slow=1.2,pipeline=1\"]"),
       {"examples/s.toml:5:15:", "pipeline=1", "dp"}},
      {OneJob("at = \"rack\""), {"examples/s.toml:5:6:", "rack"}},
      {OneJob("at = {}"), {"examples/s.toml:5:6:"}},
      {OneJob("at = { site = 0.5 }"), {"examples/s.toml:5:6:", "50", "100"}},
      {OneJob("plan = \"p\""), {"examples/s.toml:4:7:", "'plan'"}},
      {"power = 1\n[[job]]\nname = \"a\"\nplan = \"p\"\nschedule = \"1f1b\"",
       {"examples/s.toml:5:1:", "'schedule'", "'plan'"}},
      {"power = 1\n[[job]]\njob = \"x.toml\"", {"examples/s.toml:2:1:", "'name'"}},
      {"power = 1\n[[job]]\nname = \"a/b\"", {"examples/s.toml:3:8:", "a/b"}},
      {"power = 1\n[[job]]\nname = \"..\"", {"examples/s.toml:3:8:"}},
      {"power = 1\n[[job]]\nname = \"a\"",
       {"examples/s.toml:2:1:", "'a'", "frontier", "'profile'"}},
      {"power = 1\n[[job]]\nname = \"a\"\nschedule = \"1f1b\"",
       {"examples/s.toml:2:1:", "'a'", "frontier", "'profile'"}},
      {"power = 1\n[[job]]\nname = \"a\"\njob = \"none.toml\"",
       {"examples/s.toml:4:7:", "none.toml"}},
      {"power = 1\n[[job]]\nname = \"a\"\njob = \"site.txt\"",
       {"examples/s.toml:4:7:", "examples/site.txt", ".toml"}},
      {"power = 1\n[[job]]\nname = \"a\"\njob = \"site.toml\"",
       {"examples/site.toml:3:1:", "'power'"}},
      {"power = 1\njob = 3", {"examples/s.toml:2:7:", "array"}},
      {OneJob("", "power = 1\nemulate = 3\n"), {"examples/s.toml:2:11:", "[emulate]"}},
      {"power = 1\npue = 0.5\n", {"examples/s.toml:2:7:", "pue"}},
      {OneJob("") + OneJob("", ""), {"examples/s.toml:7:8:", "'a'", "2"}},
      {OneJob("", "power = 1\n[[limit]]\nname = \"a\"\npower = 1\nparent = \"b\"\n"),
       {"examples/s.toml:5:10:", "'b'"}},
      {OneJob("",
              "power = 1\n[[limit]]\nname = \"a\"\npower = 1\nparent = \"b\"\n"
              "[[limit]]\nname = \"b\"\npower = 1\nparent = \"a\"\n"),
       {"examples/s.toml:5:10:", "'a'", "circle"}},
      {OneJob("", "power = 1\n[[limit]]\nname = \"a\"\npower = 1\nparent = \"a\"\n"),
       {"examples/s.toml:5:10:", "'a'", "circle"}},
      {OneJob("", "power = 1\n[[limit]]\nname = \"site\"\npower = 1\n"),
       {"examples/s.toml:3:8:", "'site'"}},
      {OneJob("", "power = 1\n[[limit]]\nname = \"a\"\n"), {"examples/s.toml:2:1:", "'power'"}},
      {OneJob("",
              "power = 1\n[[limit]]\nname = \"a\"\npower = 1\n"
              "[[limit]]\nname = \"a\"\npower = 1\n"),
       {"examples/s.toml:6:8:", "'a'", "2"}},
      {"power = [", {"examples/s.toml:1"}},
  };
  for (const auto& each : kCases) {
    const std::string fault = Fault(each.text);
    for (const std::string& word : each.mentions) {
      EXPECT_THAT(fault, MentionsWord(word)) << each.text;
    }
  }
}

TEST(ReadSiteTest, KeysInASiteWinOverTheJobFile) {
  const Result<SiteFile> site = Read(OneJob("microbatches = 48\n[job.conditions]\nnoise = \"1%\""));
  ASSERT_TRUE(site) << site.error().message;
  const JobFile& settings = site->jobs[0].settings;
  EXPECT_EQ(settings.microbatches, 48);
  EXPECT_EQ(settings.schedule, "1f1b");
  EXPECT_EQ(settings.noise, 0.01);
  EXPECT_EQ(settings.places.at("microbatches").file, kName);
  EXPECT_EQ(settings.places.at("schedule").file, "examples/gpt3-1.3b-a100-sxm.toml");
}

TEST(ReadSiteTest, ParentsMayFollowTheirChildren) {
  const Result<SiteFile> site =
      Read(OneJob("at = \"rack\"",
                  "power = 1\n[[limit]]\nname = \"rack\"\npower = 1\n"
                  "parent = \"row\"\n[[limit]]\nname = \"row\"\npower = 1\n"));
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->nodes[1].parent, 2u);
  EXPECT_EQ(site->nodes[2].parent, 0u);
  EXPECT_EQ(site->jobs[0].shares[0].node, 1u);
}

TEST(ReadSiteTest, TheTableOfDaysIsKept) {
  const Result<SiteFile> site = Read(OneJob("") + "[emulate]\nanything = 3\n");
  ASSERT_TRUE(site);
  EXPECT_EQ(std::get<double>(site->emulate.Find("anything")->node.value), 3);
  EXPECT_THAT(Fault("emulate = 3\n" + OneJob("")), Mentions("emulate"));
}

TEST(ReadSiteTest, AServersJobsMayBeMissing) {
  EXPECT_TRUE(Read("power = 1", true));
  EXPECT_FALSE(Read("power = 1\n[[job]]\nname = \"a\"\nweight = 2\ndp = 3\n", true))
      << "dp is the server's";
  EXPECT_TRUE(Read("power = 1\n[[job]]\nname = \"a\"\nweight = 2\n", true));
}

RC_GTEST_PROP(ReadSiteTest, AnyPartsThatMakeAWholeAreTaken, ()) {
  const int parts = *rc::gen::inRange(1, 9);
  std::string top = "power = 1\n";
  std::string at = "at = {";
  double rest = 1;
  for (int k = 0; k < parts; ++k) {
    top += fmt::format("[[limit]]\nname = \"n{}\"\npower = 1\n", k);
    const double part = k + 1 == parts ? rest : rest * *rc::gen::inRange(1, 100) / 100.0;
    rest -= part;
    at += fmt::format("{} n{} = {}", k == 0 ? "" : ",", k, part);
  }
  const Result<SiteFile> site = Read(OneJob(at + " }", top));
  RC_ASSERT(site.has_value());
  RC_ASSERT(site->jobs[0].shares.size() == static_cast<std::size_t>(parts));
}

// docs/reference/files.md names each key.
TEST(ReadSiteTest, ThePageNamesEachKey) {
  std::ostringstream page;
  page << std::ifstream("docs/reference/files.md").rdbuf();
  const Result<SiteFile> top = Read("power = 1\nunknown-of-all = 1");
  ASSERT_FALSE(top);
  const Result<SiteFile> job = Read(OneJob("qqqqqqqqqqqq = 1"));
  ASSERT_FALSE(job);
  // The sentence lists all keys, where none is similar.
  for (const std::string& fault : {top.error().message, job.error().message}) {
    const std::size_t begin = fault.find("known keys are ");
    ASSERT_NE(begin, std::string::npos) << fault;
    std::istringstream keys(fault.substr(begin + 15));
    for (std::string key; keys >> key;) {
      if (key.back() == ',') key.pop_back();
      EXPECT_NE(page.str().find("`" + key + "`"), std::string::npos) << key;
    }
  }
}

}  // namespace
}  // namespace perseus::fleet
