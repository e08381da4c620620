// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/plan_notes.h"
#include "cli/plan_summary.h"
#include "cli/table.h"
#include "perseus/file.h"
#include "perseus/plan_file.h"

namespace perseus::cli {
namespace {

// About `rows` times from end to end: the named ones and equal steps between.
std::vector<double> TableTimes(const Frontier& frontier, double baseline_seconds) {
  constexpr int kSteps = 16;
  const double first = frontier.fastest_seconds;
  const double last = frontier.tstar_seconds;
  std::vector<double> times = {first, frontier.economic_seconds, last};
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
  if (SameTime(seconds, frontier.economic_seconds)) names.emplace_back("T_economic");
  if (SameTime(seconds, frontier.tstar_seconds)) names.emplace_back("T*");
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string FrontierText(const Job& job, const Planner& planner,
                         const std::vector<std::string>& notes, const Style& style) {
  const Frontier& frontier = planner.frontier();
  const Plan& baseline = planner.baseline();
  std::string out = FormatInput(job.profile, planner.pipeline(), job.virtual_stages,
                                job.costs.split_ratio, style);
  const bool milliseconds = baseline.iteration_time_seconds < 0.1;
  const bool millijoules = baseline.energy_joules < 1;
  Table table({"", milliseconds ? "time ms" : "time s", "slower",
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
  std::string bound = "the exact lower bound";
  if (IsCoarse(frontier)) {
    bound = fmt::format("within {} of the exact lower bound",
                        FormatPercent(100 * frontier.certified_error, 4));
  }
  if (frontier.fitted) bound = "from an exponential fit of the profile, which bounds nothing";
  out +=
      Wrap(fmt::format(
               "{} of one pipeline's energy at each time: {}. Slower and saving are "
               "against all clocks at maximum ({}, {}). {} All breakpoints: --csv, or -o FILE.",
               IsCoarse(frontier) ? "A bound" : "The frontier",
               fmt::format("{}, {}", bound,
                           CountOf(static_cast<long long>(frontier.points.size()), "breakpoint")),
               FormatSeconds(baseline.iteration_time_seconds), FormatJoules(baseline.energy_joules),
               frontier.fitted ? "'perseus plan' makes plans from the measured options."
                               : "Real plans come close to it: 'perseus plan' says how close."),
           style.columns, 0);
  out += '\n';
  for (const std::string& note : notes) out += Fact("Note", note, style);
  return out;
}

nlohmann::ordered_json FrontierJson(const Job& job, const Planner& planner,
                                    const std::vector<std::string>& notes) {
  const Frontier& frontier = planner.frontier();
  nlohmann::ordered_json json =
      InputToJson(job.profile, planner.pipeline(), job.virtual_stages, job.costs.split_ratio);
  json["baseline"] = {{"iteration_time_s", planner.baseline().iteration_time_seconds},
                      {"energy_j", planner.baseline().energy_joules},
                      {"average_power_w", planner.baseline().average_power_watts}};
  json["t_min_s"] = frontier.fastest_seconds;
  json["t_economic_s"] = frontier.economic_seconds;
  json["t_star_s"] = frontier.tstar_seconds;
  if (frontier.fitted) {
    json["certified_error"] = nullptr;
  } else {
    json["certified_error"] = frontier.certified_error;
  }
  json["cost_curve"] = frontier.fitted ? "exponential" : "measured";
  json["frontier"] = nlohmann::ordered_json::array();
  for (const FrontierPoint& point : frontier.points) {
    json["frontier"].push_back({{"iteration_time_s", point.iteration_time_seconds},
                                {"energy_j", point.energy_joules},
                                {"slope_w", point.slope_watts}});
  }
  json["notes"] = notes;
  return json;
}

}  // namespace

Result<std::string> RunFrontier(const Invocation& invocation, const Style& style) {
  const FrontierFlags& flags = invocation.frontier;
  if (flags.csv && flags.json) {
    return InvalidInput("--csv and --json exclude each other; keep one of them");
  }
  const Result<Job> job = LoadJob(invocation.job, "frontier");
  if (!job) return tl::unexpected(job.error());
  ProgressLine progress("frontier");
  PlannerOptions options = SolverOptions(job->settings);
  options.progress = progress.Function();
  const Result<Planner> planner = Planner::Create(job->pipeline, options);
  if (!planner) return tl::unexpected(planner.error());
  const std::string csv = FormatFrontierCsv(planner->frontier());
  if (!flags.output_file.empty()) {
    if (auto written = WriteFileAtomically(flags.output_file, csv); !written) {
      return tl::unexpected(written.error());
    }
  }
  if (flags.csv) return csv;
  const std::vector<std::string> notes =
      InputNotes(job->profile, planner->pipeline(), planner->baseline(), job->virtual_stages);
  if (flags.json) {
    return FrontierJson(*job, *planner, notes)
               .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
  }
  std::string text = FrontierText(*job, *planner, notes, style);
  if (!flags.output_file.empty()) text += fmt::format("Written to {}.\n", flags.output_file);
  return text;
}

}  // namespace perseus::cli
