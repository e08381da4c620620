// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "emulation_fixture.h"
#include "markup.h"
#include "perseus/report.h"
#include "report/text.h"
#include "trace_reader.h"

namespace perseus::report {
namespace {

using Json = nlohmann::json;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(EmulationHtmlTest, HasEverySection) {
  const EmulatedSample made = MakeEmulatedSample(30, 300);
  const std::string html = *FormatEmulationHtml(made.Full());
  const std::string markup = Markup(html);
  EXPECT_EQ(UnbalancedTag(markup), "");
  for (const char* part :
       {"<h1>A job</h1>", "12 GPUs, 3 pipelines of 1f1b, 4 ranks, 4 stages, 8 microbatches",
        "Where the energy went", "Power of the job over time", "Iteration times", "Iteration 10",
        "Policies", "What this rests on", "A note of the caller.", "sample.csv"}) {
    EXPECT_TRUE(Has(markup, part)) << part;
  }
  EXPECT_FALSE(Has(markup, "folder/"));
  EXPECT_TRUE(Has(html, "default-src 'none'"));
}

TEST(EmulationHtmlTest, StatesTheFigures) {
  const std::string markup = Markup(*FormatEmulationHtml(MakeEmulatedSample(30, 300).Full()));
  // 30 iterations of 9,400 J, and 10 of them with 600.5 J more: 288.005 kJ.
  for (const char* part : {
           "<dd class=\"value hero saved\">20.00\u00a0%</dd>",  // Against 360.0 kJ.
           "<td>240.00</td><td>83.33\u00a0%</td>",
           "<td>100.00\u00a0%</td>",  // All of it.
       }) {
    EXPECT_TRUE(Has(markup, part)) << part;
  }
  EXPECT_EQ(Count(markup, "<tr class=\"chosen\">"), 1);
}

TEST(EmulationHtmlTest, SaysAtTheTopThatItIsModelled) {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  EXPECT_FALSE(Has(Markup(*FormatEmulationHtml(made.Full())), "class=\"warning\""));
  made.sample.pipeline.modelled = "MODELLED";
  EXPECT_TRUE(Has(Markup(*FormatEmulationHtml(made.Full())), "class=\"warning\""));
}

TEST(EmulationHtmlTest, LeavesOutWhatIsEmpty) {
  EmulatedSample made = MakeEmulatedSample(1, 10);
  made.emulation.timeline = {};
  made.emulation.power = {};
  const std::string markup = Markup(*FormatEmulationHtml(made.Bare()));
  EXPECT_EQ(UnbalancedTag(markup), "");
  EXPECT_TRUE(Has(markup, "<h1>Emulated job</h1>"));
  for (const char* part : {"Policies", "Power of the job over time", "Iteration times",
                           "One lane per rank", "against maximum clocks"}) {
    EXPECT_FALSE(Has(markup, part)) << part;
  }
}

TEST(EmulationHtmlTest, AnEmulationOfNothingIsStillAPage) {
  EmulatedSample made = MakeEmulatedSample(1, 10);
  made.emulation = {};
  const std::string markup = Markup(*FormatEmulationHtml(made.Full()));
  EXPECT_EQ(UnbalancedTag(markup), "");
  EXPECT_FALSE(Has(markup, "nan"));
  EXPECT_FALSE(Has(markup, "inf<"));
}

TEST(EmulationHtmlTest, HostileStringsStayText) {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  const std::string hostile = "</style><script>alert(1)</script>\"'&\xff{}";
  made.sample.pipeline.knobs_are_numbers = false;
  for (Knob& knob : made.sample.pipeline.knobs) knob.label = hostile;
  made.sample.pipeline.dag.schedule_name = hostile;
  made.sample.profile.source = made.sample.profile.sha256 = hostile;
  EmulationReportInput input = made.Full();
  input.title = input.policy = input.label = hostile;
  input.remarks = {hostile};
  input.policies[0].policy = hostile;
  const std::string html = *FormatEmulationHtml(input);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(Count(html, "<script>"), 1);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(Count(html, "</style>"), 1);
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
}

TEST(EmulationHtmlTest, SameInputSameBytes) {
  const EmulatedSample made = MakeEmulatedSample(30, 300);
  EXPECT_EQ(*FormatEmulationHtml(made.Full()), *FormatEmulationHtml(made.Full()));
}

TEST(EmulationHtmlTest, AMillionValuesStaySmallAndKeepTheirPeaks) {
  EmulatedSample made = MakeEmulatedSample(300'000, 1'000'003);
  made.emulation.power.watts[777'777] = 9e6;
  made.emulation.power.watts[3] = 0;
  double mean = 0;
  for (const double watts : made.emulation.power.watts) mean += watts / 1'000'003;
  const std::string html = *FormatEmulationHtml(made.Full());
  EXPECT_LT(html.size(), 500'000u);
  const Json power = EmbeddedCharts(html).at(0);
  const DisplayUnit unit = PowerUnit(made.emulation.peak_watts);
  double low = 1e9, high = 0, next = 0, sum = 0;
  ASSERT_EQ(power.at("bands").size(), 900u);
  std::size_t k = 0;
  for (const Json& band : power.at("bands")) {
    EXPECT_EQ(band.at(0), next);
    next = band.at(1);
    low = std::min(low, band.at(2).get<double>());
    high = std::max(high, band.at(3).get<double>());
    const Json& level = power.at("series").at(0).at("runs").at(0).at(2 * k++);
    sum += level.at(1).get<double>() * (next - band.at(0).get<double>());
  }
  EXPECT_EQ(low, 0);
  EXPECT_NEAR(high * unit.factor, 9e6, 1);
  EXPECT_NEAR(sum / next * unit.factor, mean, 1e-4 * mean);
}

TEST(EmulationHtmlTest, DrawsOnlyAsManyPipelinesAsStaySmall) {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  const EmulatedPipeline one = made.emulation.timeline.pipelines[0];
  made.emulation.timeline.pipelines.assign(1000, one);
  const std::string html = *FormatEmulationHtml(made.Bare());
  EXPECT_LT(html.size(), 500'000u);
  EXPECT_TRUE(Has(html, "960 pipelines more, too large to be drawn here"));
  const Json lanes = EmbeddedCharts(html).back();
  ASSERT_EQ(lanes.at("runs").size(), 40u);
  EXPECT_EQ(lanes.at("runs").at(0).at("title").get<std::string>().substr(0, 23),
            "Pipeline 2 (straggles):");
}

TEST(EmulationJsonTest, HoldsTheJobAndItsComparisons) {
  const EmulatedSample made = MakeEmulatedSample(9, 50);
  const Json json = Json::parse(*FormatEmulationJson(made.Full()));
  EXPECT_EQ(json.at("profile").at("file"), "sample.csv");
  EXPECT_EQ(json.at("pipelines"), 3);
  EXPECT_EQ(json.at("iterations").size(), 9u);
  EXPECT_EQ(json.at("power_w").size(), 50u);
  EXPECT_EQ(json.at("energy_j"), made.emulation.energy.total_joules());
  EXPECT_EQ(json.at("saving_percent"), 0);
}

TEST(EmulationJsonTest, SaysThatTheProfileIsModelled) {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  EXPECT_FALSE(Json::parse(*FormatEmulationJson(made.Full())).at("profile").contains("modelled"));
  made.sample.pipeline.modelled = "MODELLED";
  EXPECT_EQ(Json::parse(*FormatEmulationJson(made.Full())).at("profile").at("modelled"),
            "MODELLED");
}

TEST(EmulationJsonTest, SameInputSameBytes) {
  const EmulatedSample made = MakeEmulatedSample(30, 300);
  EXPECT_EQ(*FormatEmulationJson(made.Full()), *FormatEmulationJson(made.Full()));
}

TEST(EmulationCsvTest, WritesIterations) {
  Emulation emulation;
  emulation.iterations = {{0, 1.5, 1.25, 0, {10, 1, 0, 0.1}},
                          {1.5, 0.1 + 0.2, 1.25, 2, {1e20, -0.5, 3, 1.0 / 3}}};
  EXPECT_EQ(FormatIterationsCsv(emulation),
            "iteration,start_s,time_s,target_s,straggling_pipelines,useful_j,intrinsic_bloat_j,"
            "extrinsic_bloat_j,blocking_j\n"
            "0,0,1.5,1.25,0,10,1,0,0.1\n"
            "1,1.5,0.30000000000000004,1.25,2,1e+20,-0.5,3,0.3333333333333333\n");
}

TEST(EmulationCsvTest, WritesPower) {
  Emulation emulation;
  emulation.power = {0.25, {100, 200.125}};
  EXPECT_EQ(FormatPowerCsv(emulation), "start_s,power_w\n0,100\n0.25,200.125\n");
}

TEST(EmulationCsvTest, OfNothingIsAHeader) {
  EXPECT_EQ(FormatPowerCsv({}), "start_s,power_w\n");
  EXPECT_TRUE(FormatIterationsCsv({}).ends_with(",blocking_j\n"));
}

class EmulationTraceTest : public ::testing::Test {
 protected:
  const EmulatedSample made_ = MakeEmulatedSample(9, 50);
  const Json events_ = ReadTrace(*FormatEmulationTimelineTrace(made_.Bare()));
};

TEST_F(EmulationTraceTest, APipelineIsAProcessAndARankAThread) {
  std::map<int, std::string> processes;
  std::set<int> threads;
  for (const Json& event : events_) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    }
    if (event.at("name") == "thread_name") {
      EXPECT_TRUE(threads.insert(event.at("tid").get<int>()).second);
    }
  }
  EXPECT_EQ(processes,
            (std::map<int, std::string>{{1, "pipeline 2 (straggles)"}, {2, "pipeline 0"}}));
  EXPECT_EQ(threads.size(), 8u);
}

TEST_F(EmulationTraceTest, HoldsEveryComputationAsItRan) {
  std::map<int, double> joules;
  int slices = 0;
  for (const Json& event : events_) {
    if (event.at("ph") != "X") continue;
    ++slices;
    const Json& args = event.at("args");
    joules[event.at("pid")] += args.at("energy_j").get<double>();
    const double seconds = event.at("dur").get<double>() * 1e-6;
    EXPECT_NEAR(args.at("power_w").get<double>() * seconds, args.at("energy_j").get<double>(),
                1e-4 * args.at("energy_j").get<double>());
    EXPECT_TRUE(args.at("clock").is_number());
    // Whole nanoseconds.
    const double ns = event.at("ts").get<double>() * 1e3;
    EXPECT_NEAR(ns, std::round(ns), 1e-3);
  }
  EXPECT_EQ(slices, 2 * 64);
  EXPECT_NEAR(joules[1], 1.25 * joules[2], 1e-6 * joules[1]);
  EXPECT_TRUE(std::any_of(events_.begin(), events_.end(), [](const Json& event) {
    return event.at("name") == "F3" && event.at("ph") == "X";
  }));
}

TEST_F(EmulationTraceTest, PowerIntegratesToTheEnergyUntilTheBarrier) {
  for (int pid = 1; pid <= 2; ++pid) {
    double joules = 0, last_us = 0, watts = 0;
    for (const Json& event : events_) {
      if (event.at("ph") != "C" || event.at("pid") != pid) continue;
      joules += watts * (event.at("ts").get<double>() - last_us) * 1e-6;
      last_us = event.at("ts");
      watts = event.at("args").at("W");
    }
    EXPECT_EQ(watts, 0);
    const EmulatedTimeline& timeline = made_.emulation.timeline;
    EXPECT_NEAR(last_us * 1e-6, timeline.time_seconds, 1e-9);
    double expected = 84 * 4 * timeline.time_seconds;
    for (const EmulatedComputation& ran : timeline.pipelines[pid - 1].computations) {
      expected += ran.joules - 84 * (ran.end_seconds - ran.start_seconds);
    }
    EXPECT_NEAR(joules, expected, 1e-6 * expected);
  }
}

TEST_F(EmulationTraceTest, MarksTheEnds) {
  std::map<std::string, int> markers;
  for (const Json& event : events_) {
    if (event.at("ph") == "i") ++markers[event.at("name")];
  }
  EXPECT_EQ(markers, (std::map<std::string, int>{{"iteration ends", 2}, {"pipeline ends", 2}}));
}

TEST(EmulationTraceOfNothingTest, IsEmpty) {
  EmulatedSample made = MakeEmulatedSample(1, 1);
  made.emulation.timeline = {};
  EXPECT_EQ(*FormatEmulationTimelineTrace(made.Bare()), "");
}

}  // namespace
}  // namespace perseus::report
