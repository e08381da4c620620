// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/planning/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/framework/table.h"
#include "cli/framework/terminal.h"
#include "cli/planning/job.h"
#include "common/belief.h"
#include "common/printable.h"
#include "perseus/emulator.h"
#include "plan/named_times.h"
#include "report/plan_json.h"
#include "report/text.h"

namespace perseus::cli {
namespace {

std::string Percent(double share) { return fmt::format("{:.3g} %", 100 * share); }

std::string WhatIsWrong(StragglerKind kind, double value) {
  switch (kind) {
    case StragglerKind::kSlow:
      return fmt::format("takes {:g} times as long", value);
    case StragglerKind::kClockCap:
      return fmt::format("runs at {:g} MHz at most", value);
    case StragglerKind::kPowerCap:
      return fmt::format("draws {:g} W a GPU at most", value);
    case StragglerKind::kDataStall:
      break;
  }
  return fmt::format("waits {} for data", SpanOfTime(value));
}

std::string StragglerInWords(const Straggler& straggler) {
  std::string text = fmt::format("pipeline {}", straggler.pipeline);
  if (straggler.rank) text += fmt::format(" rank {}", *straggler.rank);
  text += " " + WhatIsWrong(straggler.kind, straggler.value);
  if (straggler.first_iteration > 0) {
    text += fmt::format(" from iteration {}", straggler.first_iteration);
  }
  if (straggler.iterations) {
    text += fmt::format(" for {}", CountOf(*straggler.iterations, "iteration"));
  }
  return text;
}

std::string PercentOf(double share, const std::optional<ValueRange>& range) {
  return range ? fmt::format("{:.3g} to {}", 100 * range->least, Percent(range->most))
               : Percent(share);
}

void DescribeNoise(const TimeNoise& noise, const ConditionRanges& ranges,
                   std::vector<std::string>* parts) {
  std::vector<std::string> kinds;
  if (noise.per_computation > 0) {
    kinds.push_back(PercentOf(noise.per_computation, ranges.noise) + " a computation");
    if (noise.correlation > 0) {
      kinds.back() += fmt::format(" (correlation {:g})", noise.correlation);
    }
  }
  if (noise.per_stage > 0) kinds.push_back(Percent(noise.per_stage) + " a stage");
  if (noise.per_rank > 0)
    kinds.push_back(PercentOf(noise.per_rank, ranges.rank_noise) + " a rank and iteration");
  if (noise.has_rare()) {
    kinds.push_back(fmt::format("{} more for {} of the computations", Percent(noise.rare_length),
                                Percent(noise.rare_share)));
  }
  if (noise.per_gpu > 0) kinds.push_back(Percent(noise.per_gpu) + " a GPU");
  if (!kinds.empty()) parts->push_back(fmt::format("noise of {}", fmt::join(kinds, ", ")));
}

std::string_view WhenCalled(CallAhead call_ahead) {
  switch (call_ahead) {
    case CallAhead::kNone:
      return "called for when its computation starts";
    case CallAhead::kEnd:
      return "called for when the computation before has ended";
    case CallAhead::kPredicted:
      break;
  }
  return "called for early enough to be there when its computation starts";
}

void DescribeSwitching(const ClockSwitching& switching, const ConditionRanges& ranges,
                       std::vector<std::string>* parts) {
  if (switching.latency_seconds > 0) {
    const std::string spread =
        switching.latency_spread_seconds > 0
            ? fmt::format(" (spread {})", SpanOfTime(switching.latency_spread_seconds))
            : "";
    const std::optional<ValueRange>& range = ranges.switch_latency_seconds;
    const std::string latency =
        range ? fmt::format("{} to {}", SpanOfTime(range->least), SpanOfTime(range->most))
              : SpanOfTime(switching.latency_seconds);
    parts->push_back(fmt::format("a clock takes effect {}{} after the call, and is {}", latency,
                                 spread, WhenCalled(switching.call_ahead)));
    std::vector<std::string> own;
    for (const ClockLatency& each : switching.latency_at) {
      own.push_back(fmt::format("{:g} MHz {}", each.clock, SpanOfTime(each.seconds)));
    }
    if (!own.empty()) {
      parts->push_back(fmt::format("some clocks take another time: {}", fmt::join(own, ", ")));
    }
  }
  if (switching.min_interval_seconds > 0) {
    parts->push_back(
        fmt::format("at least {} between calls", SpanOfTime(switching.min_interval_seconds)));
  }
  if (switching.stall_seconds > 0) {
    parts->push_back(
        fmt::format("a rank pauses {} at a change of clock", SpanOfTime(switching.stall_seconds)));
  }
}

void DescribeStragglers(const EmulationSpec& spec, std::vector<std::string>* parts) {
  constexpr std::size_t kMostNamed = 4;
  for (std::size_t i = 0; i < spec.stragglers.size() && i < kMostNamed; ++i) {
    parts->push_back(StragglerInWords(spec.stragglers[i]));
  }
  if (spec.stragglers.size() > kMostNamed) {
    parts->push_back(fmt::format(
        "{} more",
        CountOf(static_cast<long long>(spec.stragglers.size() - kMostNamed), "straggler")));
  }
  const RandomStragglers& random = spec.random_stragglers;
  if (random.share_of_gpus_per_day > 0) {
    parts->push_back(fmt::format("{} of the GPUs a day become stragglers for {} (its rank {})",
                                 Percent(random.share_of_gpus_per_day),
                                 SpanOfTime(random.duration_seconds),
                                 WhatIsWrong(random.kind, random.value)));
  }
  if (!spec.control.reacts) {
    parts->push_back("nobody reacts to stragglers");
  } else if (spec.control.delay_seconds > 0) {
    parts->push_back(
        fmt::format("new plans {} after a change", SpanOfTime(spec.control.delay_seconds)));
  }
}

}  // namespace

std::string SpanOfTime(double seconds) {
  if (seconds > 0 && seconds < 1e-3) return fmt::format("{:.4g} us", 1e6 * seconds);
  if (seconds > 0 && seconds < 1) return fmt::format("{:.4g} ms", 1e3 * seconds);
  if (seconds >= 86400) return fmt::format("{:.4g} d", seconds / 86400);
  if (seconds >= 3600) return fmt::format("{:.4g} h", seconds / 3600);
  if (seconds >= 120) return fmt::format("{:.4g} min", seconds / 60);
  return fmt::format("{:.4g} s", seconds);
}

bool HasStragglers(const EmulationSpec& spec) {
  return !spec.stragglers.empty() || spec.random_stragglers.share_of_gpus_per_day > 0;
}

std::string ConditionsInWords(const Conditions& conditions) {
  std::vector<std::string> parts;
  DescribeNoise(conditions.noise, conditions.ranges, &parts);
  DescribeSwitching(conditions.switching, conditions.ranges, &parts);
  if (parts.empty()) parts.emplace_back("no noise, no late clocks");
  if (conditions.change_joules > 0) {
    parts.push_back(fmt::format("{:g} J for a change of clock", conditions.change_joules));
  }
  if (conditions.max_changes) {
    parts.push_back(
        fmt::format("at most {} an iteration",
                    CountOf(static_cast<long long>(*conditions.max_changes), "change")));
  }
  return fmt::format("{}; at most {} slower with a confidence of {}.", fmt::join(parts, "; "),
                     Percent(conditions.max_slowdown), Percent(conditions.confidence));
}

std::string ExpectedInWords(const ExpectedFigures& figures) {
  return fmt::format("saving {}, slowdown {}, {:.0f} clock calls an iteration",
                     FormatPercent(figures.saving_percent, 2),
                     FormatSignedPercent(figures.slowdown_percent, 3), figures.clock_calls);
}

std::string PriceOfChangesText(double change_joules, std::string_view name,
                               const CalledRun& baseline, const CalledRun& run,
                               std::string_view of_what) {
  const double before = change_joules * baseline.clock_calls;
  const double after = change_joules * run.clock_calls;
  return fmt::format(
      "{}{} cost {} ({}: {} each). With this price the saving is {}. Other figures leave the price "
      "out, unless they say so.",
      CountOf(std::llround(run.clock_calls), "clock call"), of_what, FormatJoules(after), name,
      FormatJoules(change_joules),
      FormatPercent(report::PercentSaved(run.joules + after, baseline.joules + before), 2));
}

std::string ScenarioInWords(const EmulationSpec& spec) {
  std::vector<std::string> parts;
  DescribeNoise(spec.noise, {}, &parts);
  DescribeSwitching(spec.switching, {}, &parts);
  if (HasStragglers(spec)) DescribeStragglers(spec, &parts);
  if (parts.empty()) return "no noise, no late clocks, no stragglers.";
  return fmt::format("{}; seed {}.", fmt::join(parts, "; "), spec.seed);
}

std::string FormatNotes(const std::vector<Note>& notes, const Style& style) {
  std::string out;
  for (const Note& note : notes) {
    const std::string text = NoteText(note);
    out += Fact(note.severity == Severity::kOdd ? "Note" : "WARNING",
                text + (text.ends_with('?') ? "" : "."), style);
  }
  return out;
}

Printout InsteadOfFigures(std::string notes, const Style& style) {
  Printout printout(
      std::move(notes) +
      Fact(
          "Figures",
          fmt::format("{0}, so they are not shown: {1}, and plan again. If it is meant, plan again "
                      "with --accept-implausible. (--json prints the figures as they are.)",
                      kNotBelievable, kCorrectFirst),
          style));
  printout.is_refusal = true;
  return printout;
}

void WriteNotes(const std::vector<Note>& notes) {
  for (const Note& note : notes) {
    WriteStandardError(
        fmt::format("perseus: {}{}\n",
                    note.severity == Severity::kOdd ? "" : "warning: ", Printable(NoteText(note))));
  }
}

std::vector<std::string> PipelineRemarks(const CostedPipeline& pipeline, int virtual_stages) {
  std::vector<std::string> remarks;
  const int ranks = pipeline.dag.num_ranks;
  if (virtual_stages > 1) {
    const int gpus = ranks * pipeline.tensor_parallel;
    remarks.push_back(
        fmt::format("{} stages are {} on each of {} ranks: this pipeline is {}, not {}.",
                    ranks * virtual_stages, virtual_stages, ranks, CountOf(gpus, "GPU"),
                    gpus * virtual_stages));
  }
  const auto& computations = pipeline.dag.computations;
  if (std::any_of(computations.begin(), computations.end(), [](const Computation& each) {
        return each.fused && each.id.type == ComputationType::kForward;
      })) {
    remarks.emplace_back(
        "a fused forward and backward is planned as one computation at one knob, and takes the sum "
        "of both times: what the GPU gains by overlapping them is not in the profile.");
  }
  return remarks;
}

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
  const auto add = [&](bool chosen, const std::string& label, const ReportRow& row) {
    const double slower =
        PercentOver(row.iteration_time_seconds, summary.baseline->iteration_time_seconds);
    table.AddRow({chosen ? ">" : "", label, TableSeconds(row.iteration_time_seconds, time_scale),
                  FormatSignedPercent(slower, 2),
                  WithThousands(row.energy_joules * energy_scale, 1),
                  FormatPercent(row.saving_percent, 2), WithThousands(row.average_power_watts, 1),
                  FormatPercent(report::ShownGap(report::ProvenBoundOf(row).gap_percent), 3)});
  };
  for (std::size_t i = 0; i < summary.rows.size(); ++i) {
    const ReportRow& row = summary.rows[i];
    // Points of the same time are one line. That of the conditions follows the first of them.
    std::string label = row.label;
    const ReportRow* held = nullptr;
    for (; i + 1 < summary.rows.size(); ++i) {
      const ReportRow& next = summary.rows[i + 1];
      if (next.name == kRobustRowName) {
        held = &next;
      } else if (SameTime(next.requested_time_seconds, row.requested_time_seconds)) {
        label += ", " + next.label;
      } else {
        break;
      }
    }
    if (!row.feasible) {
      table.AddRow(
          {"", label, TableSeconds(row.requested_time_seconds, time_scale), "", "no plan"});
      continue;
    }
    add(row.chosen, label, row);
    if (held != nullptr) add(true, held->label, *held);
  }
  return table.Format(style.rule());
}

std::string NextSteps(const PlanSummary& summary, const Style& style) {
  std::string text;
  if (summary.output_directory.empty()) {
    text =
        "-o DIR writes this plan and a report; --at chooses another row (1.02x, min-energy, 5.3s).";
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
  const double after = pipelines * summary.chosen->energy_joules;
  return Fact("Job",
              fmt::format("{} (--dp): {} an iteration instead of {}, saving {}; {} instead of {}.",
                          CountOf(summary.data_parallel, "pipeline"), FormatJoules(after),
                          FormatJoules(before), FormatJoules(before - after),
                          FormatWatts(pipelines * summary.chosen->average_power_watts),
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
    // Always answer the chosen time.
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
        "time and energy, backward_weight the rest (split_ratio).",
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
      "at most this much. min energy: the plan of least energy. T*: the slowest plan that can be "
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
  const Plan& chosen = *summary.chosen;
  out += '\n';
  if (chosen.saving_interval && !summary.held) {
    out += Fact("Saving",
                fmt::format("{} ({}).", FormatPercent(chosen.saving_percent, 2),
                            report::IntervalText(*chosen.saving_interval)),
                style);
  }
  if (chosen.default_clocks) {
    const std::string iteration =
        fmt::format("{} and {}", FormatSeconds(chosen.default_clocks->iteration_time_seconds),
                    FormatJoules(chosen.default_clocks->energy_joules));
    out += Fact("Default clocks",
                report::DefaultClocksText(*chosen.default_clocks, iteration,
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
  if (summary.held) out += FormatRobustSummary(*summary.held, style);
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

namespace {

// As it is printed, so that what is printed adds up.
double Rounded(double percent) { return std::round(100 * percent) / 100; }

bool HasPrice(const RobustSummary& held) { return held.robust.conditions.change_joules > 0; }

// The saving of emulated figures with the price of their clock calls.
double NetSaving(double change_joules, const ExpectedFigures& figures,
                 const ExpectedFigures& baseline) {
  // As it is emulated where nothing is added.
  if (!(change_joules > 0)) return figures.saving_percent;
  return report::PercentSaved(figures.energy_joules + change_joules * figures.clock_calls,
                              baseline.energy_joules + change_joules * baseline.clock_calls);
}

double NetSaving(const RobustSummary& held, const ExpectedFigures& figures) {
  return NetSaving(held.robust.conditions.change_joules, figures, held.baseline);
}

// " in the same time (+0.3 %)", where that is not the target's.
std::string ComparedHow(const RobustSummary& held) {
  if (!held.at_own_time) return "";
  return fmt::format(" in the same time ({})",
                     FormatSignedPercent(held.without_conditions.slowdown_percent, 3));
}

// States the cost of the conditions.
std::string Cost(const RobustSummary& held) {
  const RobustPlan& robust = held.robust;
  const double paper = Rounded(held.without_conditions.net_saving_percent);
  const double here = Rounded(NetSaving(held, held.expected));
  const double most = Rounded(robust.bound.saving_without_switching_percent);
  const std::string without = fmt::format("without the conditions a plan would save {}{}",
                                          FormatPercent(paper, 2), ComparedHow(held));
  const std::string both = HasPrice(held) ? " (both with the price of their changes)" : "";
  if (here >= paper) return fmt::format("{}, no more than this one{}.", without, both);
  std::string text =
      fmt::format("{}, and this one saves {}{}.", without, FormatPercent(here, 2), both);
  // Omit a bound that excludes nothing, or that the plan already reaches.
  if (most >= paper || most <= here) return text;
  return fmt::format("{} {}, no plan can save more than {}{}.", text,
                     robust.conditions.noise.any() ? "With this noise" : "Whatever the latency",
                     FormatPercent(most, 2), robust.conditions.noise.any() ? " (an estimate)" : "");
}

// A slowdown to accept, as a flag takes it: two digits, and not less.
std::string AsAccepted(double share) {
  const double digit = std::pow(10, std::floor(std::log10(100 * share)) - 1);
  return fmt::format("{:.6g}%", std::ceil(100 * share / digit - 1e-9) * digit);
}

// Noise that is drawn once for a job is no mean over iterations: where little may be slowed for
// it, more accepted slowdown gains most. Empty where that is not so.
std::string WhatWouldHelp(const RobustSummary& held) {
  constexpr double kWorthSaying = 0.5;  // Points.
  const RobustPlan& robust = held.robust;
  const Conditions& conditions = robust.conditions;
  if (!conditions.noise.once() ||
      NetSaving(held, held.paper) < NetSaving(held, held.expected) + kWorthSaying ||
      robust.paper_max_slowdown <= conditions.max_slowdown) {
    return "";
  }
  const bool may_be_taken =
      !conditions.max_changes || held.paper_changes <= *conditions.max_changes;
  const std::string_view what = conditions.noise.per_gpu == 0     ? "stages"
                                : conditions.noise.per_stage == 0 ? "GPUs"
                                                                  : "stages and GPUs";
  const std::string confidence = NameOf(held.settings, "confidence");
  const std::string more =
      may_be_taken
          ? fmt::format(
                "If you accept {}, the plan without conditions is good enough and saves {}{}. A "
                "lower {} also helps",
                SettingOf(held.settings, "max_slowdown", AsAccepted(robust.paper_max_slowdown)),
                FormatPercent(NetSaving(held, held.paper), 2),
                HasPrice(held) ? " with the price of its changes" : "", confidence)
          : fmt::format("A higher {} or a lower {} lets more computations be slowed",
                        NameOf(held.settings, "max_slowdown"), confidence);
  return fmt::format(
      "nobody knows beforehand which {0} of a job are slow. If at least {1:g} % of all jobs must "
      "be at most {2:g} % slower, {3} can be slowed down. {4}.",
      what, 100 * conditions.confidence, 100 * conditions.max_slowdown,
      NetSaving(held, held.expected) < kWorthSaying ? "hardly anything" : "only little", more);
}

// Of calls in another mode, where they save more.
std::string OtherCalls(const RobustSummary& held) {
  const OtherCallMode& other = *held.other_calls;
  return fmt::format("with {}{} instead of {}, a plan would save at least {}{}, and be {} slower.",
                     SettingOf(held.settings, "call_ahead", CallAheadName(other.call_ahead)),
                     other.call_ahead == CallAhead::kPredicted ? " (as Perseus' client calls)" : "",
                     CallAheadName(held.robust.conditions.switching.call_ahead),
                     FormatPercent(other.net_saving_percent, 2),
                     HasPrice(held) ? " with the price of its changes" : "",
                     FormatPercent(other.expected.slowdown_percent, 3));
}

// "an iteration with 100 changes of clock saves 11.20 %, with 200 changes 12.01 %", a few of many.
std::string PriceCurve(const std::vector<ChangePricePoint>& curve, bool priced) {
  constexpr std::size_t kMost = 8;
  // Points that print alike are one: the one with the fewest changes.
  std::vector<std::pair<int, std::string>> differing;
  for (const ChangePricePoint& point : curve) {
    std::string saving = FormatPercent(point.saving_percent, 2);
    if (differing.empty() || differing.back().second != saving) {
      differing.emplace_back(point.changes, std::move(saving));
    }
  }
  std::vector<std::string> points;
  const std::size_t shown = std::min(kMost, differing.size());
  for (std::size_t k = 0; k < shown; ++k) {
    const auto& [changes, saving] =
        differing[shown == 1 ? 0 : k * (differing.size() - 1) / (shown - 1)];
    const std::string with =
        changes == 0 ? "without changes" : "with " + CountOf(changes, "change");
    points.push_back(k == 0 ? fmt::format("an iteration {} of clock saves {}", with, saving)
                            : fmt::format("{} {}", with, saving));
  }
  return fmt::format("{}{}.", fmt::join(points, ", "),
                     priced ? " (the price of the changes is subtracted)" : "");
}

// In no other figure.
std::string PriceOfCalls(const RobustSummary& held) {
  const ExpectedFigures& expected = held.expected;
  return PriceOfChangesText(
      held.robust.conditions.change_joules, NameOf(held.settings, "change_price"),
      {held.baseline.clock_calls, held.baseline.energy_joules},
      {expected.clock_calls, expected.energy_joules}, " an iteration of a pipeline");
}

// States the plan's figures at the corners of the conditions' ranges.
std::string Corners(const RobustSummary& held) {
  return fmt::format(
      "these figures are of the middle of the conditions' ranges. At their corners, the plan saves "
      "at least {}; its slowdown is at most {}.",
      FormatPercent(held.expected.least_saving_percent, 2),
      FormatSignedPercent(held.expected.most_slowdown_percent, 3));
}

// Each under a name of its own.
std::vector<std::pair<std::string_view, std::string>> Sentences(const RobustSummary& held) {
  const ExpectedFigures& expected = held.expected;
  std::vector<std::pair<std::string_view, std::string>> sentences;
  sentences.emplace_back("Under", ConditionsInWords(held.robust.conditions));
  sentences.emplace_back("Emulated",
                         fmt::format("{}; against all clocks at maximum under the same conditions.",
                                     ExpectedInWords(expected)));
  if (held.robust.with_profile_errors) {
    sentences.emplace_back(
        "Profile", fmt::format("it also holds if times at lowered clocks are off by the standard "
                               "errors that the profile states; without that: {}.",
                               SettingOf(held.settings, "profile_errors", "false")));
  }
  if (held.robust.conditions.ranges.any()) sentences.emplace_back("Range", Corners(held));
  if (held.robust.conditions.change_joules > 0) {
    sentences.emplace_back("Price", PriceOfCalls(held));
  }
  sentences.emplace_back("Cost", Cost(held));
  if (std::string help = WhatWouldHelp(held); !help.empty()) {
    sentences.emplace_back("Helps", std::move(help));
  }
  if (held.other_calls) sentences.emplace_back("Calls", OtherCalls(held));
  std::string paper = fmt::format(
      "a plan made without the conditions predicts a saving of {}. Emulated under them: {}.",
      FormatPercent(held.robust.paper_plan.saving_percent, 2), ExpectedInWords(held.paper));
  if (HasPrice(held)) {
    paper += fmt::format(" With the price of its changes the saving is {}.",
                         FormatPercent(NetSaving(held, held.paper), 2));
  }
  sentences.emplace_back("Otherwise", std::move(paper));
  if (!held.robust.price_curve.empty()) {
    sentences.emplace_back(
        "Changes", PriceCurve(held.robust.price_curve, held.robust.conditions.change_joules > 0));
  }
  return sentences;
}

Result<RobustPlan> Search(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                          ProgressLine* progress) {
  return PlanUnder(planner, seconds, spec, progress->Function());
}

PaperPlan WithoutConditions(const Planner& planner, const Plan& plan, double seconds,
                            double change_joules) {
  const Plan& baseline = planner.baseline();
  const auto joules = [&](const Plan& of) {
    return of.energy_joules +
           change_joules * CountKnobChanges(planner.pipeline().dag, of.options)->all();
  };
  PaperPlan paper;
  paper.slowdown_percent = report::PercentOver(seconds, baseline.iteration_time_seconds);
  paper.net_saving_percent = change_joules > 0
                                 ? report::PercentSaved(joules(plan), joules(baseline))
                                 : plan.saving_percent;
  return paper;
}

// A plan that may take more time than the target is compared with one without conditions for that
// time: always where it would seem to give up nothing, else where the difference is more than the
// slowdown that is usual (0.1 %).
void CompareWithoutConditions(const Planner& planner, double seconds,
                              const PlanConstraints& constraints, double effort,
                              RobustSummary* held) {
  constexpr double kRounding = 0.0005;  // Points, as slowdowns are printed.
  constexpr double kUsual = 0.15;
  const double change_joules = held->robust.conditions.change_joules;
  held->without_conditions =
      WithoutConditions(planner, held->robust.paper_plan, seconds, change_joules);
  const double slower = held->expected.slowdown_percent - held->without_conditions.slowdown_percent;
  const bool seems_free = Rounded(NetSaving(*held, held->expected)) >=
                          Rounded(held->without_conditions.net_saving_percent);
  if (slower <= (seems_free ? kRounding : kUsual)) return;
  const double taken =
      planner.baseline().iteration_time_seconds * (1 + held->expected.slowdown_percent / 100);
  const Result<Plan> plan = planner.PlanFor(taken, {.constraints = constraints, .effort = effort});
  // More time than the target allows a plan whenever the target did.
  if (!plan) return;
  held->without_conditions = WithoutConditions(planner, *plan, taken, change_joules);
  held->at_own_time = true;
}

// Tries the other modes of clock calls, by a sixteenth of the search: the saving found is a lower
// bound.
Result<void> TryOtherCalls(const Job& job, const Planner& planner, double seconds, double effort,
                           ProgressLine* progress, RobustSummary* held) {
  constexpr double kShare = 1.0 / 16;
  constexpr double kLeastEffort = 1.0 / 64;
  constexpr double kWorthTrying = 0.5;  // Points that late clocks may cost.
  constexpr double kWorthSaying = 0.1;
  const RobustPlan& robust = held->robust;
  const ClockSwitching& switching = robust.conditions.switching;
  // The price of this plan's changes would be on both sides.
  if (!(switching.latency_seconds > 0) || robust.bound.saving_without_switching_percent <
                                              held->expected.saving_percent + kWorthTrying) {
    return {};
  }
  double most = NetSaving(*held, held->expected) + kWorthSaying;
  for (const CallAhead mode : {CallAhead::kNone, CallAhead::kEnd, CallAhead::kPredicted}) {
    if (mode == switching.call_ahead) continue;
    progress->SetWhat(fmt::format("the same with --call-ahead {}", CallAheadName(mode)));
    RobustPlanSpec spec = RobustSpecOf(job.settings);
    spec.conditions.switching.call_ahead = mode;
    spec.effort = std::max(kLeastEffort, kShare * effort);
    spec.with_bound = false;
    const Result<RobustPlan> found = Search(planner, seconds, spec, progress);
    if (!found && found.error().code == ErrorCode::kInfeasible) continue;
    if (!found) return tl::unexpected(found.error());
    const auto figures = EmulateUnder(planner, {&found->plan, &planner.baseline()},
                                      {.conditions = spec.conditions, .pipelines = spec.pipelines});
    if (!figures) return tl::unexpected(figures.error());
    const double net = NetSaving(spec.conditions.change_joules, (*figures)[0], (*figures)[1]);
    if (net <= most) continue;
    most = net;
    held->other_calls = {mode, (*figures)[0], net};
  }
  return {};
}

}  // namespace

Result<RobustPlan> SearchThatHolds(const Job& job, const Planner& planner, double seconds,
                                   double effort, bool with_bound, ProgressLine* progress) {
  progress->SetWhat("robust plan");
  RobustPlanSpec spec = RobustSpecOf(job.settings);
  spec.effort = effort;
  spec.with_bound = with_bound;
  return Search(planner, seconds, spec, progress);
}

Result<RobustSummary> MakeRobustPlan(const Job& job, const Planner& planner, double seconds,
                                     double effort, ProgressLine* progress) {
  Result<RobustPlan> robust = SearchThatHolds(job, planner, seconds, effort, true, progress);
  if (!robust) return tl::unexpected(robust.error());
  RobustSummary held;
  held.robust = *std::move(robust);
  progress->SetWhat("emulation");
  const auto figures =
      EmulateUnder(planner, {&held.robust.plan, &held.robust.paper_plan, &planner.baseline()},
                   {.conditions = held.robust.conditions, .pipelines = held.robust.pipelines});
  if (!figures) return tl::unexpected(figures.error());
  held.expected = (*figures)[0];
  held.paper = (*figures)[1];
  held.baseline = (*figures)[2];
  held.settings = job.settings;
  held.paper_changes =
      CountKnobChanges(planner.pipeline().dag, held.robust.paper_plan.options)->all();
  CompareWithoutConditions(planner, seconds, RobustSpecOf(job.settings).constraints, effort, &held);
  if (auto tried = TryOtherCalls(job, planner, seconds, effort, progress, &held); !tried) {
    return tl::unexpected(tried.error());
  }
  return held;
}

std::vector<std::string> RobustPlanNotes(const RobustSummary& held) {
  std::vector<std::string> notes;
  for (const auto& [name, sentence] : Sentences(held)) notes.push_back(sentence);
  return notes;
}

std::string FormatRobustSummary(const RobustSummary& held, const Style& style) {
  std::string out;
  for (const auto& [name, sentence] : Sentences(held)) {
    out += Fact(name, sentence, style);
  }
  return out;
}

}  // namespace perseus::cli
