// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/plan_figures.h"
#include "perseus/report.h"
#include "report/assets.h"
#include "report/check_input.h"
#include "report/document.h"
#include "report/figures.h"
#include "report/frontier_plot.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/shape_legend.h"
#include "report/stage_table.h"
#include "report/text.h"

namespace perseus {
inline namespace v0 {
namespace {

using report::ChangePercent;
using report::DisplayUnit;
using report::FileName;
using report::Plural;
using report::SavingPercent;

constexpr std::string_view kControls =
    "<noscript><p>The timelines are drawn by a script. timeline.pftrace, beside this file, holds "
    "the "
    "same for Perfetto.</p></noscript>\n"
    "<div class=\"controls\"><button type=\"button\" id=\"zoom-in\">Zoom in</button>"
    "<button type=\"button\" id=\"zoom-out\">Zoom out</button>"
    "<button type=\"button\" id=\"zoom-all\">Whole iteration</button>"
    "<span>Drag to pan. Ctrl + wheel zooms; after a click into a timeline the wheel alone does. "
    "Keys: <kbd>+</kbd> <kbd>\u2212</kbd> <kbd>\u2190</kbd> <kbd>\u2192</kbd> <kbd>0</kbd>, "
    "<kbd>n</kbd> <kbd>p</kbd> <kbd>\u2191</kbd> <kbd>\u2193</kbd> walk through computations."
    "</span><output id=\"range\"></output></div>\n"
    "<div id=\"announce\" class=\"visually-hidden\" aria-live=\"polite\"></div>\n";

class PlanPage {
 public:
  explicit PlanPage(const ReportInput& input)
      : input_(input),
        pipeline_(*input.pipeline),
        dag_(input.pipeline->dag),
        baseline_(*input.baseline),
        chosen_(*input.chosen),
        knob_(pipeline_.knobs_are_numbers ? "clock" : "knob"),
        baseline_name_(pipeline_.knobs_are_numbers ? "all-maximum clocks" : "baseline knobs"),
        time_(report::TimeUnit(baseline_.iteration_time_seconds)),
        energy_(report::EnergyUnit(baseline_.energy_joules)),
        power_(report::PowerUnit(baseline_.average_power_watts)) {}

  std::string Format() {
    const report::FrontierPlot plot = report::DrawFrontier(input_);
    Header();
    FrontierSection(plot.svg);
    SavingsSection();
    TimelinesSection();
    report::AddStageSavings(pipeline_, baseline_, chosen_, input_.knob_unit, &document_);
    SmallPrint();
    document_.scripts = true;
    document_.html_behind = fmt::format(
        "<div id=\"tooltip\" role=\"tooltip\"></div>\n"
        "<script type=\"application/json\" id=\"report-data\">{}</script>\n"
        "<script>\n{}</script>\n",
        report::ScriptJson(report::PageData(input_, plot)), report::ReportJs());
    return report::HtmlOf(document_);
  }

 private:
  void Header() {
    const double slower =
        100 * (chosen_.iteration_time_seconds / baseline_.iteration_time_seconds - 1);
    document_.title = input_.title.empty() ? "Energy plan" : input_.title;
    document_.subtitle = fmt::format("{}, {} per iteration", report::ShapeOf(dag_),
                                     Plural(dag_.size(), "computation"));
    document_.warning = report::ModelledWarning(pipeline_.modelled);
    document_.notes = input_.notes;
    if (input_.conditions) {
      HeaderUnderConditions();
      return;
    }
    document_.figures = {
        {"Saving of energy", SavingPercent(chosen_.saving_percent, 2),
         fmt::format(
             "{} \u2192 {} an iteration{}", energy_.Text(baseline_.energy_joules),
             energy_.Text(chosen_.energy_joules),
             (chosen_.saving_interval ? "; " + report::IntervalText(*chosen_.saving_interval)
                                      : "") +
                 Unlocked()),
         report::ClassOfSaving(chosen_.saving_percent)},
        {"Iteration time", time_.Text(chosen_.iteration_time_seconds),
         fmt::format("{} against {}", ChangePercent(slower, 2), baseline_name_)},
        {"Average power of the pipeline", power_.Text(chosen_.average_power_watts),
         fmt::format("from {}", power_.Text(baseline_.average_power_watts))},
        {"Certificate",
         fmt::format("\u2264\u00a0{:.3f}\u00a0%",
                     report::ShownGap(report::ProvenBoundOf(chosen_).gap_percent)),
         "above the least possible energy"}};
  }

  std::string Unlocked() const {
    if (!chosen_.unlocked) return "";
    const std::string iteration =
        fmt::format("{} and {}", time_.Text(chosen_.unlocked->iteration_time_seconds),
                    energy_.Text(chosen_.unlocked->energy_joules));
    return "; " + report::UnlockedText(*chosen_.unlocked, iteration,
                                       report::ProfileOrigin(pipeline_.modelled));
  }

  // What the emulator makes of the plan, not what it has on paper.
  void HeaderUnderConditions() {
    const ExpectedFigures& expected = input_.expected;
    const double before = expected.energy_joules / (1 - expected.saving_percent / 100);
    document_.figures = {
        {"Saving of energy, under the conditions", SavingPercent(expected.saving_percent, 2),
         fmt::format("{} \u2192 {} an iteration; on paper {}", energy_.Text(before),
                     energy_.Text(expected.energy_joules),
                     SavingPercent(chosen_.saving_percent, 2)),
         report::ClassOfSaving(expected.saving_percent)},
        {"Iteration time, under the conditions", time_.Text(expected.iteration_time_seconds),
         fmt::format("{} against {} under the same", ChangePercent(expected.slowdown_percent, 2),
                     baseline_name_)},
        {"Average power of the pipeline",
         power_.Text(expected.energy_joules / expected.iteration_time_seconds),
         "under the conditions"},
        {input_.bound_is_proven ? "Bound" : "Bound (an estimate)",
         SavingPercent(input_.bound_percent, 2), "no plan saves more under the conditions"}};
  }

  void FrontierSection(std::string_view svg) {
    const std::string line =
        input_.frontier->fitted
            ? "an exponential fit of the profile, which bounds nothing; the gaps below are to the "
              "exact lower bound of the measured options"
            : fmt::format(
                  "the {} lower bound: no assignment of the profiled clocks to "
                  "computations uses less energy in that time",
                  input_.frontier->certified_error > 0 ? "certified" : "exact");
    document_.Heading("Energy over iteration time");
    document_.Paragraph(
        fmt::format("The blue line is {}. Circles are plans that can be run; the "
                    "diamond is the plan of this report.",
                    line));
    document_.Figure(report::Scrolled(svg));
  }

  void SavingsSection() {
    document_.Heading("Savings");
    report::Table table;
    table.caption =
        "One pipeline, one iteration. Every line is a plan with one profiled clock per "
        "computation.";
    table.columns = {"Plan",
                     fmt::format("Time ({})", time_.name),
                     "Slowdown",
                     fmt::format("Energy ({})", energy_.name),
                     "Saving",
                     fmt::format("Average power ({})", power_.name),
                     fmt::format("Lower bound ({})", energy_.name),
                     "Gap"};
    AddSavings(MakeReportRow(std::string(baseline_name_), baseline_), "baseline", &table);
    bool chosen_listed = false;
    for (const ReportRow& row : input_.rows) {
      if (!row.feasible) continue;
      AddSavings(row, row.chosen ? "chosen" : "", &table);
      chosen_listed = chosen_listed || row.chosen;
    }
    if (!chosen_listed) AddSavings(MakeReportRow("this plan", chosen_), "chosen", &table);
    document_.Put(std::move(table));
  }

  void AddSavings(const ReportRow& row, const std::string& css, report::Table* table) const {
    table->Add(
        {{row.label},
         {time_.Number(row.iteration_time_seconds)},
         {ChangePercent(
             report::PercentOver(row.iteration_time_seconds, baseline_.iteration_time_seconds), 2)},
         {energy_.Number(row.energy_joules)},
         {css == "baseline" ? "\u2013" : SavingPercent(row.saving_percent, 2)},
         {power_.Number(row.average_power_watts)},
         {energy_.Number(report::ProvenBoundOf(row).lower_bound_joules)},
         {fmt::format("{:.3f}\u00a0%", report::ShownGap(report::ProvenBoundOf(row).gap_percent))}},
        css);
  }

  void TimelinesSection() {
    document_.Heading("Timelines");
    document_.Paragraph(fmt::format(
        "One iteration, one lane per rank, both on the same time scale. Colour is the {}; the red "
        "line marks the critical path. The last lane is the power that the whole pipeline draws.",
        knob_));
    document_.Figure("<div class=\"legend\">\n<div id=\"clocks\"></div>\n" +
                     report::DrawShapes(pipeline_) + "</div>\n");
    document_.Figure(Timeline("before", fmt::format("Before: {}", baseline_name_), baseline_));
    document_.Figure(Timeline("after", "After: this plan", chosen_));
    document_.Figure(std::string(kControls));
  }

  std::string Timeline(std::string_view id, std::string_view name, const Plan& plan) const {
    return fmt::format(
        "<figure class=\"timeline\"><figcaption>{0}<span>{1}, {2}</span></figcaption>"
        "<canvas id=\"{3}\" tabindex=\"0\" role=\"img\" aria-label=\"{0}. {4} on {5}, iteration "
        "time {1}, energy {2}, {6}.\"></canvas></figure>\n",
        name, time_.Text(plan.iteration_time_seconds), energy_.Text(plan.energy_joules), id,
        Plural(dag_.size(), "computation"), Plural(dag_.num_ranks, "rank"),
        fmt::format("{} of {}", Plural(CountKnobChanges(dag_, plan.options)->all(), "change"),
                    knob_));
  }

  std::string BlockingPower() const {
    const std::vector<double>& watts = pipeline_.rank_blocking_power_watts;
    if (watts.empty()) return "\u2013";
    const double gpus = pipeline_.tensor_parallel;
    const auto [low, high] = std::minmax_element(watts.begin(), watts.end());
    const std::string text = *low == *high ? fmt::format("{:.6g} W per GPU", *low / gpus)
                                           : fmt::format("{:.6g} to {:.6g} W per GPU, by rank",
                                                         *low / gpus, *high / gpus);
    return text + (pipeline_.waiting_depends_on_clock() ? ", at the clock of the least"
                                                        : fmt::format(", at any {}", knob_));
  }

  std::string ConstraintText(model::ConstraintUnit unit, double value) const {
    return unit == model::ConstraintUnit::kShare ? fmt::format("{:.4g} %", 100 * value)
                                                 : fmt::format("{:.4g} standard deviations", value);
  }
  std::string ConstraintText(model::ConstraintUnit /*unit*/, Granularity granularity) const {
    return std::string(GranularityName(granularity));
  }

  std::string Constraints() const {
    const PlanConstraints& constraints = input_.constraints;
    if (!constraints.any()) return fmt::format("none: every computation has its own {}", knob_);
    std::string text = fmt::format("one {}", knob_);
    for (const model::Constraint& each : model::Constraints()) {
      // Whether each computation has a clock of its own is said in any case.
      const bool first = &each == model::Constraints().data();
      if (!first && !each.IsIn(constraints)) continue;
      text += fmt::format("{}{} {}", first ? " " : ", ", each.says,
                          each.On(constraints, [&](const auto& value) {
                            return ConstraintText(each.unit, value);
                          }));
    }
    return text;
  }

  void SmallPrint() {
    document_.Heading("What this rests on", "small");
    std::vector<report::Fact> facts;
    const auto fact = [&](std::string name, std::string text) {
      if (!text.empty()) facts.push_back({std::move(name), std::move(text)});
    };
    fact("Profile", std::string(FileName(input_.profile->source)));
    fact("SHA-256", input_.profile->sha256);
    fact("Schedule", report::ShapeOf(dag_));
    fact("Blocking power", BlockingPower());
    fact("Tensor parallel", Plural(pipeline_.tensor_parallel, "GPU") + " per rank");
    if (input_.data_parallel > 1) {
      fact("Data parallel",
           fmt::format("{}: the whole job saves {} per iteration",
                       Plural(input_.data_parallel, "pipeline"),
                       energy_.Text((baseline_.energy_joules - chosen_.energy_joules) *
                                    input_.data_parallel)));
    }
    fact("Constraints", Constraints());
    fact("Requested time",
         fmt::format("{}, {} the realised {}", time_.Text(chosen_.requested_time_seconds),
                     input_.conditions ? "for which the conditions accept" : "never exceeded by",
                     time_.Text(chosen_.iteration_time_seconds)));
    fact("Clock changes",
         fmt::format("{}, {}", report::ChangesText(*CountKnobChanges(dag_, chosen_.options)),
                     report::DistinctText(chosen_, "value")));
    document_.Facts(std::move(facts));
    std::vector<std::string> items = {
        input_.conditions
            ? "Planned, not measured: the figures at the top are emulated under the conditions "
              "below; tables, curve and timelines are replays of the profile's times without them. "
              "Contention between GPUs is in neither."
            : "Planned, not measured: times and energies of single computations come from the "
              "profile; the iteration is their replay on the schedule, each as early as it can "
              "start. Noise, the delay of switching clocks and contention between GPUs are not in "
              "it.",
        fmt::format("Certificate: a plan of {} cannot use less than {}; this one uses {}, at most "
                    "{:.3f} % more. {}{}",
                    time_.Text(chosen_.iteration_time_seconds),
                    energy_.Text(report::ProvenBoundOf(chosen_).lower_bound_joules),
                    energy_.Text(chosen_.energy_joules),
                    report::ShownGap(report::ProvenBoundOf(chosen_).gap_percent),
                    chosen_.discrete_bound
                        ? ""
                        : "The bound lets every computation mix neighbouring clocks, so part of "
                          "the gap may be the bound\u2019s own. ",
                    input_.frontier->certified_error > 0
                        ? fmt::format("The curve itself is certified to {:.3g} %.",
                                      100 * input_.frontier->certified_error)
                        : std::string("The curve is exact.")),
        "Energy is that of one pipeline: its computations, and blocking power while a rank waits. "
        "T_economic is the time of least energy. T* is the longest time worth planning for: a "
        "pipeline that must wait for a slower one saves by slowing down, up to T*."};
    if (chosen_.shared_knobs) {
      items.insert(items.begin() + 2, "Best: " + report::SharedKnobText(*chosen_.shared_knobs));
    }
    items.insert(items.end(), input_.remarks.begin(), input_.remarks.end());
    document_.List(std::move(items));
  }

  const ReportInput& input_;
  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  const Plan& baseline_;
  const Plan& chosen_;
  const std::string_view knob_;  // What a knob is called.
  const std::string_view baseline_name_;
  const DisplayUnit time_;
  const DisplayUnit energy_;
  const DisplayUnit power_;
  report::Document document_;
};

}  // namespace

ReportRow MakeReportRow(std::string label, const Plan& plan) {
  ReportRow row;
  static_cast<PlanFigures&>(row) = plan;
  row.label = std::move(label);
  row.discrete_bound = plan.discrete_bound;
  return row;
}

Result<std::string> FormatHtmlReport(const ReportInput& input) {
  if (auto good = report::CheckInput(input, true); !good) return tl::unexpected(good.error());
  return PlanPage(input).Format();
}

}  // namespace v0
}  // namespace perseus
