// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "report/chart.h"
#include "report/document.h"
#include "report/page.h"
#include "report/text.h"
#include "trace/trace_answer.h"
#include "trace/trace_drawings.h"

namespace perseus::trace {
namespace {

using report::Document;

std::string Seconds(double seconds) { return report::TimeUnit(seconds).Text(seconds); }

class TracePage {
 public:
  explicit TracePage(const TraceAnswer& answer)
      : answer_(answer), recording_(*answer.recording), what_if_(answer.what_if) {}

  std::string Format() {
    Header();
    Steps();
    Attributions();
    Lanes();
    LaunchDelays();
    if (answer_.energy) Energy();
    return report::HtmlOf(document_);
  }

 private:
  void Header() {
    document_.title = fmt::format("What the stragglers of {} cost", answer_.name);
    document_.subtitle = fmt::format(
        "{} of {} microbatches, {} stages, {} virtual, {} GPUs a rank; {} recorded, {} operations",
        report::Plural(recording_.pipelines, "pipeline"), recording_.microbatches,
        recording_.stages, recording_.virtual_stages, recording_.gpus_per_rank,
        report::Plural(static_cast<std::int64_t>(recording_.steps.size()), "step"),
        recording_.operations.size());
    document_.notes = answer_.notes;
    document_.figures = {
        {"Slowdown by stragglers", fmt::format("{:.4f}", what_if_.blocking_slowdown),
         "replayed / without stragglers", "hero lost"},
        {"Step as recorded", Seconds(what_if_.recorded_seconds), "mean"},
        {"Step replayed", Seconds(what_if_.replayed_seconds),
         fmt::format("{:+.2f} % over the replayed", 100 * (what_if_.launch_slowdown - 1))},
        {"Without stragglers", Seconds(what_if_.without_stragglers_seconds),
         "every operation as its kind usually is"}};
  }

  void Steps() {
    document_.Heading("Step times");
    document_.Paragraph(
        "Recorded: from the first begin to the last end. Replayed: every operation begins as soon "
        "as all that it waits for have ended, so launch delays are gone. Without stragglers: each "
        "also takes as long as its kind does in the mean (communication: in the median).");
    report::LineChart chart;
    chart.id = "steps";
    chart.title = "Step times";
    chart.x_label = "recorded step, in order";
    chart.y_label = "seconds";
    chart.series = {{"recorded", "c5", {}, true, false},
                    {"replayed", "c1", {}, true, false},
                    {"without stragglers", "c2", {}, true, false}};
    for (std::size_t i = 0; i < what_if_.steps.size(); ++i) {
      const double x = static_cast<double>(i);
      chart.series[0].points.push_back({x, what_if_.steps[i].recorded_seconds});
      chart.series[1].points.push_back({x, what_if_.steps[i].replayed_seconds});
      chart.series[2].points.push_back({x, what_if_.steps[i].without_stragglers_seconds});
    }
    document_.Figure(report::DrawLineChart(chart));
  }

  void Attributions() {
    document_.Heading("Who causes it");
    document_.Paragraph(
        "The slowdown if only these operations keep their recorded times and all others run as "
        "without stragglers. Below 1: they are faster than usual.");
    document_.Figure(DrawHeatMap(recording_, what_if_.by_place));
    report::Table stages{"By stage", {"Stage", "Slowdown"}, 1, {}};
    for (std::size_t i = 0; i < what_if_.by_stage.size(); ++i) {
      stages.Add({{fmt::format("{}", i)}, {fmt::format("{:.4f}", what_if_.by_stage[i])}});
    }
    if (!what_if_.by_stage.empty()) document_.Put(std::move(stages));
    report::Table operations{"By kind of operation", {"Operation", "Slowdown"}, 1, {}};
    for (const NamedSlowdown& each : what_if_.by_operation) {
      operations.Add({{each.name}, {fmt::format("{:.4f}", each.slowdown)}});
    }
    document_.Put(std::move(operations));
  }

  // The slowest step: its slowest pipeline, and its fastest.
  void Lanes() {
    const auto slowest = std::max_element(what_if_.steps.begin(), what_if_.steps.end(),
                                          [](const StepTimes& a, const StepTimes& b) {
                                            return a.replayed_seconds < b.replayed_seconds;
                                          });
    const int step = static_cast<int>(slowest - what_if_.steps.begin());
    document_.Heading(fmt::format("Step {}, the slowest, as recorded", slowest->step));
    document_.Paragraph(
        "One lane per stage. Forwards are low blocks, backwards fill the lane, and operations "
        "after "
        "the last computation are the lowest blocks; transfers and waiting are empty. Shown are "
        "the pipelines whose computations end last and first.");
    std::vector<double> ends(static_cast<std::size_t>(recording_.pipelines));
    const int begin = recording_.first_of[recording_.Cell(step, 0, 0)];
    const int end = recording_.first_of[recording_.Cell(step + 1, 0, 0)];
    for (int i = begin; i < end; ++i) {
      const Operation& operation = recording_.operations[i];
      if (!IsComputation(operation.kind)) continue;
      double& last = ends[static_cast<std::size_t>(operation.pipeline)];
      last = std::max(last, operation.end_seconds());
    }
    const auto [first, last] = std::minmax_element(ends.begin(), ends.end());
    for (const auto chosen : {last, first}) {
      const int pipeline = static_cast<int>(chosen - ends.begin());
      document_.Paragraph(fmt::format("Pipeline {}", pipeline));
      document_.Figure(DrawRecordedLanes(recording_, step, pipeline));
      if (first == last) break;
    }
  }

  void LaunchDelays() {
    document_.Heading("Where recorded and replayed differ");
    double gaps = 0;
    for (const LaunchDelay& delay : what_if_.launch_delays) gaps += delay.seconds;
    document_.Paragraph(fmt::format(
        "A recorded step is {1} longer than a replayed one. Launch delays are {0} of that: time in "
        "which the longest chain of operations waited for nothing that was recorded (data loading, "
        "launches). The rest: the replay may begin transfers earlier, and another chain may be the "
        "longest there.",
        Seconds(gaps), Seconds(what_if_.recorded_seconds - what_if_.replayed_seconds)));
    report::Table table{"", {"Before", "Stage", "Seconds a step"}, 1, {}};
    constexpr std::size_t kMostRows = 12;
    for (std::size_t i = 0; i < what_if_.launch_delays.size() && i < kMostRows; ++i) {
      const LaunchDelay& delay = what_if_.launch_delays[i];
      table.Add({{delay.operation},
                 {fmt::format("{}", delay.stage)},
                 {fmt::format("{:.6f}", delay.seconds)}});
    }
    document_.Put(std::move(table));
  }

  void Energy() {
    const TraceEnergy& energy = *answer_.energy;
    document_.warning = answer_.costs.modelled;
    document_.Heading("What it wasted, and what plans would have saved");
    document_.Paragraph(fmt::format("{} Profile: {}; waiting GPUs draw {} W.", kRelativeCosts,
                                    answer_.costs.name, answer_.costs.blocking_power_watts));
    const auto share = [&](double joules) {
      return energy.energy_joules > 0 ? 100 * joules / energy.energy_joules : 0;
    };
    report::Table split{"Energy of a step, mean", {"Part", "J", "%"}, 1, {}};
    const auto row = [&](const char* name, double joules) {
      split.Add({{name}, {fmt::format("{:.0f}", joules)}, {fmt::format("{:.2f}", share(joules))}});
    };
    row("useful", energy.useful_joules);
    row("intrinsic bloat", energy.intrinsic_joules);
    row("extrinsic bloat", energy.extrinsic_joules);
    row("blocking", energy.blocking_joules);
    document_.Put(std::move(split));
    report::Table plans{"", {"Plan", "Step s", "Slowdown %", "Energy J", "Saving %"}, 1, {}};
    const std::string no_plan_saves = NoPlanSaves(energy);
    for (const TracePlanOutcome& plan : energy.plans) {
      plans.Add({{plan.name},
                 {fmt::format("{:.4f}", plan.step_seconds)},
                 {fmt::format("{:+.2f}", plan.slowdown_percent)},
                 {fmt::format("{:.0f}", plan.energy_joules)},
                 {fmt::format("{:.2f}", plan.saving_percent)}});
      if (!no_plan_saves.empty()) break;
    }
    document_.Put(std::move(plans));
    if (!no_plan_saves.empty()) document_.Paragraph(no_plan_saves);
  }

  const TraceAnswer& answer_;
  const Recording& recording_;
  const WhatIf& what_if_;
  Document document_;
};

}  // namespace

std::string FormatTraceHtml(const TraceAnswer& answer) { return TracePage(answer).Format(); }

}  // namespace perseus::trace
