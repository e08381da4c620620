// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "markup.h"
#include "perseus/report.h"
#include "report/text.h"
#include "report_fixture.h"

namespace perseus::report {
namespace {

using Json = nlohmann::json;

TEST(HtmlReportTest, HasEverySection) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  const std::string markup = Markup(*FormatHtmlReport(sample.Input()));
  EXPECT_EQ(UnbalancedTag(markup), "");
  EXPECT_TRUE(markup.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
  for (const char* part :
       {"<h1>Sample</h1>", "1f1b, 4 ranks, 4 stages, 8 microbatches", "id=\"frontier\"",
        "<canvas id=\"before\"", "<canvas id=\"after\"", "all-maximum clocks", "Certificate",
        "T<sub>economic</sub>", "sample.csv", "84 W per GPU", "modelled, not measured",
        "Planned, not measured", "none: every computation has its own clock"}) {
    EXPECT_NE(markup.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(markup.find("folder/"), std::string::npos);
  EXPECT_EQ(Count(markup, "<tr class=\"chosen\">"), 1);
  EXPECT_EQ(Count(markup, "<th scope=\"row\" class=\"text\">"),
            1 + static_cast<int>(sample.rows.size()) + 4 + 1);  // Both tables.
  EXPECT_EQ(Count(markup, SavingPercent(sample.chosen.saving_percent, 2)), 4)
      << "key figure, plot's label and point, table";
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
    // The name of SVG's namespace is not a request.
    EXPECT_EQ(html.substr(found->position(), 26), "http://www.w3.org/2000/svg");
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
  EXPECT_EQ(Count(html, "<script"), 2);
  EXPECT_EQ(Count(html, "</script>"), 2);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
  const Json data = Json::parse(EmbeddedJson(html));
  EXPECT_EQ(data.at("knobs").at(0).at("label"),
            "1410</script><script>alert(1)</script><!--\"'&\ufffd");
}

// Whoever opens the file alone must learn that nobody measured this.
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
  EXPECT_EQ(Count(markup, "<div class=\"scroll\" tabindex=\"0\">\n<svg"), 1);
}

TEST(HtmlReportTest, EmbedsThePlans) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  const Json data = Json::parse(EmbeddedJson(*FormatHtmlReport(sample.Input())));
  EXPECT_EQ(data.at("kind").size(), 64u);
  EXPECT_EQ(data.at("rankFirst"), (Json{0, 16, 32, 48, 64}));
  for (int p = 0; p < 2; ++p) {
    const Plan& plan = p == 0 ? sample.baseline : sample.chosen;
    const Json& embedded = data.at("plans").at(p);
    EXPECT_NEAR(embedded.at("time").get<double>() * 1e-9, plan.iteration_time_seconds, 1e-9);
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

TEST(HtmlReportTest, SameInputSameBytes) {
  const Sample sample = MakeSample("dualpipev", 8, 2, 16);
  EXPECT_EQ(*FormatHtmlReport(sample.Input()), *FormatHtmlReport(sample.Input()));
}

TEST(HtmlReportTest, StaysSmallForALargePipeline) {
  const std::string html = *FormatHtmlReport(MakeSample("1f1b", 16, 1, 256).Input());
  EXPECT_LT(html.size(), 2'000'000u);
  EXPECT_EQ(Json::parse(EmbeddedJson(html)).at("kind").size(), 8192u);
}

TEST(HtmlReportTest, SaysConstraintsAndTheWholeJob) {
  const Sample sample = MakeSample("1f1b", 4, 1, 8);
  ReportInput input = sample.Input();
  input.constraints.granularity = Granularity::kPhase;
  input.constraints.time_margin_fraction = 0.015;
  input.data_parallel = 8;
  const std::string markup = Markup(*FormatHtmlReport(input));
  EXPECT_NE(markup.find("one clock per phase, "
                        "planned with times longer by 1.5 %"),
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

}  // namespace
}  // namespace perseus::report
