// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <filesystem>

#include "perseus/job.h"
#include "perseus/plan.h"
#include "perseus/report.h"

namespace perseus {
inline namespace v0 {

ReportInput ReportOf(const Job& job, const JobPlan& made) {
  ReportInput input;
  input.title = "Energy plan: " + std::filesystem::path(job.profile.source).stem().string();
  input.profile = &job.profile;
  input.pipeline = &made.planner.pipeline();
  input.frontier = &made.planner.frontier();
  input.baseline = &made.planner.baseline();
  input.chosen = &made.plan;
  input.at = PlanTargetText(job.Target());
  input.data_parallel = job.DataParallel();
  input.split_ratio = job.costs.split_ratio;
  input.constraints = made.document.constraints;
  input.notes = made.planner.pipeline().notes;
  ReportRow row = MakeReportRow("at " + input.at, made.plan);
  row.name = "chosen";
  row.chosen = true;
  input.rows.push_back(row);
  if (!made.held || !made.expected || !made.expected_of_paper_plan) return input;
  input.conditions = made.held->conditions;
  input.expected = *made.expected;
  input.expected_of_paper_plan = *made.expected_of_paper_plan;
  input.paper_plan = &made.held->paper_plan;
  input.bound_percent = made.held->bound.saving_percent;
  input.bound_is_proven = made.held->bound.proven;
  for (const ChangePricePoint& point : made.held->price_curve) {
    input.price_curve.emplace_back(point.changes, point.saving_percent);
  }
  return input;
}

}  // namespace v0
}  // namespace perseus
