// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/outputs.h"
#include "cli/framework/table.h"
#include "cli/planning/conditions_of.h"
#include "cli/planning/held_plan.h"
#include "cli/planning/job.h"
#include "cli/planning/plan_notes.h"
#include "cli/planning/plan_rows.h"
#include "cli/planning/plan_summary.h"
#include "common/file.h"
#include "job/job_fields.h"
#include "model/constraints.h"
#include "model/saving_interval.h"
#include "model/unlocked.h"
#include "perseus/effort.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/report.h"
#include "plan/named_times.h"

namespace perseus::cli {
namespace {

// Of the effort for the plan: for its second certificate.
constexpr double kBoundEffort = 0.5;

// Rows of the table besides.
constexpr int kRows = 7;

std::string FlagValue(Granularity granularity) {
  return fmt::format(" {}", GranularityName(granularity));
}
std::string FlagValue(double /*value*/) { return ""; }

// Each constraint alone, as on the command line.
std::vector<std::pair<std::string, PlanConstraints>> Separately(const PlanConstraints& all) {
  std::vector<std::pair<std::string, PlanConstraints>> single;
  std::string_view field;
  for (const model::Constraint& each : model::Constraints()) {
    if (!each.IsIn(all)) continue;
    if (each.field != field) {
      single.emplace_back(job::FindField(each.field)->flag, PlanConstraints{});
      single.back().first += each.On(all, [](const auto& value) { return FlagValue(value); });
      field = each.field;
    }
    each.Copy(all, &single.back().second);
  }
  return single;
}

ConstraintPrice PriceOf(std::string constraint, const Plan& with, const Plan& without) {
  return {std::move(constraint), PercentOver(with.energy_joules, without.energy_joules),
          PercentOver(with.iteration_time_seconds, without.iteration_time_seconds)};
}

Result<std::vector<ConstraintPrice>> PriceConstraints(const Planner& planner, double seconds,
                                                      const PlanConstraints& constraints,
                                                      double effort, const ProgressFunction& told,
                                                      const Plan& chosen) {
  std::vector<ConstraintPrice> prices;
  if (!constraints.any()) return prices;
  const Result<Plan> free = planner.PlanFor(seconds, {.effort = effort, .progress = told});
  if (!free) return tl::unexpected(free.error());
  const auto single = Separately(constraints);
  if (single.size() == 1) {
    prices.push_back(PriceOf(single.front().first, chosen, *free));
    return prices;
  }
  for (const auto& [name, one] : single) {
    const Result<Plan> plan =
        planner.PlanFor(seconds, {.constraints = one, .effort = effort, .progress = told});
    // A search that finds all together may still miss one of them alone.
    if (!plan && plan.error().code == ErrorCode::kInfeasible) continue;
    if (!plan) return tl::unexpected(plan.error());
    prices.push_back(PriceOf(name, *plan, *free));
  }
  prices.push_back(PriceOf("all together", chosen, *free));
  return prices;
}

ReportInput MakeReportInput(const Job& job, const PlanSummary& summary,
                            const PlanConstraints& constraints) {
  ReportInput input;
  input.title = "Energy plan: " + std::filesystem::path(job.profile.source).stem().string();
  input.profile = &job.profile;
  input.pipeline = summary.pipeline;
  input.frontier = summary.frontier;
  input.baseline = summary.baseline;
  input.chosen = &summary.chosen;
  bool has_held = false;
  for (const PlanPoint& point : summary.points) {
    ReportRow row;
    if (point.plan) row = MakeReportRow(point.label, *point.plan);
    row.label = point.label;
    row.name = point.name;
    row.feasible = point.plan.has_value();
    row.requested_time_seconds = point.seconds;
    const bool asked = SameTime(point.seconds, summary.chosen_seconds);
    row.chosen = asked && !summary.held;
    if (row.chosen) row.discrete_bound = summary.chosen.discrete_bound;
    input.rows.push_back(std::move(row));
    if (!asked || !summary.held || has_held) continue;
    has_held = true;
    row = MakeReportRow(std::string(kHeldRowLabel), summary.chosen);
    row.name = "holds_on_paper";
    row.chosen = true;
    input.rows.push_back(std::move(row));
  }
  input.at = summary.at;
  input.data_parallel = summary.data_parallel;
  input.split_ratio = summary.split_ratio;
  input.constraints = constraints;
  input.prices = summary.prices;
  input.notes = summary.notes;
  input.remarks = summary.remarks;
  input.files = summary.files;
  if (summary.held) {
    const HeldPlan& held = *summary.held;
    input.conditions = held.robust.conditions;
    input.expected = held.expected;
    input.expected_of_paper_plan = held.paper;
    input.paper_plan = &held.robust.paper_plan;
    input.bound_percent = held.robust.bound.saving_percent;
    input.bound_is_proven = held.robust.bound.proven;
    for (const ChangePricePoint& point : held.robust.price_curve) {
      input.price_curve.emplace_back(point.changes, point.saving_percent);
    }
  }
  return input;
}

// Writes all output files, or none.
Result<void> WriteOutputs(const Job& job, const Planner& planner, PlanSummary* summary) {
  const std::string& directory = summary->output_directory;
  Result<PlanDocument> made = job.Document(planner, summary->chosen);
  if (!made) return tl::unexpected(made.error());
  PlanDocument& document = *made;
  if (summary->held) {
    document.conditions = summary->held->robust.conditions;
    document.expected = summary->held->expected;
  }
  std::string plan_json = FormatPlanJson(document);
  if (plan_json.size() > kMaxPlanFileBytes) {
    return InvalidInput(fmt::format(
        "{} would have {} MiB, more than the {} that can be read back; shorten the names of the "
        "knobs, or use fewer microbatches",
        kPlanFileName, plan_json.size() >> 20, kMaxPlanFileBytes >> 20));
  }
  std::vector<OutputFile> files = {
      {std::string(kPlanFileName), std::move(plan_json)},
      {std::string(kFrontierFileName), FormatFrontierCsv(*summary->frontier)}};
  Result<std::string> zeus = FormatZeusPlan(document);
  if (zeus) {
    files.push_back({std::string(kZeusPlanFileName), *std::move(zeus)});
  } else if (zeus.error().code == ErrorCode::kInfeasible) {
    summary->remarks.push_back(zeus.error().message + ".");
    NoteStale(directory, kZeusPlanFileName, &summary->remarks);
  } else {
    return tl::unexpected(zeus.error());
  }
  ReportInput report = MakeReportInput(job, *summary, job.Constraints());
  if (summary->held) {
    for (std::string& each : HeldPlanNotes(*summary->held))
      report.remarks.push_back(std::move(each));
  }
  const auto add = [&files](std::string_view name, Result<std::string> bytes) -> Result<void> {
    if (!bytes) return tl::unexpected(bytes.error());
    files.push_back({std::string(name), *std::move(bytes)});
    return {};
  };
  if (auto good = add(kTraceFileName, FormatTimelineTrace(report)); !good) return good;
  if (auto good = add("report.html", FormatHtmlReport(report)); !good) return good;
  for (const OutputFile& file : files) summary->files.push_back(file.name);
  return WriteFilesAtomically(directory, files);
}

}  // namespace

Result<Printout> RunPlan(const Invocation& invocation, const Style& style) {
  Result<JobFile> settings = MergeSettings(invocation.job);
  if (!settings) return tl::unexpected(settings.error());
  if (!invocation.conditions_file.empty()) {
    const auto taken = TakeConditionsFrom(invocation.conditions_file, &*settings);
    if (!taken) return tl::unexpected(taken.error());
  }
  if (!invocation.conditions_of.empty()) {
    const auto taken = TakeConditionsOf(invocation.conditions_of, invocation.server, &*settings);
    if (!taken) return tl::unexpected(taken.error());
  }
  if (auto good = CheckPairs(*settings, false, false); !good) return tl::unexpected(good.error());
  if (settings->output) {
    const std::vector<std::string> names = {
        std::string(kPlanFileName), std::string(kFrontierFileName), std::string(kZeusPlanFileName),
        std::string(kTraceFileName), "report.html"};
    const auto good =
        CheckOutputFiles(*settings->output, names, InputsOf(invocation.job, *settings));
    if (!good) return tl::unexpected(good.error());
  }
  const Result<Job> job = LoadBelievableJob(invocation.job, *std::move(settings), "plan");
  if (!job) return tl::unexpected(job.error());
  const PlanTarget target = job->Target();
  const PlanConstraints constraints = job->Constraints();
  const double effort = job->Effort();
  ProgressLine progress("frontier");
  const Result<Planner> planner = MakePlanner(*job, effort * (1 + kRows * kTableEffort), &progress);
  if (!planner) return tl::unexpected(planner.error());

  PlanSummary summary;
  summary.profile = &job->profile;
  summary.pipeline = &planner->pipeline();
  summary.frontier = &planner->frontier();
  summary.baseline = &planner->baseline();
  summary.virtual_stages = job->virtual_stages;
  summary.data_parallel = job->DataParallel();
  summary.split_ratio = job->costs.split_ratio;
  summary.at = PlanTargetText(target);
  const Result<double> seconds = planner->TargetSeconds(target);
  if (!seconds) return tl::unexpected(seconds.error());
  summary.chosen_seconds = *seconds;
  summary.notes = job->NotesAt(planner->frontier(), *seconds);
  if (auto good = RefuseNotes(summary.notes, job->settings.strict.value_or(false)); !good) {
    return tl::unexpected(good.error());
  }
  summary.remarks = PipelineRemarks(planner->pipeline(), job->virtual_stages);
  if (job->settings.measures_conditions && !HasConditions(job->settings)) {
    summary.remarks.emplace_back(
        "[conditions] gives neither noise nor latency, so a server measures them; this plan is "
        "made for none. --conditions-of JOB|PROFILE takes what a job measured");
  }
  for (const ClockLatency& each : ConditionsOf(job->settings).switching.latency_at) {
    const std::vector<Knob>& knobs = planner->pipeline().knobs;
    const bool is_there = std::any_of(knobs.begin(), knobs.end(),
                                      [&](const Knob& knob) { return knob.number == each.clock; });
    if (is_there) continue;
    summary.remarks.push_back(
        fmt::format("the clock {:g} has a latency of its own, but the profile has no such clock: "
                    "no plan uses it",
                    each.clock));
  }
  progress.SetWhat("plan");
  summary.points = TablePoints(planner->frontier(), planner->baseline().iteration_time_seconds,
                               *seconds, summary.at, &summary.beyond_tstar);
  const RowEfforts efforts = {.chosen = effort,
                              .row = kTableEffort * effort,
                              .bound = HasConditions(job->settings) ? 0 : kBoundEffort * effort};
  const auto begun = [&progress](int row, int rows) {
    progress.Announce(fmt::format("plan {} of {}", row + 1, rows + 1));
  };
  const RowsProgress rows_progress = {
      .chosen = [&progress](double share) { progress.Report(share); },
      .bound = [&progress] { progress.Announce("certificate"); },
      .row = begun,
      .rest = [&progress] { progress.Announce("last plans"); }};
  Result<Plan> chosen =
      PlanRows(*planner, constraints, efforts, UsualThreads(), *seconds, rows_progress,
               &summary.points, target.kind == PlanTarget::Kind::kEconomic);
  if (!chosen) return tl::unexpected(chosen.error());
  summary.chosen = *std::move(chosen);
  summary.chosen_seconds = summary.chosen.requested_time_seconds;
  const ProgressFunction told = progress.Function();
  if (constraints.any()) progress.Announce("price of the constraints");
  auto prices = PriceConstraints(*planner, *seconds, constraints, effort, told, summary.chosen);
  if (!prices) return tl::unexpected(prices.error());
  summary.prices = *std::move(prices);
  if (HasConditions(job->settings)) {
    Result<HeldPlan> held = PlanThatHolds(*job, *planner, *seconds, effort, &progress);
    if (!held) return tl::unexpected(held.error());
    summary.held = *std::move(held);
    summary.chosen = summary.held->robust.plan;
  }
  summary.chosen.saving_interval =
      model::IntervalOfSaving(planner->pipeline(), summary.chosen.options, summary.chosen.waiting);
  if (const auto iteration = model::UnlockedIterationOf(planner->pipeline())) {
    summary.chosen.unlocked = model::AgainstUnlocked(*iteration, summary.chosen);
  }
  if (job->settings.output) {
    summary.output_directory = *job->settings.output;
    if (auto written = WriteOutputs(*job, *planner, &summary); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (!invocation.json) {
    return Printout(FormatPlanSummary(summary, style), summary.output_directory);
  }
  Result<std::string> json = FormatPlanSummaryJson(MakeReportInput(*job, summary, constraints));
  if (!json) return tl::unexpected(json.error());
  return Printout(*std::move(json), summary.output_directory);
}

}  // namespace perseus::cli
