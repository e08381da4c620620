// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "perseus/report.h"
#include "report/assets.h"
#include "report/frontier_plot.h"
#include "report/page.h"
#include "report/page_data.h"
#include "report/stage_table.h"
#include "report/text.h"
#include "report/timeline.h"

namespace perseus {
namespace {

using report::ChangePercent;
using report::DisplayUnit;
using report::EscapeHtml;
using report::FileName;
using report::Plural;

class PlanPage {
 public:
  explicit PlanPage(const ReportInput& input)
      : input_(input),
        pipeline_(*input.pipeline),
        dag_(input.pipeline->dag),
        baseline_(*input.baseline),
        chosen_(*input.chosen),
        baseline_name_(pipeline_.knobs_are_numbers ? "all-maximum clocks" : "baseline knobs"),
        title_(EscapeHtml(input.title.empty() ? "Energy plan" : input.title)),
        time_(report::TimeUnit(baseline_.iteration_time_seconds)),
        energy_(report::EnergyUnit(baseline_.energy_joules)),
        power_(report::PowerUnit(baseline_.average_power_watts)) {}

  std::string Format() {
    const report::FrontierPlot plot = report::DrawFrontier(input_);
    html_ = report::PageHead(title_, report::ReportCss(), true);
    Header();
    FrontierSection(plot.svg);
    SavingsTable();
    Timelines();
    html_ += report::StageTable(pipeline_, baseline_, chosen_, input_.knob_unit);
    SmallPrint();
    html_ += report::PageTail(
        fmt::format("<div id=\"tooltip\" role=\"tooltip\"></div>\n"
                    "<script type=\"application/json\" id=\"report-data\">{}</script>\n"
                    "<script>\n{}</script>\n",
                    report::ScriptJson(report::PageData(input_, plot)), report::ReportJs()));
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  void Header() {
    const double slower =
        100 * (chosen_.iteration_time_seconds / baseline_.iteration_time_seconds - 1);
    Add("<header>\n<h1>{}</h1>\n<p class=\"subtitle\">{}, {}</p>\n</header>\n", title_,
        report::ShapeOf(dag_), Plural(dag_.size(), "computation") + " per iteration");
    Add("<dl class=\"figures\">\n"
        "<div><dt>Energy per iteration</dt><dd class=\"value hero\">{}</dd>"
        "<dd class=\"detail\">{} \u2192 {}</dd></div>\n",
        ChangePercent(chosen_.saving_percent, 2), energy_.Text(baseline_.energy_joules),
        energy_.Text(chosen_.energy_joules));
    Add("<div><dt>Iteration time</dt><dd class=\"value\">{}</dd>"
        "<dd class=\"detail\">{} against {}</dd></div>\n",
        time_.Text(chosen_.iteration_time_seconds), ChangePercent(-slower, 2), baseline_name_);
    Add("<div><dt>Average power of the pipeline</dt><dd class=\"value\">{}</dd>"
        "<dd class=\"detail\">from {}</dd></div>\n",
        power_.Text(chosen_.average_power_watts), power_.Text(baseline_.average_power_watts));
    Add("<div><dt>Certificate</dt><dd class=\"value\">\u2264\u00a0{:.3f}\u00a0%</dd>"
        "<dd class=\"detail\">above the least possible energy</dd></div>\n</dl>\n",
        chosen_.gap_percent);
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
    Add("<section aria-labelledby=\"h-frontier\">\n<h2 id=\"h-frontier\">Energy over iteration "
        "time</h2>\n<p class=\"lead\">The blue line is {}. Circles are plans that can be run; the "
        "diamond is the plan of this report.</p>\n<div class=\"scroll\">\n{}</div>\n</section>\n",
        line, svg);
  }

  void SavingsTable() {
    Add("<section aria-labelledby=\"h-savings\">\n<h2 id=\"h-savings\">Savings</h2>\n"
        "<div class=\"scroll\"><table>\n<caption>One pipeline, one iteration. Every line is a plan "
        "with one profiled clock per computation.</caption>\n<thead><tr><th scope=\"col\">Plan</th>"
        "<th scope=\"col\">Time ({})</th><th scope=\"col\">Slowdown</th>"
        "<th scope=\"col\">Energy ({})</th><th scope=\"col\">Change</th>"
        "<th scope=\"col\">Average power ({})</th><th scope=\"col\">Lower bound ({})</th>"
        "<th scope=\"col\">Gap</th></tr></thead>\n<tbody>\n",
        time_.name, energy_.name, power_.name, energy_.name);
    ReportRow baseline = MakeReportRow(std::string(baseline_name_), baseline_);
    SavingsRow(baseline, "baseline");
    bool chosen_listed = false;
    for (const ReportRow& row : input_.rows) {
      SavingsRow(row, row.chosen ? "chosen" : "");
      chosen_listed = chosen_listed || row.chosen;
    }
    if (!chosen_listed) SavingsRow(MakeReportRow("this plan", chosen_), "chosen");
    Add("</tbody>\n</table></div>\n</section>\n");
  }

  void SavingsRow(const ReportRow& row, std::string_view css) {
    const bool is_baseline = css == "baseline";
    Add("<tr{}><th scope=\"row\">{}</th><td>{}</td><td>{:.3f}\u00d7</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td><td>{:.3f}\u00a0%</td></tr>\n",
        css.empty() ? std::string() : fmt::format(" class=\"{}\"", css), Label(row.label),
        time_.Number(row.iteration_time_seconds),
        row.iteration_time_seconds / baseline_.iteration_time_seconds,
        energy_.Number(row.energy_joules),
        is_baseline ? "\u2013" : ChangePercent(row.saving_percent, 2),
        power_.Number(row.average_power_watts), energy_.Number(row.lower_bound_joules),
        row.gap_percent);
  }

  // "T_economic" with a real subscript.
  static std::string Label(std::string_view label) {
    if (!label.starts_with("T_")) return EscapeHtml(label);
    return fmt::format("T<sub>{}</sub>", EscapeHtml(label.substr(2)));
  }

  void Timelines() {
    Add("<section aria-labelledby=\"h-timelines\">\n<h2 id=\"h-timelines\">Timelines</h2>\n"
        "<p class=\"lead\">One iteration, one lane per rank, both on the same time scale. Colour "
        "is the {}; the red line marks the critical path. The last lane is the power that the "
        "whole pipeline draws.</p>\n<div class=\"legend\">\n<div id=\"clocks\"></div>\n",
        pipeline_.knobs_are_numbers ? "clock" : "knob");
    ShapeLegend();
    Add("</div>\n");
    Timeline("before", fmt::format("Before: {}", baseline_name_), baseline_);
    Timeline("after", "After: this plan", chosen_);
    Add("<noscript><p>The timelines are drawn by a script. timeline.json, beside this file, holds "
        "the same for Perfetto.</p></noscript>\n"
        "<div class=\"controls\"><button type=\"button\" id=\"zoom-in\">Zoom in</button>"
        "<button type=\"button\" id=\"zoom-out\">Zoom out</button>"
        "<button type=\"button\" id=\"zoom-all\">Whole iteration</button>"
        "<span>Drag to pan. Ctrl + wheel zooms; after a click into a timeline the wheel alone "
        "does. Keys: <kbd>+</kbd> <kbd>\u2212</kbd> <kbd>\u2190</kbd> <kbd>\u2192</kbd> "
        "<kbd>0</kbd>, "
        "<kbd>n</kbd> <kbd>p</kbd> <kbd>\u2191</kbd> <kbd>\u2193</kbd> walk through computations."
        "</span><output id=\"range\"></output></div>\n"
        "<div id=\"announce\" class=\"visually-hidden\" aria-live=\"polite\"></div>\n</section>\n");
  }

  void ShapeLegend() {
    const bool fused = std::any_of(pipeline_.tables.begin(), pipeline_.tables.end(),
                                   [](const CostTable& t) { return t.fused_type.has_value(); });
    const bool weight =
        std::any_of(pipeline_.tables.begin(), pipeline_.tables.end(),
                    [](const CostTable& t) { return t.type == ComputationType::kBackwardWeight; });
    const auto shape = [&](std::string_view drawing, std::string_view text) {
      Add("<span><svg viewBox=\"0 0 30 16\" aria-hidden=\"true\">{}</svg>{}</span>\n", drawing,
          text);
    };
    Add("<div class=\"shapes\">\n");
    shape(
        "<rect class=\"block pale\" x=\"1\" width=\"13\" height=\"16\"/><rect class=\"block\" "
        "x=\"1\" "
        "y=\"5\" width=\"13\" height=\"11\"/>",
        "F forward: low block");
    shape("<rect class=\"block\" x=\"1\" y=\"0\" width=\"28\" height=\"16\"/>",
          weight ? "B, I backward: full height" : "B backward: full height");
    if (weight) {
      shape(
          "<rect class=\"block pale\" x=\"1\" width=\"13\" height=\"16\"/><rect class=\"block\" "
          "x=\"1\" width=\"13\" height=\"11\"/>",
          "W weight gradient: hanging");
    }
    if (fused) {
      shape(
          "<rect class=\"block\" x=\"1\" y=\"0\" width=\"28\" height=\"16\"/><path "
          "class=\"lane-line\" d=\"M1 8H29\"/>",
          "forward and backward overlapped");
    }
    shape(
        "<rect class=\"lane\" width=\"30\" height=\"16\"/><path class=\"lane-line\" "
        "d=\"M2 15L16 1M14 15L28 1\"/>",
        "waiting");
    shape("<path class=\"path\" d=\"M0 12H17V4H30\" fill=\"none\"/>", "critical path");
    Add("</div>\n");
  }

  void Timeline(std::string_view id, const std::string& name, const Plan& plan) {
    Add("<figure class=\"timeline\"><figcaption>{0}<span>{1}, {2}</span></figcaption>"
        "<canvas id=\"{3}\" tabindex=\"0\" role=\"img\" aria-label=\"{0}. {4} on {5}, iteration "
        "time {1}, energy {2}, {6}.\"></canvas></figure>\n",
        name, time_.Text(plan.iteration_time_seconds), energy_.Text(plan.energy_joules), id,
        Plural(dag_.size(), "computation"), Plural(dag_.num_ranks, "rank"),
        Plural(plan.knob_changes, "change") + " of clock");
  }

  void Fact(std::string_view name, const std::string& html) {
    Add("<dt>{}</dt><dd>{}</dd>\n", name, html);
  }

  std::string BlockingPower() const {
    const std::vector<double>& watts = pipeline_.rank_blocking_power_watts;
    if (watts.empty()) return "\u2013";
    const double gpus = pipeline_.tensor_parallel;
    const auto [low, high] = std::minmax_element(watts.begin(), watts.end());
    return *low == *high
               ? fmt::format("{:.6g} W per GPU", *low / gpus)
               : fmt::format("{:.6g} to {:.6g} W per GPU, by rank", *low / gpus, *high / gpus);
  }

  std::string Constraints() const {
    const PlanConstraints& constraints = input_.constraints;
    if (!constraints.any()) return "none: every computation has its own clock";
    std::string text = fmt::format("one clock per {}", GranularityName(constraints.granularity));
    if (constraints.min_dwell_seconds > 0) {
      text += fmt::format(
          ", kept for at least {}",
          report::TimeUnit(constraints.min_dwell_seconds).Text(constraints.min_dwell_seconds));
    }
    if (constraints.max_knobs > 0) {
      text += fmt::format(", at most {}", Plural(constraints.max_knobs, "distinct clock"));
    }
    if (constraints.time_margin_sigmas > 0) {
      text += fmt::format(", planned with times longer by {:.4g} standard deviations",
                          constraints.time_margin_sigmas);
    }
    if (constraints.time_margin_fraction > 0) {
      text += fmt::format(", planned with times longer by {:.4g} %",
                          100 * constraints.time_margin_fraction);
    }
    return EscapeHtml(text);
  }

  void SmallPrint() {
    Add("<section class=\"small\" aria-labelledby=\"h-small\">\n<h2 id=\"h-small\">What this rests "
        "on</h2>\n<dl class=\"facts\">\n");
    if (!input_.profile_source.empty()) {
      Fact("Profile", EscapeHtml(FileName(input_.profile_source)));
    }
    if (!input_.profile_sha256.empty()) {
      Fact("SHA-256", fmt::format("<code>{}</code>", EscapeHtml(input_.profile_sha256)));
    }
    Fact("Schedule", report::ShapeOf(dag_));
    Fact("Blocking power", BlockingPower());
    Fact("Tensor parallel", Plural(pipeline_.tensor_parallel, "GPU") + " per rank");
    if (input_.data_parallel > 1) {
      Fact("Data parallel",
           fmt::format("{}: the whole job saves {} per iteration",
                       Plural(input_.data_parallel, "pipeline"),
                       energy_.Text((baseline_.energy_joules - chosen_.energy_joules) *
                                    input_.data_parallel)));
    }
    Fact("Constraints", Constraints());
    Fact("Requested time", time_.Text(chosen_.requested_time_seconds) +
                               ", never exceeded by the realised " +
                               time_.Text(chosen_.iteration_time_seconds));
    Fact("Clock changes", fmt::format("{} per iteration over all ranks, {}", chosen_.knob_changes,
                                      Plural(chosen_.distinct_knobs, "distinct value")));
    Add("</dl>\n<ul>\n");
    Add("<li>Planned, not measured: times and energies of single computations come from the "
        "profile; the iteration is their replay on the schedule, each as early as it can start. "
        "Noise, the delay of switching clocks and contention between GPUs are not in it.</li>\n");
    Add("<li>Certificate: a plan of {} cannot use less than {}; this one uses {}, {:.3f} % more. "
        "The bound lets every computation mix neighbouring clocks, so part of the gap may be the "
        "bound\u2019s own.{}</li>\n",
        time_.Text(chosen_.iteration_time_seconds), energy_.Text(chosen_.lower_bound_joules),
        energy_.Text(chosen_.energy_joules), chosen_.gap_percent,
        input_.frontier->certified_error > 0
            ? fmt::format(" The curve itself is certified to {:.3g} %.",
                          100 * input_.frontier->certified_error)
            : std::string(" The curve is exact."));
    Add("<li>Energy is that of one pipeline: its computations, and blocking power while a rank "
        "waits. T<sub>economic</sub> is the time of least energy; up to T* a pipeline that must "
        "wait for a slower one still saves by slowing down.</li>\n");
    for (const std::string& note : input_.notes) Add("<li>{}</li>\n", EscapeHtml(note));
    Add("</ul>\n</section>\n");
  }

  const ReportInput& input_;
  const CostedPipeline& pipeline_;
  const PipelineDag& dag_;
  const Plan& baseline_;
  const Plan& chosen_;
  const std::string_view baseline_name_;
  const std::string title_;
  const DisplayUnit time_;
  const DisplayUnit energy_;
  const DisplayUnit power_;
  std::string html_;
};

}  // namespace

ReportRow MakeReportRow(std::string label, const Plan& plan) {
  ReportRow row;
  row.label = std::move(label);
  row.iteration_time_seconds = plan.iteration_time_seconds;
  row.energy_joules = plan.energy_joules;
  row.saving_percent = plan.saving_percent;
  row.average_power_watts = plan.average_power_watts;
  row.lower_bound_joules = plan.lower_bound_joules;
  row.gap_percent = plan.gap_percent;
  return row;
}

std::string FormatHtmlReport(const ReportInput& input) { return PlanPage(input).Format(); }

}  // namespace perseus
