// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/report.h"

#include <gtest/gtest.h>

#include <string>

#include "report/markup.h"

namespace perseus::sosp24 {
namespace {

using report::Count;
using report::Markup;
using report::UnbalancedTag;

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Sosp24Evaluation MakeEvaluation() {
  Sosp24Evaluation evaluation;
  Sosp24Emulation cell;
  cell.model = "model-a";
  cell.device = "gpu_b";
  cell.microbatches = 12;
  cell.gpus = 8192;
  cell.published_seconds = 2.8;
  cell.published_baseline_joules = 1000;
  cell.published_saving_percent = 15.2016041;
  cell.max_clock_seconds = 2.9;
  cell.fastest_seconds = 2.75;
  cell.at_published = Plan();
  cell.at_published_saving_percent = 15.1;
  cell.bound_at_published_saving_percent = 15.25;
  cell.at_max_clock_saving_percent = 16;
  cell.bound_saving_percent = 16.05;
  cell.envpipe_published_joules = 900;
  cell.envpipe_joules = 905;
  evaluation.emulations.push_back(cell);
  cell.microbatches = 24;
  cell.at_published.reset();
  cell.fastest_seconds = 2.85;
  cell.envpipe_published_joules = 0;
  evaluation.emulations.push_back(cell);

  for (const double slowdown : {1.05, 1.07, 1.2}) {
    Sosp24Straggler row;
    row.model = "model-a";
    row.device = "gpu_b";
    row.microbatches = 12;
    row.slowdown = slowdown;
    row.published_pipeline_percent = 28.0674121;
    row.published_job_percent = 27.012699;
    row.effective_job_percent = 27.5;
    row.rules_are_brute_force_best = slowdown != 1.07;
    row.ours_job_percent = 28.5;
    row.bound_job_percent = 28.54;
    row.envpipe_artifact_job_percent = 11.977369;
    row.envpipe_job_percent = 12.34;
    if (slowdown == 1.2) {
      row.ours_max_clock_job_percent = 28.61;
      row.bound_max_clock_job_percent = 28.71;
    }
    evaluation.stragglers.push_back(row);
  }
  Sosp24Job job;
  job.gpu = "A1";
  job.model = "bert";
  job.layout = "dp1+pp4+tp1";
  job.microbatch_size = 8;
  job.microbatches = 32;
  job.baseline = {1, 100};
  job.perseus = {{1.2, 80}, {1.1, 84}, {1.01, 88}};
  job.perseus_saving_percent = 12;
  job.perseus_slowdown_percent = 1;
  job.has_derived = true;
  job.derived_baseline_seconds = 0.95;
  job.derived_baseline_joules = 99;
  job.ours.saving_percent = 13.5;
  job.ours_bound_percent = 14;
  job.ours_frontier = {{0.95, 86}, {1.2, 79}};
  job.replay_error_percent = {-4, -1, -2};
  job.replay_energy_error_percent = {-0.5, 1.5, 0.25};
  job.replay_saving_percent = 12.25;
  job.replay_slowdown_percent = 0.75;
  job.summarised = true;
  evaluation.jobs.push_back(job);
  evaluation.job_stragglers.push_back({"A1", "bert", 1.05, 14.7, {}, 15.2});
  evaluation.missing = {"Nothing of <job> 7 is there."};
  return evaluation;
}

TEST(EvaluationReportTest, ShowsPublishedFiguresToThePrintedDigits) {
  const std::string markdown = FormatEvaluationMarkdown(MakeEvaluation(), "perseus-sosp24 x");
  EXPECT_TRUE(Has(markdown, "\n    perseus-sosp24 x\n"));
  EXPECT_TRUE(Has(markdown,
                  "| model-a | gpu_b | 12 | 8192 | 2.8000 | 2.7500 | 15.201604 | 15.10 | 15.25 | "
                  "\u22120.10 |"));
  EXPECT_TRUE(Has(markdown, "| 28.067412 | 27.012699 |"));
  EXPECT_TRUE(Has(markdown, "| 11.977369 | 12.34 | 28.50 |"));
}

TEST(EvaluationReportTest, SaysWherePlansCannotRealiseT) {
  EXPECT_TRUE(Has(FormatEvaluationMarkdown(MakeEvaluation(), "x"),
                  "| 2.8500 | 15.201604 | T is below T_min | \u2013 | \u2013 |"));
}

TEST(EvaluationReportTest, ComparesEnvPipeWhereItIsPublished) {
  const std::string markdown = FormatEvaluationMarkdown(MakeEvaluation(), "x");
  EXPECT_TRUE(Has(markdown, "| 900 | 905 | 10.00 | 9.50 | \u22120.50 |"));
  EXPECT_EQ(Count(markdown, "| 900 | 905 |"), 1);
}

TEST(EvaluationReportTest, ShowsNoFiguresOfAPolicyWithoutAPlan) {
  Sosp24Evaluation evaluation = MakeEvaluation();
  evaluation.emulations[0].envpipe_joules = 0;
  EXPECT_TRUE(Has(FormatEvaluationMarkdown(evaluation, "x"),
                  "| \u2013 | 900 | \u2013 | 10.00 | \u2013 | \u2013 |"));
}

TEST(EvaluationReportTest, SaysHowOursStandsInAllSituations) {
  Sosp24Evaluation evaluation = MakeEvaluation();
  const std::string better = FormatEvaluationMarkdown(evaluation, "x");
  EXPECT_TRUE(Has(better,
                  "at most 0.04 points below the bound in all 3 situations, and below the "
                  "published saving in 0."));
  EXPECT_TRUE(Has(better, "ours is at most 0.10 points below it."));
  EXPECT_FALSE(Has(better, "rounded down: no plan realises it"));
  // One published saving that no plan realises, one that ours misses.
  evaluation.stragglers[0].published_job_percent = 28.6;
  evaluation.stragglers[1].published_job_percent = 28.53;
  EXPECT_TRUE(Has(FormatEvaluationMarkdown(evaluation, "x"),
                  "below the published saving in 2: in 1 of these the published saving is above "
                  "the bound, in the others ours is 0.03 points less at most."));
}

TEST(EvaluationReportTest, ShowsAFewSlowdownsInTables) {
  const std::string markdown = FormatEvaluationMarkdown(MakeEvaluation(), "x");
  EXPECT_TRUE(Has(markdown, "| 12 | 1.05 | 27.01 | 27.50 | 28.50 | 28.54 | +1.49 | 12.34 |"));
  EXPECT_FALSE(Has(markdown, "| 1.07 |"));
  EXPECT_TRUE(Has(markdown, "In 2 of 3 situations"));
  EXPECT_TRUE(Has(markdown, "| 28.61 | 28.71 |"));
}

TEST(EvaluationReportTest, TellsMeasuredFromPredicted) {
  const std::string markdown = FormatEvaluationMarkdown(MakeEvaluation(), "x");
  EXPECT_TRUE(Has(markdown,
                  "| A1 | bert | dp1+pp4+tp1 | 32 | 12.00 | 1.00 | \u2013 | \u2013 | "
                  "13.50 | 14.00 | +1.50 | 12.25 | 0.75 | +1.25 |"));
  EXPECT_TRUE(Has(markdown, "| A1 | bert | 1.05 | 14.70 | \u2013 | 15.20 | +0.50 |"));
  EXPECT_TRUE(Has(markdown, "| A1 | bert | 3 | \u22122.00 | \u22124.00 | +0.25 | +1.50 |"));
  EXPECT_TRUE(Has(markdown, "From a summary of the measurements, not from raw runs: bert on A1."));
  EXPECT_TRUE(
      Has(markdown, "| Perseus, measured | middle | 1.1000 | 84.0 | +10.00 | \u221216.00 |"));
  EXPECT_TRUE(Has(markdown, "| ours, predicted | fastest | 0.9500 | 86.0 | 0.00 | \u221213.13 |"));
  EXPECT_TRUE(Has(markdown, "- Nothing of &lt;job&gt; 7 is there."));
}

TEST(EvaluationReportTest, ReportsRunTimesOnlyWhereMeasured) {
  Sosp24Evaluation evaluation = MakeEvaluation();
  EXPECT_FALSE(Has(FormatEvaluationMarkdown(evaluation, "x"), "Run time of the planner"));
  evaluation.emulations[1].frontier_cpu_seconds = 1.25;
  evaluation.emulations[1].breakpoints = 4321;
  EXPECT_TRUE(Has(FormatEvaluationMarkdown(evaluation, "x"),
                  "| model-a | gpu_b | 24 | 0 | 4321 | 1.25 | \u2013 |"));
}

TEST(EvaluationReportTest, HtmlHasPlotsAndMoreDigits) {
  const std::string html = FormatEvaluationHtml(MakeEvaluation(), "perseus <evaluate>");
  EXPECT_EQ(UnbalancedTag(Markup(html)), "");
  EXPECT_TRUE(Has(html, "title=\"15.100000 %\""));
  EXPECT_TRUE(Has(html, "perseus &lt;evaluate&gt;"));
  EXPECT_EQ(Count(html, "<svg class=\"plot\""), 3);
  EXPECT_EQ(html, FormatEvaluationHtml(MakeEvaluation(), "perseus <evaluate>"));
  EXPECT_EQ(html.find("nan"), std::string::npos);
}

TEST(EvaluationReportTest, OfNothingIsAnIntroduction) {
  const std::string markdown = FormatEvaluationMarkdown({}, "x");
  EXPECT_FALSE(Has(markdown, "## "));
  EXPECT_EQ(UnbalancedTag(Markup(FormatEvaluationHtml({}, "x"))), "");
}

}  // namespace
}  // namespace perseus::sosp24
