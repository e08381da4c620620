// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "report/text.h"

namespace perseus::sosp24 {

using report::Table;

namespace {

using report::Cell;

constexpr std::string_view kNone = "\u2013";

std::string Signed(double value, int decimals, std::string_view plus) {
  std::string digits = fmt::format("{:.{}f}", std::abs(value), decimals);
  if (digits.find_first_not_of("0.") == std::string::npos) return digits;
  return fmt::format("{}{}", value < 0 ? "\u2212" : plus, digits);
}

// As the artifact prints its own.
std::string Printed(double value) { return Signed(value, 6, ""); }

std::string Optional(const std::optional<double>& value) {
  return value ? Percent(*value) : std::string(kNone);
}

std::string Seconds(double value) { return fmt::format("{:.4f}", value); }

Cell PercentCell(double value) { return {Percent(value), Printed(value) + " %"}; }

Cell OptionalCell(const std::optional<double>& value) {
  return value ? PercentCell(*value) : Cell{std::string(kNone)};
}

Table CaseTable(std::vector<std::string> columns) {
  Table table;
  table.columns = {"Model", "GPU", "Microbatches"};
  table.columns.insert(table.columns.end(), columns.begin(), columns.end());
  table.text_columns = 2;
  return table;
}

template <typename Of>
std::vector<Cell> CaseCells(const Of& of) {
  return {{of.model}, {of.device}, {fmt::format("{}", of.microbatches)}};
}

void AddRow(std::vector<Cell> cells, std::vector<Cell> more, Table* table) {
  cells.insert(cells.end(), std::make_move_iterator(more.begin()),
               std::make_move_iterator(more.end()));
  table->Add(std::move(cells));
}

std::vector<Sosp24Point> ByTime(std::vector<Sosp24Point> points) {
  std::sort(points.begin(), points.end(), [](const Sosp24Point& a, const Sosp24Point& b) {
    return std::pair(a.iteration_time_seconds, a.energy_joules) <
           std::pair(b.iteration_time_seconds, b.energy_joules);
  });
  return points;
}

// Of errors below and above 0.
struct MedianAndWorst {
  explicit MedianAndWorst(std::vector<double> errors) {
    if (errors.empty()) return;
    std::sort(errors.begin(), errors.end());
    const std::size_t half = errors.size() / 2;
    median = errors.size() % 2 == 1 ? errors[half] : (errors[half - 1] + errors[half]) / 2;
    worst = std::abs(errors.front()) > std::abs(errors.back()) ? errors.front() : errors.back();
  }
  double median = 0;
  double worst = 0;
};

}  // namespace

std::string Percent(double value) { return Signed(value, 2, ""); }
std::string Points(double value) { return Signed(value, 2, "+"); }

bool IsFigure7(const Sosp24Straggler& row) { return std::abs(row.slowdown - 1.2) < 1e-9; }
bool HasEnvPipe(const Sosp24Emulation& cell) { return cell.envpipe_published_joules > 0; }
bool HasEnvPipe(const Sosp24Straggler& row) {
  return row.envpipe_artifact_job_percent != 0 || row.envpipe_job_percent != 0 ||
         row.envpipe_artifact_pipeline_percent != 0;
}

Table Table6AtPublished(const Sosp24Evaluation& evaluation) {
  Table table = CaseTable({"GPUs", "T (s)", "T_min (s)", "Published planner, saving (%)",
                           "Ours at T (%)", "Bound at T (%)", "Ours less published (points)"});
  for (const Sosp24Emulation& cell : evaluation.emulations) {
    const bool real = cell.at_published.has_value();
    AddRow(CaseCells(cell),
           {{fmt::format("{}", cell.gpus)},
            {Seconds(cell.published_seconds)},
            {Seconds(cell.fastest_seconds)},
            {Printed(cell.published_saving_percent)},
            real ? PercentCell(cell.at_published_saving_percent) : Cell{"T is below T_min"},
            real ? PercentCell(cell.bound_at_published_saving_percent) : Cell{std::string(kNone)},
            {real ? Points(cell.at_published_saving_percent - cell.published_saving_percent)
                  : std::string(kNone)}},
           &table);
  }
  return table;
}

Table Table6AtMaxClocks(const Sosp24Evaluation& evaluation) {
  Table table =
      CaseTable({"T_max (s)", "Published planner at T (%)", "Published planner at T_max (%)",
                 "Ours at T_max (%)", "Bound at T_max (%)", "Ours less bound (points)",
                 "Ours less published at T (points)", "at T_max (points)"});
  for (const Sosp24Emulation& cell : evaluation.emulations) {
    AddRow(
        CaseCells(cell),
        {{Seconds(cell.max_clock_seconds)},
         {Printed(cell.published_saving_percent)},
         {Percent(cell.published_at_max_clock_saving_percent) +
              (cell.published_at_max_clock_saving_percent > cell.bound_saving_percent
                   ? " (above the bound)"
                   : ""),
          Printed(cell.published_at_max_clock_saving_percent) + " %"},
         PercentCell(cell.at_max_clock_saving_percent),
         PercentCell(cell.bound_saving_percent),
         {Points(cell.at_max_clock_saving_percent - cell.bound_saving_percent)},
         {Points(cell.at_max_clock_saving_percent - cell.published_saving_percent)},
         {Points(cell.at_max_clock_saving_percent - cell.published_at_max_clock_saving_percent)}},
        &table);
  }
  return table;
}

Table Figure7(const Sosp24Evaluation& evaluation) {
  Table table = CaseTable({"Published, pipeline (%)", "Published, job (%)", "Its time / T",
                           "Least effective energy, job (%)", "Its time / T", "Ours, pipeline (%)",
                           "Ours, job (%)", "Bound, job (%)", "Ours less published (points)",
                           "Ours at T_max, job (%)", "Bound at T_max, job (%)"});
  for (const Sosp24Straggler& row : evaluation.stragglers) {
    if (!IsFigure7(row)) continue;
    AddRow(CaseCells(row),
           {{Printed(row.published_pipeline_percent)},
            {Printed(row.published_job_percent)},
            {fmt::format("{:.2f}", row.published_time_over_t)},
            PercentCell(row.effective_job_percent),
            {fmt::format("{:.2f}", row.effective_time_over_t)},
            PercentCell(row.ours_pipeline_percent),
            PercentCell(row.ours_job_percent),
            PercentCell(row.bound_job_percent),
            {Points(row.ours_job_percent - row.published_job_percent)},
            OptionalCell(row.ours_max_clock_job_percent),
            OptionalCell(row.bound_max_clock_job_percent)},
           &table);
  }
  return table;
}

Table Figure7EnvPipe(const Sosp24Evaluation& evaluation) {
  Table table = CaseTable({"EnvPipe as the artifact counts, pipeline (%)",
                           "EnvPipe as the artifact counts, job (%)",
                           "EnvPipe as the protocol says, job (%)", "Ours, job (%)"});
  for (const Sosp24Straggler& row : evaluation.stragglers) {
    if (!IsFigure7(row) || !HasEnvPipe(row)) continue;
    AddRow(CaseCells(row),
           {{Printed(row.envpipe_artifact_pipeline_percent)},
            {Printed(row.envpipe_artifact_job_percent)},
            PercentCell(row.envpipe_job_percent),
            PercentCell(row.ours_job_percent)},
           &table);
  }
  return table;
}

Table Figure8(const Sosp24Evaluation& evaluation) {
  Table table = CaseTable({"Slowdown", "Published (%)", "Least effective energy (%)", "Ours (%)",
                           "Bound (%)", "Ours less published (points)", "EnvPipe (%)"});
  for (const Sosp24Straggler& row : evaluation.stragglers) {
    bool shown = false;
    for (const double slowdown : {1.05, 1.1, 1.2, 1.3, 1.4, 1.5}) {
      shown = shown || std::abs(row.slowdown - slowdown) < 1e-9;
    }
    if (!shown) continue;
    AddRow(CaseCells(row),
           {{fmt::format("{:.2f}", row.slowdown)},
            PercentCell(row.published_job_percent),
            PercentCell(row.effective_job_percent),
            PercentCell(row.ours_job_percent),
            PercentCell(row.bound_job_percent),
            {Points(row.ours_job_percent - row.published_job_percent)},
            HasEnvPipe(row) ? PercentCell(row.envpipe_job_percent) : Cell{std::string(kNone)}},
           &table);
  }
  return table;
}

Table EnvPipePolicy(const Sosp24Evaluation& evaluation) {
  Table table = CaseTable({"Published time (s)", "Our policy's time (s)", "Published energy (J)",
                           "Our policy's energy (J)", "Published saving (%)",
                           "Our policy's saving (%)", "Difference (points)"});
  for (const Sosp24Emulation& cell : evaluation.emulations) {
    if (!HasEnvPipe(cell) || !(cell.published_baseline_joules > 0)) continue;
    const auto saving = [&](double joules) {
      return 100 * (1 - joules / cell.published_baseline_joules);
    };
    const double published = saving(cell.envpipe_published_joules);
    const double ours = saving(cell.envpipe_joules);
    const bool planned = cell.envpipe_joules > 0;
    const Cell none{std::string(kNone)};
    AddRow(CaseCells(cell),
           {{Seconds(cell.envpipe_published_seconds)},
            planned ? Cell{Seconds(cell.envpipe_seconds)} : none,
            {fmt::format("{:.0f}", cell.envpipe_published_joules)},
            planned ? Cell{fmt::format("{:.0f}", cell.envpipe_joules)} : none,
            PercentCell(published),
            planned ? PercentCell(ours) : none,
            planned ? Cell{Points(ours - published)} : none},
           &table);
  }
  return table;
}

Table Table3(const Sosp24Evaluation& evaluation) {
  Table table;
  table.columns = {"GPU",
                   "Model",
                   "Layout",
                   "Microbatches",
                   "Perseus, measured saving (%)",
                   "slowdown (%)",
                   "EnvPipe, measured saving (%)",
                   "slowdown (%)",
                   "Ours, predicted saving (%)",
                   "Bound, predicted (%)",
                   "Ours less measured Perseus (points)",
                   "The Perseus plan, predicted saving (%)",
                   "slowdown (%)",
                   "Ours less that (points)"};
  table.text_columns = 3;
  const auto points = [](const std::optional<double>& ours, const std::optional<double>& theirs) {
    return ours && theirs ? Points(*ours - *theirs) : std::string(kNone);
  };
  for (const Sosp24Job& job : evaluation.jobs) {
    if (!job.has_derived && !job.perseus_saving_percent && !job.envpipe_saving_percent) continue;
    std::optional<double> ours;
    std::optional<double> bound;
    if (job.has_derived) {
      ours = job.ours.saving_percent;
      bound = job.ours_bound_percent;
    }
    table.Add({{job.gpu},
               {job.model},
               {job.layout},
               {fmt::format("{}", job.microbatches)},
               {Optional(job.perseus_saving_percent)},
               {Optional(job.perseus_slowdown_percent)},
               {Optional(job.envpipe_saving_percent)},
               {Optional(job.envpipe_slowdown_percent)},
               {Optional(ours)},
               {Optional(bound)},
               {points(ours, job.perseus_saving_percent)},
               {Optional(job.replay_saving_percent)},
               {Optional(job.replay_slowdown_percent)},
               {points(ours, job.replay_saving_percent)}});
  }
  return table;
}

Table Table4(const Sosp24Evaluation& evaluation) {
  Table table;
  table.columns = {"GPU",
                   "Model",
                   "Slowdown",
                   "Perseus, measured (%)",
                   "EnvPipe, measured (%)",
                   "Ours, predicted (%)",
                   "Ours less measured Perseus (points)"};
  table.text_columns = 2;
  for (const Sosp24JobStraggler& row : evaluation.job_stragglers) {
    table.Add(
        {{row.gpu},
         {row.model},
         {fmt::format("{:.2f}", row.slowdown)},
         {Optional(row.perseus_percent)},
         {Optional(row.envpipe_percent)},
         {Optional(row.ours_percent)},
         {row.ours_percent && row.perseus_percent ? Points(*row.ours_percent - *row.perseus_percent)
                                                  : std::string(kNone)}});
  }
  return table;
}

Table ReplayErrors(const Sosp24Evaluation& evaluation) {
  Table table;
  table.columns = {"GPU",
                   "Model",
                   "Published plans",
                   "Time, median error (%)",
                   "worst (%)",
                   "Energy, median error (%)",
                   "worst (%)"};
  table.text_columns = 2;
  for (const Sosp24Job& job : evaluation.jobs) {
    if (job.replay_error_percent.empty()) continue;
    const MedianAndWorst time(job.replay_error_percent);
    const MedianAndWorst energy(job.replay_energy_error_percent);
    table.Add({{job.gpu},
               {job.model},
               {fmt::format("{}", job.replay_error_percent.size())},
               {Points(time.median)},
               {Points(time.worst)},
               {Points(energy.median)},
               {Points(energy.worst)}});
  }
  return table;
}

Table Figure9(const Sosp24Job& job) {
  Table table;
  table.columns = {
      "System", "Point", "Time (s)", "Energy (J)", "Time, change (%)", "Energy, change (%)"};
  table.text_columns = 2;
  const auto add = [&](const std::string& system, const std::string& point, const Sosp24Point& at,
                       double seconds, double joules) {
    table.Add({{system},
               {point},
               {Seconds(at.iteration_time_seconds)},
               {fmt::format("{:.1f}", at.energy_joules)},
               {seconds > 0 ? Points(100 * (at.iteration_time_seconds / seconds - 1))
                            : std::string(kNone)},
               {joules > 0 ? Points(100 * (at.energy_joules / joules - 1)) : std::string(kNone)}});
  };
  const auto ends = [&](const std::string& system, const std::vector<Sosp24Point>& unsorted,
                        double seconds, double joules) {
    const std::vector<Sosp24Point> points = ByTime(unsorted);
    if (points.empty()) return;
    add(system, "fastest", points.front(), seconds, joules);
    if (points.size() > 2) add(system, "middle", points[points.size() / 2], seconds, joules);
    if (points.size() > 1) add(system, "slowest", points.back(), seconds, joules);
  };
  const double seconds = job.baseline.iteration_time_seconds, joules = job.baseline.energy_joules;
  add("baseline, measured", "maximum power limit", job.baseline, seconds, joules);
  ends("Perseus, measured", job.perseus, seconds, joules);
  if (job.envpipe) add("EnvPipe, measured", "its plan", *job.envpipe, seconds, joules);
  ends("ZeusGlobal, measured", job.zeus_global, seconds, joules);
  ends("ZeusPerStage, measured", job.zeus_per_stage, seconds, joules);
  if (job.has_derived) {
    const double ours_seconds = job.derived_baseline_seconds;
    const double ours_joules = job.derived_baseline_joules;
    add("maximum clocks, predicted", "derived profile", {ours_seconds, ours_joules}, ours_seconds,
        ours_joules);
    ends("ours, predicted", job.ours_frontier, ours_seconds, ours_joules);
  }
  return table;
}

Table RunTimes(const Sosp24Evaluation& evaluation) {
  Table table = CaseTable({"Computations", "Breakpoints", "Frontier (CPU s)", "Plan (CPU s)"});
  for (const Sosp24Emulation& cell : evaluation.emulations) {
    if (cell.frontier_cpu_seconds < 0 && cell.plan_cpu_seconds < 0) continue;
    const auto time = [](double seconds) {
      return seconds >= 0 ? fmt::format("{:.2f}", seconds) : std::string(kNone);
    };
    AddRow(CaseCells(cell),
           {{fmt::format("{}", cell.at_max_clock.options.size())},
            {fmt::format("{}", cell.breakpoints)},
            {time(cell.frontier_cpu_seconds)},
            {time(cell.plan_cpu_seconds)}},
           &table);
  }
  return table;
}

}  // namespace perseus::sosp24
