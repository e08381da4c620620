// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "perseus/emulation_report.h"
#include "report/assets.h"
#include "report/emulation_plots.h"
#include "report/emulation_tables.h"
#include "report/emulation_timeline.h"
#include "report/page.h"
#include "report/text.h"

namespace perseus {
namespace {

using report::ChangePercent;
using report::DisplayUnit;
using report::EscapeHtml;
using report::Plural;

class Page {
 public:
  explicit Page(const EmulationReportInput& input)
      : input_(input),
        spec_(*input.spec),
        emulation_(*input.emulation),
        iterations_(std::max<double>(1, static_cast<double>(input.emulation->iterations.size()))),
        max_clocks_(report::FindPolicy(input.policies, "max-clocks")),
        title_(EscapeHtml(input.title.empty() ? "Emulated job" : input.title)) {}

  std::string Format() {
    html_ = report::PageHead(
        title_, fmt::format("{}{}", report::ReportCss(), report::EmulationCss()), false);
    Header();
    Figures();
    Section("energy", "Where the energy went",
            "Of the whole job, over all iterations. The four parts add up to all of it.",
            report::DrawEnergySplit(emulation_.energy));
    Section("power", "Power of the job over time",
            fmt::format("All GPUs, waiting included; each value is a mean over {}. The axis need "
                        "not start at zero.",
                        report::TimeUnit(emulation_.power.interval_seconds)
                            .Text(emulation_.power.interval_seconds)),
            report::DrawPower(emulation_));
    Section("iterations", "Iteration times",
            "An iteration lasts as long as its slowest pipeline. The axis need not start at zero.",
            report::DrawIterationTimes(emulation_));
    Timeline();
    if (!input_.policies.empty()) {
      Section("policies", "Policies", "What each way to choose the clocks makes of this job.",
              report::HtmlTable(report::PolicyTable(input_)) +
                  Sentence(report::WorthOfPerComputation(input_.policies)));
    }
    if (!input_.partitions.empty()) {
      Section("partitions", "Stage imbalance", "",
              report::HtmlTable(report::PartitionTable(input_.partitions)) +
                  Sentence(report::CostOfImbalance(input_.partitions)));
    }
    if (!input_.sweep.empty()) {
      Section("sweep", "Other shapes", "", report::HtmlTable(report::SweepTable(input_.sweep)));
    }
    if (input_.run || input_.run_at_max_clocks) {
      Section("run", "A whole training run",
              "Prices and carbon are the user\u2019s own figures; nothing is assumed.",
              report::HtmlTable(report::RunCostTable(input_)));
    }
    SmallPrint();
    return std::move(html_) + report::PageTail();
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  // Absent where there is nothing in it.
  void Section(std::string_view id, std::string_view name, const std::string& lead,
               const std::string& body) {
    if (body.empty()) return;
    Add("<section aria-labelledby=\"h-{0}\">\n<h2 id=\"h-{0}\">{1}</h2>\n", id, name);
    if (!lead.empty()) Add("<p class=\"lead\">{}</p>\n", EscapeHtml(lead));
    Add("{}</section>\n", body);
  }

  static std::string Sentence(const std::string& text) {
    return text.empty() ? "" : fmt::format("<p class=\"worth\">{}</p>\n", EscapeHtml(text));
  }

  void Header() {
    Add("<header>\n<h1>{}</h1>\n<p class=\"subtitle\">{}, {} of {}: {}</p>\n</header>\n", title_,
        Plural(emulation_.gpus, "GPU"), Plural(spec_.pipelines, "pipeline"),
        report::ShapeOf(input_.pipeline->dag),
        Plural(static_cast<std::int64_t>(emulation_.iterations.size()), "iteration"));
  }

  void Figure(std::string_view css, std::string_view name, const std::string& value,
              const std::string& detail) {
    Add("<div><dt>{}</dt><dd class=\"value{}\">{}</dd><dd class=\"detail\">{}</dd></div>\n", name,
        css, value, EscapeHtml(detail));
  }

  void Figures() {
    const double joules = emulation_.energy.total_joules();
    const double seconds = emulation_.time_seconds / iterations_;
    const DisplayUnit energy = report::EnergyUnit(joules);
    Add("<dl class=\"figures\">\n");
    if (max_clocks_ != nullptr) {
      const double before = max_clocks_->energy.total_joules();
      Figure(" hero", "Energy against maximum clocks",
             ChangePercent(before > 0 ? 100 * (1 - joules / before) : 0, 2),
             fmt::format("{} \u2192 {}", report::EnergyUnit(before).Text(before),
                         energy.Text(joules)));
    } else {
      Figure("", "Energy of the job", energy.Text(joules),
             fmt::format("{} an iteration",
                         report::EnergyUnit(joules / iterations_).Text(joules / iterations_)));
    }
    std::string detail = fmt::format(
        "{} in all", report::TimeUnit(emulation_.time_seconds).Text(emulation_.time_seconds));
    if (max_clocks_ != nullptr && max_clocks_->time_seconds > 0) {
      detail = fmt::format(
          "{} against maximum clocks; {}",
          ChangePercent(100 * (1 - emulation_.time_seconds / max_clocks_->time_seconds), 2),
          detail);
    }
    Figure("", "Mean iteration time", report::TimeUnit(seconds).Text(seconds), detail);
    Figure("", "Mean power of the job",
           report::PowerUnit(emulation_.average_watts).Text(emulation_.average_watts),
           fmt::format("peak {}",
                       report::PowerUnit(emulation_.peak_watts).Text(emulation_.peak_watts)));
    Figure(
        "", "Power of a GPU",
        report::PowerUnit(emulation_.gpu_average_watts).Text(emulation_.gpu_average_watts),
        fmt::format("highest of a computation {}",
                    report::PowerUnit(emulation_.gpu_peak_watts).Text(emulation_.gpu_peak_watts)));
    Add("</dl>\n");
  }

  void Timeline() {
    const EmulatedTimeline& timeline = emulation_.timeline;
    Section("timeline", fmt::format("Iteration {}", timeline.iteration),
            "One lane per rank. Colour is the clock; forwards are low blocks, backwards fill the "
            "lane; grey is waiting. The dashed line is where the pipeline itself ends, the red one "
            "where the iteration does. timeline.json, beside this file, holds the same for "
            "Perfetto.",
            report::DrawEmulatedTimeline(input_));
  }

  void Fact(std::string_view name, const std::string& text) {
    if (!text.empty()) Add("<dt>{}</dt><dd>{}</dd>\n", name, EscapeHtml(text));
  }

  std::string Noise() const {
    const TimeNoise& noise = spec_.noise;
    if (!noise.any()) return "none";
    return fmt::format("{:.4g} % per computation, {:.4g} % per stage, {:.4g} % per GPU, seed {}",
                       100 * noise.per_computation, 100 * noise.per_stage, 100 * noise.per_gpu,
                       spec_.seed);
  }

  std::string Switching() const {
    const ClockSwitching& switching = spec_.switching;
    if (!switching.any()) return "at once";
    return fmt::format("in effect after {:.6g} s, {:.6g} s of standstill, asked for {}",
                       switching.latency_seconds, switching.stall_seconds,
                       switching.ahead ? "ahead" : "as the computation starts");
  }

  void SmallPrint() {
    Add("<section class=\"small\" aria-labelledby=\"h-small\">\n<h2 id=\"h-small\">What this rests "
        "on</h2>\n<dl class=\"facts\">\n");
    Fact("Profile", std::string(report::FileName(input_.profile_source)));
    Fact("SHA-256", input_.profile_sha256);
    Fact("Policy", input_.policy);
    Fact("Target", report::TimeUnit(spec_.target_seconds).Text(spec_.target_seconds) +
                       " an iteration while nobody straggles");
    Fact("Noise", Noise());
    Fact("Clock switching", Switching());
    Fact("Control plane", spec_.control.reacts
                              ? fmt::format("reacts after {:.6g} s", spec_.control.delay_seconds)
                              : "does not react");
    Fact("Events",
         fmt::format("{}, {} of plan, {} of clock, {} that began at another clock than "
                     "planned",
                     Plural(emulation_.stragglers, "straggler"),
                     Plural(emulation_.replans, "change"), Plural(emulation_.clock_calls, "change"),
                     Plural(emulation_.late_computations, "computation")));
    Add("</dl>\n<ul>\n<li>Emulated, not measured: times and energies of single computations come "
        "from the profile and are replayed on the schedule, as docs/emulation.md defines. "
        "Contention between GPUs is not in it.</li>\n"
        "<li>Intrinsic and extrinsic bloat follow Chung et al. 2024, counted in effective energy: "
        "a computation that runs longer waits less.</li>\n");
    for (const std::string& note : input_.notes) Add("<li>{}</li>\n", EscapeHtml(note));
    Add("</ul>\n</section>\n");
  }

  const EmulationReportInput& input_;
  const EmulationSpec& spec_;
  const Emulation& emulation_;
  const double iterations_;
  const PolicyRow* const max_clocks_;
  const std::string title_;
  std::string html_;
};

}  // namespace

std::string FormatEmulationHtml(const EmulationReportInput& input) { return Page(input).Format(); }

}  // namespace perseus
