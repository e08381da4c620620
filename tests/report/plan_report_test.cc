// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "markup.h"
#include "perseus/pipeline.h"
#include "perseus/report.h"
#include "perseus/schedule.h"
#include "report/text.h"
#include "report_fixture.h"
#include "trace_reader.h"

namespace perseus::report {
namespace {

using Json = nlohmann::json;

TEST(HtmlReportTest, HasEverySection) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  const std::string markup = Markup(*FormatHtmlReport(sample.Input()));
  EXPECT_EQ(UnbalancedTag(markup), "");
  EXPECT_TRUE(markup.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  for (const char* part :
       {"<h1>Sample</h1>", "1f1b, 4 ranks, 4 stages, 8 microbatches", "Energy over iteration time",
        "Timelines", "all-maximum clocks", "Optimality gap", "min energy", "sample.csv",
        "84 W per GPU", "modelled, not measured", "Planned, not measured",
        "none: every computation has its own clock"}) {
    EXPECT_NE(markup.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(markup.find("folder/"), std::string::npos);
  EXPECT_EQ(Count(markup, "<tr class=\"chosen\">"), 1);
  EXPECT_EQ(Count(markup, "<th scope=\"row\" class=\"text\">"),
            1 + static_cast<int>(sample.rows.size()) + 4 + 1);  // Both tables.
  EXPECT_EQ(Count(markup, SavingPercent(sample.chosen.saving_percent, 2)), 2)
      << "key figure, table";
}

TEST(HtmlReportTest, SaysHowFarTheBestPlanWithSharedClocksIs) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  EXPECT_EQ(FormatHtmlReport(sample.Input())->find("Best: "), std::string::npos);
  sample.chosen.shared_knobs = {.lower_bound_joules = 1, .gap_percent = 0, .proven_best = true};
  ReportInput input = sample.Input();
  input.constraints.granularity = Granularity::kStage;
  const std::string page = *FormatHtmlReport(input);
  const std::size_t best = page.find("Best: ");
  ASSERT_NE(best, std::string::npos);
  EXPECT_NE(page.substr(best, page.find('<', best) - best).find("proven"), std::string::npos);
}

TEST(HtmlReportTest, NeedsNoNetwork) {
  const std::string html = *FormatHtmlReport(MakeSample("1f1b", 4, 1, 8).Input());
  const std::regex link("(https?:)?//[a-z]");
  for (auto found = std::sregex_iterator(html.begin(), html.end(), link);
       found != std::sregex_iterator(); ++found) {
    // Names of namespaces are no requests.
    EXPECT_EQ(html.substr(static_cast<std::size_t>(found->position()), 18), "http://www.w3.org/");
  }
  EXPECT_EQ(html.find(" src="), std::string::npos);
  EXPECT_EQ(html.find("<link"), std::string::npos);
  EXPECT_EQ(html.find("@import"), std::string::npos);
  EXPECT_NE(html.find("default-src 'none'"), std::string::npos);
}

TEST(HtmlReportTest, HostileStringsStayText) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  const std::string hostile = "</script><script>alert(1)</script><!--\"'&\xff";
  sample.pipeline.dag.schedule_name = hostile;
  sample.pipeline.knobs_are_numbers = false;
  for (Knob& knob : sample.pipeline.knobs) knob.label += hostile;
  sample.profile.source = sample.profile.sha256 = hostile;
  for (ReportRow& row : sample.rows) row.label = hostile;
  ReportInput input = sample.Input();
  input.title = hostile;
  input.knob_unit = hostile;
  input.remarks = {hostile};

  const std::string html = *FormatHtmlReport(input);
  EXPECT_EQ(html.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(Count(html, "<script>") + Count(html, "<script type"), 3);
  EXPECT_EQ(Count(html, "</script>"), 3);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
  const Json data = EmbeddedCharts(html).at(1);
  EXPECT_EQ(data.at("knobs").at(0).at("label"),
            "1410</script><script>alert(1)</script><!--\"'&\ufffd");
}

// The file alone says that its profile was not measured.
TEST(HtmlReportTest, SaysAtTheTopThatItIsModelled) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  EXPECT_EQ(Markup(*FormatHtmlReport(sample.Input())).find("class=\"warning\""), std::string::npos);
  sample.pipeline.modelled = "MODELLED, not measured: <a model>";
  const std::string markup = Markup(*FormatHtmlReport(sample.Input()));
  const std::size_t warning = markup.find("class=\"warning\"");
  ASSERT_NE(warning, std::string::npos);
  EXPECT_LT(warning, markup.find("<dl class=\"figures\">"));
  EXPECT_NE(markup.find("MODELLED, not measured: &lt;a model&gt;"), std::string::npos);
}

// Red is for what is wrong.
TEST(HtmlReportTest, ASavingIsNotShownAsAnError) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  EXPECT_EQ(Count(Markup(*FormatHtmlReport(sample.Input())), "value hero saved\">"), 1);
  sample.chosen.saving_percent = -1;
  EXPECT_EQ(Count(Markup(*FormatHtmlReport(sample.Input())), "value hero lost\">"), 1);
  sample.chosen.saving_percent = 0;
  EXPECT_EQ(Count(Markup(*FormatHtmlReport(sample.Input())), "value hero\">"), 1);
}

// On a phone everything wide scrolls by itself, with the keyboard too.
TEST(HtmlReportTest, WhatIsWideScrolls) {
  const std::string markup = Markup(*FormatHtmlReport(MakeSample("1f1b", 4, 1, 8).Input()));
  EXPECT_EQ(Count(markup, "<table>"), 2);
  EXPECT_EQ(Count(markup, "<div class=\"scroll\" tabindex=\"0\"><table>"), 2);
}

TEST(HtmlReportTest, ChartsHaveTheFrontierAndThePlans) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  const std::vector<Json> charts = EmbeddedCharts(*FormatHtmlReport(sample.Input()));
  ASSERT_EQ(charts.size(), 2u);
  const Json& frontier = charts[0];
  EXPECT_EQ(frontier.at("points").size(), sample.frontier.points.size() + 1);  // And an edge.
  EXPECT_EQ(frontier.at("marks").size(), sample.rows.size() + 1);              // The baseline.
  EXPECT_EQ(frontier.at("marks").back().at("kind"), "chosen");
  EXPECT_EQ(frontier.at("baseline").at("energy"), sample.baseline.energy_joules);

  const Json& data = charts[1];
  EXPECT_EQ(data.at("kindOf").size(), 64u);
  EXPECT_EQ(data.at("rankFirst"), (Json{0, 16, 32, 48, 64}));
  for (int p = 0; p < 2; ++p) {
    const Plan& plan = p == 0 ? sample.baseline : sample.chosen;
    const Json& embedded = data.at("runs").at(p);
    EXPECT_NEAR(embedded.at("time").get<double>() * 1e-9, plan.iteration_time_seconds, 1e-9);
    EXPECT_EQ(embedded.at("waiting"), (Json{84.0, 84.0, 84.0, 84.0}));
    double busy_joules = 0;
    std::size_t k = 0;
    for (const std::vector<int>& order : sample.pipeline.dag.rank_order) {
      for (const int i : order) {
        const Json& option = data.at("options").at(embedded.at("option").at(k).get<int>());
        EXPECT_EQ(option.at(0), plan.options[i].knob);
        EXPECT_NEAR(embedded.at("duration").at(k).get<double>() * 1e-9,
                    plan.options[i].time_seconds, 1e-9);
        busy_joules +=
            option.at(1).get<double>() - 84 * embedded.at("duration").at(k).get<double>() * 1e-9;
        ++k;
      }
    }
    EXPECT_NEAR(busy_joules + 84 * 4 * plan.iteration_time_seconds, plan.energy_joules,
                1e-5 * plan.energy_joules);
  }
}

TEST(HtmlReportTest, ManyBreakpointsAreThinnedToWhatAnEyeCanSee) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  std::vector<FrontierPoint> points;
  const FrontierPoint from = sample.frontier.points.front();
  for (int k = 0; k <= 20000; ++k) {
    points.push_back(
        {from.iteration_time_seconds * (1 + k * 1.5e-5), from.energy_joules * (1 - k * 1e-5), 100});
  }
  sample.frontier.points = points;
  const Json chart = EmbeddedCharts(*FormatHtmlReport(sample.Input())).at(0);
  EXPECT_LT(chart.at("points").size(), 8000u);
  EXPECT_GT(chart.at("points").size(), 500u);
}

// The lines of the table of stages add up to the plan's saving.
TEST(HtmlReportTest, StagesAddUpToTheSavingOfThePlan) {
  for (const char* schedule :
       {"1f1b", "early-recomputation-1f1b", "zbv-zero-bubble", "dualpipev"}) {
    const Sample sample =
        MakeSample(schedule, 8, std::string_view(schedule).ends_with("1f1b") ? 1 : 2, 16);
    const std::string html = *FormatHtmlReport(sample.Input());
    const std::string rows = html.substr(html.find("Where the savings come from"));
    const std::regex saved("<td>(-?[0-9.]+)</td><td>-?[0-9.]+\u00a0%</td><td class=.drawing");
    double sum = 0;
    for (auto found = std::sregex_iterator(rows.begin(), rows.end(), saved);
         found != std::sregex_iterator(); ++found) {
      sum += std::stod((*found)[1]);
    }
    std::smatch all;
    ASSERT_TRUE(std::regex_search(rows, all, std::regex("<td>([0-9.]+)</td><td>100.0\u00a0%")));
    const double total = std::stod(all[1]);
    EXPECT_NEAR(sum, total, 1e-3 * std::abs(total)) << schedule;
  }
}

TEST(HtmlReportTest, SameInputSameBytes) {
  const Sample sample = MakeSample("dualpipev", 8, 2, 16);
  EXPECT_EQ(*FormatHtmlReport(sample.Input()), *FormatHtmlReport(sample.Input()));
}

TEST(HtmlReportTest, StaysSmallForALargePipeline) {
  const std::string html = *FormatHtmlReport(MakeSample("1f1b", 16, 1, 256).Input());
  EXPECT_LT(html.size(), 2'000'000u);
  EXPECT_EQ(EmbeddedCharts(html).at(1).at("kindOf").size(), 8192u);
}

TEST(HtmlReportTest, SaysConstraintsAndTheWholeJob) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  ReportInput input = sample.Input();
  input.constraints.granularity = Granularity::kPhase;
  input.constraints.time_margin_fraction = 0.015;
  input.data_parallel = 8;
  const std::string markup = Markup(*FormatHtmlReport(input));
  EXPECT_NE(markup.find("one clock per phase, planned with times longer by 1.5 %"),
            std::string::npos);
  EXPECT_NE(markup.find("8 pipelines: the whole job saves "), std::string::npos);
}

TEST(HtmlReportTest, APlanThatIsInNoRowGetsItsOwn) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  for (ReportRow& row : sample.rows) row.chosen = false;
  const std::string markup = Markup(*FormatHtmlReport(sample.Input()));
  EXPECT_NE(markup.find("<tr class=\"chosen\"><th scope=\"row\" class=\"text\">this plan</th>"),
            std::string::npos);
}

TEST(PlanJsonTest, HoldsThePlanAndItsTable) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  sample.rows[0].name = "no_slowdown";
  sample.rows[1].feasible = false;
  ReportInput input = sample.Input();
  input.at = "1.0x";
  input.data_parallel = 3;
  input.prices = {{"--granularity stage", 2.5, 0}};
  input.files = {"plan.json"};
  const Json json = Json::parse(*FormatPlanSummaryJson(input));
  EXPECT_EQ(json.at("schedule"), "1f1b");
  EXPECT_EQ(json.at("virtual_stages"), 1);
  EXPECT_EQ(json.at("profile").at("file"), "sample.csv");  // No path.
  EXPECT_EQ(json.at("energy_j"), sample.chosen.energy_joules);
  EXPECT_EQ(json.at("job").at("energy_j"), 3 * sample.chosen.energy_joules);
  ASSERT_EQ(json.at("points").size(), sample.rows.size());
  EXPECT_EQ(json.at("points")[0].at("name"), "no_slowdown");
  EXPECT_EQ(json.at("points")[0].at("knob_changes"), sample.chosen.knob_changes);
  EXPECT_EQ(json.at("points")[1].at("feasible"), false);
  EXPECT_FALSE(json.at("points")[1].contains("energy_j"));
  EXPECT_EQ(json.at("constraints")[0].at("extra_energy_percent"), 2.5);
  EXPECT_EQ(json.at("files")[0], "plan.json");
}

TEST(PlanJsonTest, SaysHowFarTheBestPlanWithSharedClocksIs) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  EXPECT_FALSE(Json::parse(*FormatPlanSummaryJson(sample.Input())).contains("shared_clocks"));
  sample.chosen.shared_knobs = {
      .lower_bound_joules = 12.5, .gap_percent = 0.25, .proven_best = false};
  const Json json = Json::parse(*FormatPlanSummaryJson(sample.Input()));
  EXPECT_EQ(json.at("shared_clocks"),
            (Json{{"lower_bound_j", 12.5}, {"gap_percent", 0.25}, {"proven", false}}));
}

TEST(PlanJsonTest, TheFrontierNeedsNoPlan) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  ReportInput input = sample.Input();
  input.chosen = nullptr;
  Json json = Json::parse(*FormatFrontierJson(input));
  ASSERT_EQ(json.at("frontier").size(), sample.frontier.points.size());
  EXPECT_EQ(json.at("frontier")[0].at("energy_j"), sample.frontier.points[0].energy_joules);
  EXPECT_EQ(json.at("cost_curve"), "measured");
  EXPECT_EQ(json.at("certified_error"), 0);
  sample.frontier.fitted = true;
  json = Json::parse(*FormatFrontierJson(input));
  EXPECT_TRUE(json.at("certified_error").is_null());
}

TEST(PlanJsonTest, SaysThatTheProfileIsModelled) {
  Sample sample = MakeSample("1f1b", 4, 1, 8);
  sample.pipeline.modelled = "MODELLED";
  const Json json = Json::parse(*FormatPlanSummaryJson(sample.Input()));
  EXPECT_EQ(json.at("profile").at("modelled"), "MODELLED");
}

TEST(PlanJsonTest, BytesThatAreNotUtf8AreReplaced) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  ReportInput input = sample.Input();
  input.remarks = {"\xff"};
  EXPECT_EQ(Json::parse(*FormatPlanSummaryJson(input)).at("remarks")[0], "\ufffd");
}

std::vector<Json> Events(const Json& trace, const std::string& phase, int pid) {
  std::vector<Json> found;
  for (const Json& event : trace) {
    if (event.at("ph") == phase && event.at("pid") == pid) found.push_back(event);
  }
  return found;
}

class PlanTraceTest : public ::testing::Test {
 protected:
  const Sample sample_ = MakeSample("1f1b", 4, 1, 8);
  const std::string text_ = *FormatTimelineTrace(sample_.Input());
  const Json trace_ = ReadTrace(text_);
};

TEST_F(PlanTraceTest, NamesProcessesAndThreadsWithIdsThatPerfettoKeepsApart) {
  std::set<int> all_tids;
  const std::map<int, std::string> processes = {{1, "before: all-maximum clocks"},
                                                {2, "after: plan"}};
  for (const auto& [pid, process_name] : processes) {
    std::vector<std::string> threads;
    std::string name;
    for (const Json& event : Events(trace_, "M", pid)) {
      if (event.at("name") == "process_name") name = event.at("args").at("name");
      if (event.at("name") == "thread_name") {
        threads.push_back(event.at("args").at("name"));
        EXPECT_TRUE(all_tids.insert(event.at("tid").get<int>()).second);
      }
    }
    EXPECT_EQ(name, process_name);
    EXPECT_EQ(threads, (std::vector<std::string>{"rank 0 (stage 0)", "rank 1 (stage 1)",
                                                 "rank 2 (stage 2)", "rank 3 (stage 3)"}));
    EXPECT_FALSE(all_tids.contains(pid));
  }
  EXPECT_FALSE(all_tids.contains(0));
}

TEST_F(PlanTraceTest, SlicesAreThePlansComputations) {
  for (int pid = 1; pid <= 2; ++pid) {
    const Plan& plan = pid == 1 ? sample_.baseline : sample_.chosen;
    const std::vector<Json> slices = Events(trace_, "X", pid);
    ASSERT_EQ(slices.size(), static_cast<std::size_t>(sample_.pipeline.dag.size()));
    std::size_t k = 0;
    for (const std::vector<int>& order : sample_.pipeline.dag.rank_order) {
      double previous_end = 0;
      for (const int i : order) {
        const Json& slice = slices[k++];
        const ComputationId& id = sample_.pipeline.dag.computations[i].id;
        const CostOption& option = plan.options[i];
        EXPECT_EQ(slice.at("name"),
                  std::string(1, ComputationTypeLetter(id.type)) + std::to_string(id.microbatch));
        EXPECT_EQ(slice.at("args").at("stage"), id.stage);
        EXPECT_EQ(slice.at("args").at("clock"), sample_.pipeline.knobs[option.knob].number);
        EXPECT_NEAR(slice.at("args").at("energy_j").get<double>(), option.energy_joules, 1e-6);
        EXPECT_NEAR(slice.at("dur").get<double>(), option.time_seconds * 1e6, 2e-3);
        // Nanoseconds are whole, so a rounding in doubles is all that may differ.
        EXPECT_GE(slice.at("ts").get<double>(), previous_end - 1e-6);
        previous_end = slice.at("ts").get<double>() + slice.at("dur").get<double>();
      }
    }
  }
}

TEST_F(PlanTraceTest, TotalPowerIntegratesToTheEnergyOfThePlan) {
  for (int pid = 1; pid <= 2; ++pid) {
    const Plan& plan = pid == 1 ? sample_.baseline : sample_.chosen;
    double joules = 0, watts = 0, since = 0;
    for (const Json& event : Events(trace_, "C", pid)) {
      if (event.at("name") != "pipeline power (W)") continue;
      joules += watts * (event.at("ts").get<double>() - since) * 1e-6;
      watts = event.at("args").at("W");
      since = event.at("ts");
    }
    EXPECT_NEAR(since * 1e-6, plan.iteration_time_seconds, 1e-9);
    EXPECT_EQ(watts, 0);
    EXPECT_NEAR(joules, plan.energy_joules, 1e-6 * plan.energy_joules);
  }
}

TEST_F(PlanTraceTest, EveryRankHasAClockTrack) {
  std::set<std::string> tracks;
  for (const Json& event : Events(trace_, "C", 2)) tracks.insert(event.at("name"));
  EXPECT_EQ(tracks,
            (std::set<std::string>{"pipeline power (W)", "rank 0 clock (MHz)", "rank 1 clock (MHz)",
                                   "rank 2 clock (MHz)", "rank 3 clock (MHz)"}));
}

TEST_F(PlanTraceTest, IsDeterministic) { EXPECT_EQ(*FormatTimelineTrace(sample_.Input()), text_); }

// A change of power costs no look at every rank: here these would be 10^10 additions.
TEST(PlanTraceOfManyRanksTest, PowerTakesTimeByComputation) {
  constexpr int kRanks = 50'000;
  Sample sample = MakeSample("gpipe", 1, 1, 1);
  CostedPipeline& pipeline = sample.pipeline;
  pipeline.dag = BuildDag(BuildSchedule({"gpipe", kRanks, 1, 1, std::nullopt}).value(), {}).value();
  pipeline.rank_blocking_power_watts.assign(kRanks, pipeline.rank_blocking_power_watts[0]);
  const std::vector<CostOption> of_one = sample.baseline.options;
  pipeline.table_of.clear();
  sample.baseline.options.clear();
  for (const Computation& computation : pipeline.dag.computations) {
    const int table = computation.id.type == ComputationType::kForward ? 0 : 1;
    pipeline.table_of.push_back(table);
    sample.baseline.options.push_back(of_one[static_cast<std::size_t>(table)]);
  }
  sample.chosen = sample.baseline;
  const Result<std::string> trace = FormatTimelineTrace(sample.Input());
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_GT(trace->size(), std::size_t{2} * pipeline.dag.computations.size());
}

TEST(PlanTraceLabelTest, HostileLabelsStayStrings) {
  Sample sample = MakeSample("dualpipev", 8, 2, 8);
  sample.pipeline.knobs_are_numbers = false;
  const std::string hostile = "\"},\n{\"\\ \xff";
  for (Knob& knob : sample.pipeline.knobs) knob.label = hostile;
  const Json trace = ReadTrace(*FormatTimelineTrace(sample.Input()));
  bool fused = false;
  for (const Json& slice : Events(trace, "X", 2)) {
    EXPECT_EQ(slice.at("args").at("clock"), hostile);
    fused = fused || slice.at("args").contains("fused_stage");
  }
  EXPECT_TRUE(fused);
}

}  // namespace
}  // namespace perseus::report
