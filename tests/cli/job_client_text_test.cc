// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/cluster/job_text.h"
#include "cli/cluster/json_values.h"
#include "perseus/job.h"
#include "perseus/job_file.h"
#include "support/mentions.h"

namespace perseus::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kHostile =
    "x\x1b]0;title\x07\xc2\x9b"
    "2J\u202e";

// A job as a hostile server tells it.
nlohmann::ordered_json HostileJob() {
  return {{"id", kHostile},
          {"name", kHostile},
          {"state", kHostile},
          {"reason", kHostile},
          {"at", kHostile},
          {"plan",
           {{"version", kHostile},
            {"whole_job", {{"iteration_time_s", 1.0}, {"straggling", true}}},
            {"reason", kHostile},
            {"sentence", kHostile},
            {"pipelines", {{kHostile, {{"iteration_time_s", 1.0}}}}}}},
          {"stragglers",
           nlohmann::ordered_json::array({{{"straggler_id", kHostile}, {"node", kHostile}}})}};
}

void ExpectHarmless(const std::string& text) {
  EXPECT_THAT(text, Mentions("title"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\x07")));
  EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
  EXPECT_THAT(text, Not(HasSubstr("\u202e")));
}

TEST(JobClientTextTest, NothingThatAServerNamesReachesTheTerminal) {
  const Style plain;
  ExpectHarmless(JobText(HostileJob(), plain, 0));
  ExpectHarmless(KnownJobText({{"state", "finished"}, {"id", kHostile}}));
  const nlohmann::ordered_json labelled = {{"id", "j-1"},
                                           {"labels", {{kHostile, kHostile}, {"odd", 7}}}};
  ExpectHarmless(JobTable(nlohmann::ordered_json::array({labelled}), plain));
  ExpectHarmless(JobText(labelled, plain, 0));
  ExpectHarmless(EventLine(kHostile, HostileJob(), HostileJob()));
  ExpectHarmless(JobTable(nlohmann::ordered_json::array({HostileJob()}), plain));
  ExpectHarmless(JsonText(HostileJob().dump()));
  ExpectHarmless(EventText(kHostile, HostileJob().dump()));
  ExpectHarmless(EventText("state", kHostile));
}

nlohmann::ordered_json Complaint(int rank, const char* error) {
  return {{"rank", rank}, {"error", error}};
}

TEST(JobClientTextTest, AComplaintIsShownOnceWithItsRanks) {
  nlohmann::ordered_json job = {{"id", "j-1"}, {"world_size", 4}};
  job["clients"]["complaining"] = 3;
  job["clients"]["troubled"] = {Complaint(0, "no agent"), Complaint(2, "no server"),
                                Complaint(3, "no agent")};
  const std::string text = JobText(job, Style{}, 0);
  EXPECT_THAT(text, HasSubstr("2 of 4 ranks (rank 0, 3): no agent\n"));
  EXPECT_THAT(text, HasSubstr("1 of 4 ranks (rank 2): no server\n"));
  // Of many ranks the server names the first.
  job["clients"]["complaining"] = 4;
  job["clients"]["troubled"] = {Complaint(0, "no agent")};
  EXPECT_THAT(JobText(job, Style{}, 0), HasSubstr("4 of 4 ranks: no agent\n"));
}

TEST(JobClientTextTest, RanksThatAreNotThereAreNamed) {
  nlohmann::ordered_json job = {{"id", "j-1"}, {"world_size", 4}, {"ranks_registered", 2}};
  EXPECT_EQ(JobText(job, Style{}, 0).find("not there"), std::string::npos);
  job["missing_ranks"] = {1, 3};
  EXPECT_THAT(JobText(job, Style{}, 0), HasSubstr("rank 1, 3\n"));
  job["ranks_registered"] = 1;  // The server names the first.
  EXPECT_THAT(JobText(job, Style{}, 0), HasSubstr("rank 1, 3, ...\n"));
}

TEST(JobClientTextTest, ASavingIsShownWhileSomebodyFollows) {
  nlohmann::ordered_json job = {{"id", "j-1"}, {"state", "running"}};
  job["plan"] = {{"version", 1}, {"saving_percent", 12.5}};
  const auto texts = [&] {
    return std::array{JobText(job, Style{}, 0),
                      JobTable(nlohmann::ordered_json::array({job}), Style{}),
                      EventLine("job", {{"id", "j-1"}}, job)};
  };
  EXPECT_THAT(texts(), Each(HasSubstr("12.50 %")));
  job["following"] = 0;
  EXPECT_THAT(texts(), Each(AllOf(Not(HasSubstr("12.50 %")), HasSubstr("none now"))));
  job["following"] = 1;
  EXPECT_THAT(texts(), Each(HasSubstr("12.50 %")));
  job["plan"].erase("saving_percent");
  job["following"] = 0;
  EXPECT_THAT(texts(), Each(Not(HasSubstr("none now"))));
}

TEST(JobClientTextTest, ALongNameDoesNotWidenTheTable) {
  const Style plain;
  const nlohmann::ordered_json job = {{"id", "j-1"}, {"name", std::string(4'000, 'n') + "\u202e"}};
  const std::string table = JobTable(nlohmann::ordered_json::array({job}), plain);
  EXPECT_LT(table.size(), 500U) << table;
  EXPECT_THAT(table, HasSubstr("nnn\u2026 "));
}

TEST(JobClientTextTest, AColumnOfTheTableHasOneUnit) {
  auto jobs = nlohmann::ordered_json::array();
  for (const double seconds : {2.5, 0.0312}) {
    jobs.push_back({{"id", "j"}, {"plan", {{"whole_job", {{"iteration_time_s", seconds}}}}}});
  }
  const std::string table = JobTable(jobs, Style());
  EXPECT_THAT(table, testing::ContainsRegex("iteration s"));
  EXPECT_THAT(table, testing::ContainsRegex(" 2.5000 "));
  EXPECT_THAT(table, testing::ContainsRegex(" 0.0312 "));
}

// A server reads of a job file what is in it.
TEST(JobClientTextTest, ConditionsAreSentAsTheTableThatTheyAre) {
  const auto settings = ParseJobFile(R"(schedule = "1f1b"
microbatches = 4
[conditions]
noise = "1%"
switch_latency = "15ms"
call_ahead = "predicted"
max_changes = 12
)",
                                     "job.toml", JobFileFormat::kToml);
  ASSERT_TRUE(settings) << settings.error().message;
  const nlohmann::ordered_json json = SettingsJson(*settings);
  EXPECT_EQ(json["conditions"]["call_ahead"], "predicted");
  EXPECT_FALSE(json.contains("noise"));
  const auto again = ParseJobFile(json.dump(), "job", JobFileFormat::kJson);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(ConditionsOf(*again), ConditionsOf(*settings));
}

nlohmann::ordered_json StragglingJob() {
  return nlohmann::ordered_json::parse(R"({
      "id": "j-1", "name": "llama", "client_key": "llama-7", "state": "running", "at": "1.0x",
      "plan": {"version": 3, "reason": "straggler", "iteration_time_s": 1.0588,
               "saving_percent": 23.3157,
               "whole_job": {"iteration_time_s": 1.0655, "saving_percent": 15.5,
                             "straggling": true},
               "pipelines": {"1": {"iteration_time_s": 0.8879, "saving_percent": 11.15}}},
      "stragglers": [{"straggler_id": 1, "pipeline": 1, "factor": 1.2345678901234567,
                      "starts_at": 1795307429.9, "expires_at": 1795311029.9}]})");
}

TEST(JobClientTextTest, WhatHoldsUnderConditionsIsToldFromWhatHoldsWithout) {
  auto job = StragglingJob();
  job["frontier"] = {{"fastest_s", 0.9}, {"tstar_s", 1.2}, {"baseline_s", 1.0}};
  job["world_size"] = 4;
  job["data_parallel"] = 1;
  job["pipeline_parallel"] = 4;
  job["tensor_parallel"] = 1;
  const std::string paper = JobText(job, Style{}, 0);
  EXPECT_THAT(paper, Mentions("1", "4"));
  EXPECT_THAT(paper, Not(Mentions("conditions")));
  job["settings"] = {{"conditions", {{"noise", "1%"}}}};
  const std::string under = JobText(job, Style{}, 0);
  EXPECT_THAT(under, Mentions("1.0655"));
  EXPECT_THAT(under, Mentions("without"));
  // Of a job that is finished there may be no plan's time.
  job["plan"] = {{"version", 4}, {"reason", "finished"}};
  EXPECT_THAT(JobText(job, Style{}, 0), Not(HasSubstr(", under the job's conditions")));
}

TEST(JobClientTextTest, ADelayOfManyIterationsIsProbablyOfAnotherUnit) {
  const nlohmann::ordered_json job = {{"frontier", {{"baseline_s", 1.55}}}};
  EXPECT_EQ(LongDelayText(400, job),
            "A delay of 400 s is 258 iterations of 1.5500 s; did you mean 400ms?\n");
  EXPECT_EQ(LongDelayText(2000, job), "A delay of 2000 s is 1290 iterations of 1.5500 s.\n");
  EXPECT_EQ(LongDelayText(0.4, job), "");
  EXPECT_EQ(LongDelayText(15, job), "");
  EXPECT_EQ(LongDelayText(400, {{"frontier", nullptr}}), "");
}

TEST(JobClientTextTest, AKnownKeySaysSo) {
  EXPECT_THAT(KnownJobText({{"state", "running"}, {"id", "j-1"}}), Mentions("before."));
}

// Not what the pipelines do that wait for it.
TEST(JobClientTextTest, TheHeadlineIsTheWholeJobs) {
  const Style plain;
  const std::string text = JobText(StragglingJob(), plain, 1795307430);
  EXPECT_THAT(text, Mentions("1.0655", "straggler"));
  EXPECT_THAT(text, Mentions("15.50"));
  EXPECT_THAT(text, Mentions("pipeline", "1", "1.0588"));
  EXPECT_THAT(text, Mentions("1.0588"));
  EXPECT_THAT(text, Not(HasSubstr("23.3")));
  const std::string table = JobTable(nlohmann::ordered_json::array({StragglingJob()}), plain);
  EXPECT_THAT(table, Mentions("1.0655"));
  EXPECT_THAT(table, Not(Mentions("1.0588")));
}

TEST(JobClientTextTest, ASavingThatCannotBeBelievedIsNotShown) {
  nlohmann::ordered_json job = StragglingJob();
  for (const auto& [severity, shown] : {std::pair("odd", true), {"implausible", false}}) {
    job["notes"] = {{{"severity", severity}, {"text", "a GPU draws 0.59 W"}}};
    job["believable"] = shown;
    const nlohmann::ordered_json savings = {
        {"kind", "predicted"}, {"predicted", {{"believable", shown}, {"saving_percent", 15.5}}}};
    const std::string text = JobText(job, Style{}, 1795307430);
    EXPECT_THAT(text, Mentions("0.59", shown ? "note" : "WARNING"));
    for (const std::string& door : {text, JobTable(nlohmann::ordered_json::array({job}), Style{}),
                                    EventLine("job", {{"id", "j-1"}}, job), SavingsText(savings)}) {
      EXPECT_EQ(door.find("15.50") != std::string::npos, shown) << door;
    }
  }
}

TEST(JobClientTextTest, AFirstPlanIsSaidToBeOne) {
  const Style plain;
  nlohmann::ordered_json job = StragglingJob();
  for (const bool refined : {false, true}) {
    job["refined"] = refined;
    job["progress"] = refined ? 1 : 0.45;
    const std::string table = JobTable(nlohmann::ordered_json::array({job}), plain);
    EXPECT_EQ(table.find("3 (first)") == std::string::npos, refined) << table;
    const std::string text = JobText(job, plain, 1795307430);
    EXPECT_EQ(text.find("a first plan; better ones are still being searched for (45 %)\n") ==
                  std::string::npos,
              refined)
        << text;
  }
  job["refined"] = false;
  job["state"] = "finished";
  EXPECT_THAT(JobText(job, plain, 1795307430), Not(HasSubstr("a first plan")));
  job.erase("refined");  // Of a server that does not say.
  job["state"] = "running";
  EXPECT_THAT(JobText(job, plain, 1795307430), Not(HasSubstr("a first plan")));
}

TEST(JobClientTextTest, AStragglerSaysWhenItIsOne) {
  const Style plain;
  EXPECT_THAT(JobText(StragglingJob(), plain, 1795307430),
              Mentions("1", "pipeline", "1.235", "2026-11-22", "01:30:29", "UTC"));
  EXPECT_THAT(JobText(StragglingJob(), plain, 1795307400),
              Mentions("2026-11-22", "00:30:29", "UTC", "01:30:29"));
}

TEST(JobClientTextTest, EventsAreLines) {
  const nlohmann::ordered_json plan = {{"job", "j-1"}, {"version", 3}, {"reason", "straggler"}};
  EXPECT_EQ(
      EventLine("plan", plan, StragglingJob()),
      "plan       j-1 llama: running, plan 3 (straggler), iteration 1.0655 s, saving 15.50 %, "
      "1 slow pipeline\n");
  EXPECT_EQ(EventLine("detection", {{"job", "j-1"}, {"sentence", "Rank 3 is slow."}}, {}),
            "detection  j-1: Rank 3 is slow.\n");
  EXPECT_EQ(EventLine("job", {{"job", "j-1"}, {"deleted", true}}, {}), "job        j-1: deleted\n");
  EXPECT_EQ(EventLine("job", {{"job", "j-1"}, {"labels", {{"team", "vision"}}}}, {}),
            "job        j-1: labels team=vision\n");
  EXPECT_EQ(EventLine("job", {{"job", "j-1"}, {"labels", nlohmann::ordered_json::object()}}, {}),
            "job        j-1: has no labels\n");
  EXPECT_EQ(EventLine("state", {{"job", "j-1"}, {"labels", {{"team", "vision"}}}}, {}),
            "state      j-1\n");
}

// A watcher shows that it works while nothing happens.
TEST(JobClientTextTest, WhatComesNextIsSaid) {
  nlohmann::ordered_json job = StragglingJob();
  job["ranks_registered"] = 1;
  job["ranks_measured"] = 2;
  job["world_size"] = 4;
  const auto line = [&](const char* state) {
    job["state"] = state;
    return AwaitedLine(job);
  };
  EXPECT_EQ(line("registering"),
            "next       j-1 llama: waits for its ranks to register (1 of 4 have)\n");
  EXPECT_THAT(line("profiling"), Mentions("measure", "2", "4"));
  EXPECT_THAT(line("characterizing"), Mentions("first", "plan,"));
  EXPECT_THAT(line("failed"), Mentions("somebody"));
  job["refined"] = false;
  EXPECT_THAT(line("running"), Mentions("trains;", "better"));
  job["refined"] = true;
  EXPECT_THAT(line("running"), AllOf(Mentions("trains;"), Not(HasSubstr("better"))));
  job["ended"] = true;
  EXPECT_THAT(line("running"), Mentions("ended;"));
  EXPECT_THAT(line("finished"), Mentions("nothing:"));
  // An older server says less.
  EXPECT_EQ(AwaitedLine({{"id", "j-1"}, {"state", "registering"}}),
            "next       j-1: waits for its ranks to register\n");
  ExpectHarmless(AwaitedLine(HostileJob()));
}

TEST(JobClientTextTest, JsonStaysTheSameJson) {
  EXPECT_EQ(JsonText(R"({"b":1.5,"a":[1,null]})"), R"({"b":1.5,"a":[1,null]})");
  EXPECT_EQ(nlohmann::json::parse(JsonText(HostileJob().dump())),
            nlohmann::json::parse(HostileJob().dump()));
}

TEST(JobClientTextTest, ASavingThatMayBeWrongSaysSo) {
  const auto text_with = [](const char* settling, bool agrees) {
    const nlohmann::ordered_json estimate = {{"mean", 9.0}, {"least", 8.5}, {"most", 9.5}};
    return SavingsText(
        {{"kind", "measured"},
         {"predicted", {{"plan_version", 3}, {"saving_percent", 12.0}, {"time_percent", 0.1}}},
         {"comparison", {{"every", 100}, {"iterations", 10}}},
         {"measured", nlohmann::ordered_json::array({{{"plan_version", 3},
                                                      {"pairs", 9},
                                                      {"saving_percent", estimate},
                                                      {"time_percent", estimate},
                                                      {"settling", settling},
                                                      {"agrees", agrees}}})}});
  };
  EXPECT_THAT(text_with("over", true), Not(HasSubstr("--every")));
  EXPECT_THAT(text_with("over", true), Not(HasSubstr("DISAGREES")));
  EXPECT_THAT(text_with("goes_on", true), Mentions("biased", "8", "twice"));
  EXPECT_THAT(text_with("unknown", true), Mentions("--every", "400", "--iterations", "40"));
  EXPECT_THAT(text_with("over", false), Mentions("DISAGREES", "savings.md"));
}

// Phases of a comparison run at default clocks, so it is that saving which they measure.
TEST(JobClientTextTest, TheBaselineOfAComparisonIsSaid) {
  nlohmann::ordered_json savings = {
      {"kind", "measured"},
      {"baseline", "default_clocks"},
      {"predicted", {{"plan_version", 3}, {"saving_percent", 12.0}, {"time_percent", 0.1}}},
      {"comparison", {{"every", 100}, {"iterations", 10}}},
      {"measured", nlohmann::ordered_json::array()}};
  EXPECT_THAT(SavingsText(savings),
              AllOf(Mentions("12.00", "100", "10"),
                    HasSubstr("iterations at default clocks are not measured")));
  savings["predicted"]["default_clocks"] = {{"iteration_time_s", 1.5},
                                            {"energy_j", 2000},
                                            {"slowdown_percent", 4.2},
                                            {"saving_percent", 21.5}};
  const std::string text = SavingsText(savings);
  EXPECT_THAT(text, Mentions("12.00", "21.50", "+4.20"));
  EXPECT_THAT(text, Not(HasSubstr("not measured")));
  savings["predicted"]["default_clocks"]["saving_percent"] = "a lot";
  EXPECT_THAT(SavingsText(savings), HasSubstr("not measured"));
}

TEST(JobClientTextTest, TheSavingAgainstNoClockSetStandsBesideTheOther) {
  nlohmann::ordered_json job = StragglingJob();
  job["plan"]["default_clocks"] = {{"iteration_time_s", 1.5},
                                   {"energy_j", 2000},
                                   {"slowdown_percent", -4.2},
                                   {"saving_percent", 21.5}};
  // It is without stragglers.
  EXPECT_THAT(JobText(job, Style{}, 1795307430), Not(HasSubstr("21.50")));
  job["plan"]["whole_job"]["straggling"] = false;
  EXPECT_THAT(JobText(job, Style{}, 1795307430),
              AllOf(Mentions("default", "21.50"), HasSubstr("4.20 % less time")));
  job["plan"].erase("default_clocks");
  EXPECT_THAT(JobText(job, Style{}, 1795307430), Not(HasSubstr("at default clocks")));
}

}  // namespace
}  // namespace perseus::cli
