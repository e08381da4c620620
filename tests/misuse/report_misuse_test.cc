// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "misuse/misuse_testing.h"
#include "perseus/emulator.h"
#include "perseus/policy.h"
#include "perseus/report.h"

namespace perseus::misuse {
namespace {

using Format = std::function<Result<std::string>(const ReportInput&)>;

const std::vector<Format>& Formats() {
  static const auto* const kFormats =
      new std::vector<Format>{FormatPlanSummaryJson, FormatHtmlReport, FormatTimelineTrace};
  return *kFormats;
}

TEST(ReportMisuse, AReportOfAJobTakesThreeLines) {
  const Job job = SmallJob();
  const auto made = job.Plan();
  const auto html = FormatHtmlReport(ReportOf(job, *made));
  ASSERT_TRUE(html) << html.error().message;
  EXPECT_NE(html->find("<html"), std::string::npos);
  for (const Format& format : Formats()) EXPECT_TRUE(format(ReportOf(job, *made)));
  EXPECT_TRUE(FormatFrontierJson(ReportOf(job, *made)));
}

TEST(ReportMisuse, AReportUnderConditionsIsWhole) {
  JobFile settings = SmallSettings();
  settings.noise = 0.02;
  settings.max_slowdown = 0.02;
  const auto job = Job::Make(SmallProfile(), settings);
  const auto made = job->Plan();
  ASSERT_TRUE(made) << made.error().message;
  for (const Format& format : Formats()) EXPECT_TRUE(format(ReportOf(*job, *made)));
}

TEST(ReportMisuse, WhatIsMissingIsNamed) {
  for (const Format& format : Formats()) EXPECT_EQ(FieldOf(format({})), "profile");
  EXPECT_EQ(FieldOf(FormatFrontierJson({})), "profile");
  const Job job = SmallJob();
  const auto made = job.Plan();
  const ReportInput good = ReportOf(job, *made);
  ReportInput input = good;
  input.chosen = nullptr;
  for (const Format& format : Formats()) EXPECT_EQ(FieldOf(format(input)), "chosen");
  EXPECT_TRUE(FormatFrontierJson(input));
  input = good;
  input.baseline = nullptr;
  for (const Format& format : Formats()) EXPECT_EQ(FieldOf(format(input)), "baseline");
  input = good;
  input.conditions = Conditions();
  for (const Format& format : Formats()) EXPECT_EQ(FieldOf(format(input)), "paper_plan");
}

TEST(ReportMisuse, AnotherJobsPlanIsRefused) {
  const Job job = SmallJob();
  const auto made = job.Plan();
  for (const Job& other : {SmallJob(1, 6), SmallJob(1.5)}) {
    const auto theirs = other.Plan();
    ReportInput input = ReportOf(job, *made);
    input.chosen = &theirs->plan;
    for (const Format& format : Formats()) EXPECT_EQ(FieldOf(format(input)), "chosen");
  }
}

TEST(ReportMisuse, AnEmulationsReportIsChecked) {
  EXPECT_EQ(FieldOf(FormatEmulationHtml({})), "profile");
  EXPECT_EQ(FieldOf(FormatEmulationJson({})), "profile");
  EXPECT_EQ(FieldOf(FormatEmulationTimelineTrace({})), "profile");
  const Job job = SmallJob();
  const auto planner = job.MakePlanner();
  EmulationSpec spec;
  spec.iterations = 3;
  spec.target_seconds = planner->baseline().iteration_time_seconds;
  const auto policy = MakeSinglePlanPolicy("max-clocks", planner->baseline());
  const auto emulation = Emulate(*planner, *policy, spec);
  ASSERT_TRUE(emulation) << emulation.error().message;
  EmulationReportInput input;
  input.profile = &job.profile;
  input.pipeline = &planner->pipeline();
  input.spec = &spec;
  input.emulation = &*emulation;
  input.baseline = &*emulation;
  EXPECT_TRUE(FormatEmulationHtml(input));
  EXPECT_TRUE(FormatEmulationTimelineTrace(input));
  // Of a pipeline with more computations.
  const auto others = SmallJob(1, 12).MakePlanner();
  const auto their_policy = MakeSinglePlanPolicy("max-clocks", others->baseline());
  const auto larger = Emulate(*others, *their_policy, spec);
  ASSERT_TRUE(larger) << larger.error().message;
  input.emulation = &*larger;
  EXPECT_TRUE(IsInvalid(FormatEmulationTimelineTrace(input)));
  EXPECT_TRUE(IsInvalid(FormatEmulationHtml(input)));
}

}  // namespace
}  // namespace perseus::misuse
