// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/plan_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "cli/framework/table.h"
#include "cli/planning/plan_notes.h"
#include "common/printable.h"
#include "plan/named_times.h"
#include "report/page.h"
#include "report/plan_json.h"
#include "report/text.h"

namespace perseus::cli {
namespace {

std::string TableSeconds(double seconds, double scale) { return WithThousands(seconds * scale, 4); }

std::string KnobNoun(const PlanSummary& summary) {
  return summary.pipeline->knobs_are_numbers ? "clock" : "knob";
}

// Which row is the plan.
std::string ChosenRow(const PlanSummary& summary) {
  if (!summary.held) return fmt::format("> marks the plan (--at {}).", summary.at);
  return fmt::format(
      "> marks the plan that is made for the conditions (--at {}). The table shows all plans "
      "without noise and late clocks; 'Emulated' shows this one with them.",
      summary.at);
}

std::string PointsTable(const PlanSummary& summary, const Style& style) {
  const bool milliseconds = summary.baseline->iteration_time_seconds < 0.1;
  const bool millijoules = summary.baseline->energy_joules < 1;
  const double time_scale = milliseconds ? 1e3 : 1;
  const double energy_scale = millijoules ? 1e3 : 1;
  Table table({"", "point", milliseconds ? "time ms" : "time s", "slowdown",
               millijoules ? "energy mJ" : "energy J", "saving", "power W", "gap"},
              {Align::kLeft, Align::kLeft});
  const auto add = [&](bool chosen, std::string_view label, const Plan& plan) {
    const double slower =
        PercentOver(plan.iteration_time_seconds, summary.baseline->iteration_time_seconds);
    table.AddRow(
        {chosen ? ">" : "", std::string(label),
         TableSeconds(plan.iteration_time_seconds, time_scale), FormatSignedPercent(slower, 2),
         WithThousands(plan.energy_joules * energy_scale, 1), FormatPercent(plan.saving_percent, 2),
         WithThousands(plan.average_power_watts, 1),
         FormatPercent(report::ShownGap(chosen ? report::ProvenBoundOf(summary.chosen).gap_percent
                                               : plan.gap_percent),
                       3)});
  };
  for (std::size_t i = 0; i < summary.points.size(); ++i) {
    const PlanPoint& point = summary.points[i];
    std::string label = point.label;
    while (i + 1 < summary.points.size() &&
           SameTime(summary.points[i + 1].seconds, point.seconds)) {
      label += ", " + summary.points[++i].label;
    }
    const bool chosen = SameTime(point.seconds, summary.chosen_seconds);
    if (!point.plan) {
      table.AddRow({"", label, TableSeconds(point.seconds, time_scale), "", "no plan"});
      continue;
    }
    add(chosen && !summary.held, label, *point.plan);
    if (chosen && summary.held) add(true, kHeldRowLabel, summary.chosen);
  }
  return table.Format(style.rule());
}

std::string NextSteps(const PlanSummary& summary, const Style& style) {
  std::string text;
  if (summary.output_directory.empty()) {
    text =
        "-o DIR writes this plan and a report; --at chooses another row (1.02x, economic, 5.3s).";
  } else {
    text = fmt::format(
        "open {0}/report.html in a browser and {0}/timeline.pftrace in ui.perfetto.dev; where the "
        "savings come from: perseus explain {0}/plan.json",
        summary.output_directory);
  }
  return "\n" + Fact("Next", text, style);
}

std::string JobTotal(const PlanSummary& summary, const Style& style) {
  if (summary.data_parallel == 1) return "";
  const double pipelines = summary.data_parallel;
  const double before = pipelines * summary.baseline->energy_joules;
  const double after = pipelines * summary.chosen.energy_joules;
  return Fact("Job",
              fmt::format("{} (--dp): {} an iteration instead of {}, saving {}; {} instead of {}.",
                          CountOf(summary.data_parallel, "pipeline"), FormatJoules(after),
                          FormatJoules(before), FormatJoules(before - after),
                          FormatWatts(pipelines * summary.chosen.average_power_watts),
                          FormatWatts(pipelines * summary.baseline->average_power_watts)),
              style);
}

// "1.850 % faster".
std::string Compared(double percent, std::string_view more, std::string_view less,
                     std::string_view same) {
  constexpr int kDecimals = 3;
  const std::string text = FormatPercent(std::abs(percent), kDecimals);
  if (text == FormatPercent(0, kDecimals)) return std::string(same);
  return fmt::format("{} {}", text, percent > 0 ? more : less);
}

std::string Prices(const PlanSummary& summary, const Style& style) {
  if (summary.prices.empty()) return "";
  std::string out = "\n" + style.Bold("Price") +
                    "     what each constraint costs, against a plan without constraints\n";
  std::size_t widest = 0;
  for (const auto& price : summary.prices) widest = std::max(widest, price.constraint.size());
  for (const ConstraintPrice& price : summary.prices) {
    out += fmt::format("          {:{}}  {}, {}\n", price.constraint, widest,
                       Compared(price.energy_percent, "more energy", "less energy", "same energy"),
                       Compared(price.time_percent, "slower", "faster", "same time"));
  }
  return out;
}

}  // namespace

std::string Fact(std::string_view name, std::string_view text, const Style& style) {
  constexpr int kIndent = 10;
  return style.Bold(name) + std::string(kIndent - name.size(), ' ') +
         Wrap(Printable(text), style.columns, kIndent) + "\n";
}

std::string BaselineText(const Profile& profile) {
  if (profile.knobs_are_numbers) return "all clocks at maximum";
  return profile.KnobsAreRanked() ? "all knobs at maximum"
                                  : "all computations at their baseline knobs";
}

bool IsCoarse(const Frontier& frontier) {
  constexpr double kRounding = 1e-7;
  return frontier.certified_error > kRounding;
}

std::vector<PlanPoint> TablePoints(const Frontier& frontier, double baseline_seconds,
                                   double chosen_seconds, const std::string& at,
                                   std::vector<std::string>* beyond_tstar) {
  std::vector<PlanPoint> points;
  for (const plan::NamedTime& time : plan::NamedTimes(frontier, baseline_seconds)) {
    // What was asked for is always answered.
    if (plan::IsBeyondTStar(frontier, time) && !SameTime(time.seconds, chosen_seconds)) {
      beyond_tstar->emplace_back(time.label);
    } else {
      points.push_back({std::string(time.name), std::string(time.label), time.seconds, {}});
    }
  }
  const bool known = std::any_of(points.begin(), points.end(), [&](const PlanPoint& point) {
    return SameTime(point.seconds, chosen_seconds);
  });
  if (!known) points.push_back({"at", "--at " + at, chosen_seconds, {}});
  SortByTime(&points);
  return points;
}

void SortByTime(std::vector<PlanPoint>* points) {
  std::stable_sort(points->begin(), points->end(), [](const PlanPoint& a, const PlanPoint& b) {
    return a.seconds < b.seconds && !SameTime(a.seconds, b.seconds);
  });
}

std::string FormatInput(const Profile& profile, const CostedPipeline& pipeline, int virtual_stages,
                        double split_ratio, const Style& style) {
  const std::string knobs =
      profile.knobs_are_numbers && profile.knobs.size() > 1
          ? fmt::format("{} from {} to {} MHz",
                        CountOf(static_cast<long long>(profile.knobs.size()), "clock"),
                        profile.knobs.back().label, profile.knobs.front().label)
          : CountOf(static_cast<long long>(profile.knobs.size()), "knob");
  std::string read =
      fmt::format("{}: {}, {}, {}.", report::FileName(profile.source), CountOf(profile.rows, "row"),
                  CountOf(profile.num_stages, "stage"), knobs);
  if (report::CountOptions(pipeline).split) {
    read += fmt::format(
        " The schedule splits backwards, and the profile does not: backward_input gets {:g} of the "
        "time and energy, backward_weight the rest (--split-ratio).",
        split_ratio);
  }
  std::string out = Fact("Profile", read, style);
  if (!profile.modelled.empty()) out += Fact("", profile.modelled, style);
  const PipelineDag& dag = pipeline.dag;
  out += Fact(
      "Pipeline",
      fmt::format("{}, {} (from the profile) on {}{}, {}: {}.", dag.schedule_name,
                  CountOf(dag.num_stages, "stage"), CountOf(dag.num_ranks, "rank"),
                  virtual_stages > 1 ? fmt::format(" ({} each)", virtual_stages) : "",
                  CountOf(dag.num_microbatches, "microbatch"), CountOf(dag.size(), "computation")),
      style);
  const int gpus = pipeline.tensor_parallel * dag.num_ranks;
  out += Fact("Waiting",
              fmt::format("one pipeline ({}) draws {} while it waits, {}.", CountOf(gpus, "GPU"),
                          FormatWatts(pipeline.total_blocking_power_watts),
                          pipeline.waiting_depends_on_clock()
                              ? "each rank at the clock where it draws least"
                          : profile.knobs_are_numbers ? "at any clock"
                                                      : "at any knob"),
              style);
  return out;
}

namespace {

// All that follows from the profile's numbers.
std::string Figures(const PlanSummary& summary, const Style& style) {
  std::string out = PointsTable(summary, style) + "\n";
  std::string legend = fmt::format(
      "{} Slowdown and saving: against {}. Gap: the best plan of the same time uses less energy by "
      "at most this much. T_economic: the plan of least energy. T*: the slowest plan that can be "
      "of use, for a pipeline that must wait for a slower one.",
      ChosenRow(summary), BaselineText(*summary.profile));
  if (!summary.beyond_tstar.empty()) {
    legend +=
        fmt::format(" Slower than T*, so left out: {}.", fmt::join(summary.beyond_tstar, ", "));
  }
  if (IsCoarse(*summary.frontier)) {
    legend += fmt::format(" Gaps are computed from a rounded frontier, which is exact to {}.",
                          FormatPercent(100 * summary.frontier->certified_error, 4));
  }
  out += Wrap(legend, style.columns, 0) + "\n";
  out += Prices(summary, style);
  const Plan& chosen = summary.chosen;
  out += '\n';
  if (chosen.saving_interval && !summary.held) {
    out += Fact("Saving",
                fmt::format("{} ({}).", FormatPercent(chosen.saving_percent, 2),
                            report::IntervalText(*chosen.saving_interval)),
                style);
  }
  if (chosen.unlocked) {
    const std::string iteration =
        fmt::format("{} and {}", FormatSeconds(chosen.unlocked->iteration_time_seconds),
                    FormatJoules(chosen.unlocked->energy_joules));
    out += Fact("Unlocked",
                report::UnlockedText(*chosen.unlocked, iteration,
                                     report::ProfileOrigin(summary.profile->modelled)) +
                    ".",
                style);
  }
  out += Fact(
      "Plan",
      fmt::format("uses {}; {}.", report::DistinctText(chosen, KnobNoun(summary)),
                  report::ChangesText(*CountKnobChanges(summary.pipeline->dag, chosen.options))),
      style);
  if (chosen.shared_knobs) {
    out += Fact("Best", report::SharedKnobText(*chosen.shared_knobs), style);
  }
  if (summary.held) out += FormatHeldPlan(*summary.held, style);
  return out + JobTotal(summary, style);
}

}  // namespace

std::string FormatPlanSummary(const PlanSummary& summary, const Style& style) {
  const Plan& baseline = *summary.baseline;
  std::string out = FormatInput(*summary.profile, *summary.pipeline, summary.virtual_stages,
                                summary.split_ratio, style);
  out += Fact(
      "Today",
      fmt::format("with {}, one iteration of one pipeline takes {} and {} ({}).",
                  BaselineText(*summary.profile), FormatSeconds(baseline.iteration_time_seconds),
                  FormatJoules(baseline.energy_joules), FormatWatts(baseline.average_power_watts)),
      style);
  out += FormatNotes(summary.notes, style);
  out += "\n" + Figures(summary, style);
  if (!summary.output_directory.empty()) {
    out += Fact("Written",
                fmt::format("{}: {}.", summary.output_directory, fmt::join(summary.files, ", ")),
                style);
  }
  for (const std::string& remark : summary.remarks) out += Fact("Note", remark, style);
  return out + NextSteps(summary, style);
}

}  // namespace perseus::cli
