// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/framework/table.h"
#include "cli/planning/job.h"
#include "cli/planning/summary.h"
#include "common/file.h"
#include "perseus/plan_file.h"
#include "perseus/report.h"

namespace perseus::cli {

void AddFrontierCommand(CommandParser* parser, Invocation* invocation) {
  parser->AddCommand(
      "frontier",
      "Compute only the frontier: the least energy for every iteration time.\n\nThe frontier is an "
      "exact lower bound: no plan of one pipeline uses less energy in that time. Prints about "
      "twenty of its rows as a table, or all its corners (breakpoints) as CSV "
      "(iteration_time_s,energy_j,slope_w).",
      {{"the curve at a glance",
        "perseus frontier profile.csv --schedule 1f1b --microbatches 96 --blocking-power 83.64"},
       {"every breakpoint into a file", "perseus frontier job.toml -o frontier.csv"}});
  AddPipelineOptions(parser, &invocation->job,
                     "Data-parallel pipelines of the job (default 1). Only the job's total depends "
                     "on this number.");
  AddSolverOptions(parser, &invocation->job);
  FrontierFlags* flags = &invocation->frontier;
  parser->SetGroup("Output");
  parser->AddOutput(&flags->output_file, ValueKind::kFile,
                    "Write all breakpoints to this CSV file.");
  parser->AddFlag(&flags->csv, "--csv", "Print all breakpoints as CSV instead of a table.");
  parser->AddFlag(&flags->json, "--json", "Print one JSON document instead of text.");
}

namespace {

// About `rows` times from end to end: the named ones and equal steps between.
std::vector<double> TableTimes(const Frontier& frontier, double baseline_seconds) {
  constexpr int kSteps = 16;
  const double first = frontier.fastest_seconds;
  const double last = frontier.tstar_seconds;
  std::vector<double> times = {first, frontier.min_energy_seconds, last};
  if (baseline_seconds <= last) times.push_back(baseline_seconds);
  for (int step = 1; step < kSteps; ++step) times.push_back(first + (last - first) * step / kSteps);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end(), SameTime), times.end());
  return times;
}

std::string NamesAt(const Frontier& frontier, double baseline_seconds, double seconds) {
  std::vector<std::string> names;
  if (SameTime(seconds, frontier.fastest_seconds)) names.emplace_back("T_min");
  if (SameTime(seconds, baseline_seconds)) names.emplace_back("no slowdown");
  if (SameTime(seconds, frontier.min_energy_seconds)) names.emplace_back("min energy");
  if (SameTime(seconds, frontier.tstar_seconds)) names.emplace_back("T*");
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string FrontierText(const Job& job, const Planner& planner,
                         const std::vector<std::string>& remarks, const Style& style) {
  const Frontier& frontier = planner.frontier();
  const Plan& baseline = planner.baseline();
  std::string out = FormatInput(job.profile, planner.pipeline(), job.virtual_stages,
                                job.costs.split_ratio, style);
  out += FormatNotes(job.notes, style);
  const bool milliseconds = baseline.iteration_time_seconds < 0.1;
  const bool millijoules = baseline.energy_joules < 1;
  Table table({"", milliseconds ? "time ms" : "time s", "slowdown",
               millijoules ? "energy mJ" : "energy J", "saving", "power W"},
              {Align::kLeft});
  for (const double seconds : TableTimes(frontier, baseline.iteration_time_seconds)) {
    const double joules = frontier.EnergyAt(seconds);
    table.AddRow({NamesAt(frontier, baseline.iteration_time_seconds, seconds),
                  WithThousands(seconds * (milliseconds ? 1e3 : 1), 4),
                  FormatSignedPercent(PercentOver(seconds, baseline.iteration_time_seconds), 2),
                  WithThousands(joules * (millijoules ? 1e3 : 1), 1),
                  FormatPercent(-PercentOver(joules, baseline.energy_joules), 2),
                  WithThousands(seconds == 0 ? 0 : joules / seconds, 1)});
  }
  out += '\n';
  out += table.Format(style.rule()) + "\n";
  std::string bound = "no plan of one pipeline with the time of a row uses less energy";
  if (IsCoarse(frontier)) {
    bound += fmt::format(" (exact to {})", FormatPercent(100 * frontier.certified_error, 4));
  }
  if (frontier.fitted) {
    bound = "this curve is an exponential fit of the profile, so plans may use less energy";
  }
  out += Wrap(
      fmt::format("The frontier: {}. Slowdown and saving: against {} ({}, {}). 'perseus "
                  "plan' makes plans that come close. --csv or -o FILE gives all {} of "
                  "the curve.",
                  bound, BaselineText(job.profile), FormatSeconds(baseline.iteration_time_seconds),
                  FormatJoules(baseline.energy_joules),
                  CountOf(static_cast<long long>(frontier.points.size()), "corner")),
      style.columns, 0);
  out += '\n';
  for (const std::string& remark : remarks) out += Fact("Note", remark, style);
  return out;
}

ReportInput MakeReportInput(const Job& job, const Planner& planner,
                            const std::vector<std::string>& remarks) {
  ReportInput input;
  input.profile = &job.profile;
  input.pipeline = &planner.pipeline();
  input.frontier = &planner.frontier();
  input.baseline = &planner.baseline();
  input.split_ratio = job.costs.split_ratio;
  input.notes = job.notes;
  input.remarks = remarks;
  return input;
}

}  // namespace

Result<Printout> RunFrontier(const Invocation& invocation, const Style& style) {
  const FrontierFlags& flags = invocation.frontier;
  if (flags.csv && flags.json) {
    return InvalidInput("--csv and --json exclude each other; keep one of them");
  }
  Result<JobFile> settings = MergeSettings(invocation.job);
  if (!settings) return tl::unexpected(settings.error());
  if (auto good = CheckPairs(*settings, false, false); !good) return tl::unexpected(good.error());
  if (!flags.output_file.empty()) {
    const auto good = CheckOutputFile(flags.output_file, InputsOf(invocation.job, *settings));
    if (!good) return tl::unexpected(good.error());
  }
  const Result<Job> job = LoadBelievableJob(invocation.job, *std::move(settings), "frontier");
  if (!job) return tl::unexpected(job.error());
  ProgressLine progress("frontier");
  const Result<Planner> planner = MakePlanner(*job, 0, &progress);
  if (!planner) return tl::unexpected(planner.error());
  if (!flags.output_file.empty()) {
    if (auto written =
            WriteFileAtomically(flags.output_file, FormatFrontierCsv(planner->frontier()));
        !written) {
      return tl::unexpected(written.error());
    }
  }
  if (flags.csv) {
    WriteNotes(job->notes);
    return Printout(FormatFrontierCsv(planner->frontier()), flags.output_file);
  }
  std::vector<std::string> remarks = PipelineRemarks(planner->pipeline(), job->virtual_stages);
  if (HasConditions(job->settings)) {
    remarks.emplace_back(
        "the job has conditions (noise, late clocks, few changes), and a frontier knows none: its "
        "points are without them. 'perseus plan' makes the robust plan.");
  }
  if (flags.json) {
    Result<std::string> json = FormatFrontierJson(MakeReportInput(*job, *planner, remarks));
    if (!json) return tl::unexpected(json.error());
    return Printout(*std::move(json), flags.output_file);
  }
  std::string text = FrontierText(*job, *planner, remarks, style);
  if (!flags.output_file.empty()) text += fmt::format("Written to {}.\n", flags.output_file);
  return Printout(std::move(text), flags.output_file);
}

}  // namespace perseus::cli
