// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>

#include "emulation_fixture.h"
#include "markup.h"
#include "perseus/emulation_report.h"

namespace perseus::report {
namespace {

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
        "Pipeline 2 (straggles)", "Policies", "What this rests on", "A note of the caller.",
        "sample.csv"}) {
    EXPECT_TRUE(Has(markup, part)) << part;
  }
  EXPECT_FALSE(Has(markup, "folder/"));
  EXPECT_FALSE(Has(html, "<script"));
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
                           "class=\"lanes\"", "against maximum clocks"}) {
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
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  EXPECT_EQ(Count(html, "</style>"), 1);
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
}

TEST(EmulationHtmlTest, SameInputSameBytes) {
  const EmulatedSample made = MakeEmulatedSample(30, 300);
  EXPECT_EQ(*FormatEmulationHtml(made.Full()), *FormatEmulationHtml(made.Full()));
}

TEST(EmulationHtmlTest, AMillionValuesStaySmall) {
  const EmulatedSample made = MakeEmulatedSample(300'000, 1'000'000);
  const std::string html = *FormatEmulationHtml(made.Full());
  EXPECT_LT(html.size(), 400'000u);
  EXPECT_TRUE(Has(html, "least to greatest within a pixel"));
}

TEST(EmulationHtmlTest, DrawsOnlyAsManyPipelinesAsStaySmall) {
  EmulatedSample made = MakeEmulatedSample(9, 50);
  const EmulatedPipeline one = made.emulation.timeline.pipelines[0];
  made.emulation.timeline.pipelines.assign(1000, one);
  const std::string html = *FormatEmulationHtml(made.Bare());
  EXPECT_LT(html.size(), 400'000u);
  EXPECT_TRUE(Has(html, "960 pipelines more, too large to be drawn here"));
}

}  // namespace
}  // namespace perseus::report
