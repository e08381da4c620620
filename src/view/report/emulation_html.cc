// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perseus/emulation_report.h"
#include "report/check_input.h"
#include "report/document.h"
#include "report/emulation_plots.h"
#include "report/emulation_tables.h"
#include "report/emulation_timeline.h"
#include "report/figures.h"
#include "report/page.h"
#include "report/text.h"

namespace perseus {
inline namespace v0 {
namespace {

using report::ChangePercent;
using report::DisplayUnit;
using report::Plural;
using report::SavingPercent;

class Page {
 public:
  explicit Page(const EmulationReportInput& input)
      : input_(input),
        spec_(*input.spec),
        emulation_(*input.emulation),
        iterations_(std::max<double>(1, static_cast<double>(input.emulation->iterations.size()))),
        max_clocks_(report::FindPolicy(input.policies, "max-clocks")) {}

  std::string Format() {
    Header();
    if (!input_.scenario.empty()) document_.Paragraph("Scenario: " + input_.scenario);
    Figures();
    Drawn("Where the energy went",
          "Of the whole job, over all iterations. The four parts add up to all of it.",
          report::DrawEnergySplit(emulation_.energy));
    Drawn("Power of the job over time",
          fmt::format("All GPUs, waiting included; each value is a mean over {}. The axis need "
                      "not start at zero.",
                      report::TimeUnit(emulation_.power.interval_seconds)
                          .Text(emulation_.power.interval_seconds)),
          report::DrawPower(emulation_));
    Drawn("Iteration times",
          "An iteration lasts as long as its slowest pipeline. The axis need not start at zero.",
          report::DrawIterationTimes(emulation_));
    Drawn(fmt::format("Iteration {}", emulation_.timeline.iteration),
          "One lane per rank. Colour is the clock; forwards are low blocks, backwards fill the "
          "lane; grey is waiting. The dashed line is where the pipeline itself ends, the red one "
          "where the iteration does. timeline.pftrace, beside this file, holds the same for "
          "Perfetto.",
          report::DrawEmulatedTimeline(input_));
    Comparisons();
    SmallPrint();
    return report::HtmlOf(document_);
  }

 private:
  // Absent where there is nothing in it.
  void Drawn(std::string name, std::string lead, std::string html) {
    if (html.empty()) return;
    document_.Heading(std::move(name));
    document_.Paragraph(std::move(lead));
    document_.Figure(std::move(html));
  }

  void Comparisons() {
    if (input_.policies.empty()) return;
    document_.Heading("Policies");
    document_.Paragraph("What each plan makes of this job.");
    document_.Put(report::PolicyTable(input_));
  }

  void Header() {
    document_.title = input_.title.empty() ? "Emulated job" : input_.title;
    document_.warning = report::ModelledWarning(input_.pipeline->modelled);
    document_.notes = input_.notes;
    document_.subtitle =
        fmt::format("{}, {} of {}: {}", Plural(emulation_.gpus, "GPU"),
                    Plural(spec_.pipelines, "pipeline"), report::ShapeOf(input_.pipeline->dag),
                    Plural(static_cast<std::int64_t>(emulation_.iterations.size()), "iteration"));
  }

  report::KeyFigure EnergyFigure() const {
    const double joules = emulation_.energy.total_joules();
    const DisplayUnit energy = report::EnergyUnit(joules);
    if (max_clocks_ == nullptr) {
      return {"Energy of the job", energy.Text(joules),
              fmt::format("{} an iteration",
                          report::EnergyUnit(joules / iterations_).Text(joules / iterations_))};
    }
    const double before = max_clocks_->energy.total_joules();
    const double saving_percent = report::PercentSaved(joules, before);
    return {
        "Saving against maximum clocks", SavingPercent(saving_percent, 2),
        fmt::format("{} \u2192 {}", report::EnergyUnit(before).Text(before), energy.Text(joules)),
        report::ClassOfSaving(saving_percent)};
  }

  void Figures() {
    const double seconds = emulation_.time_seconds / iterations_;
    std::string detail = fmt::format(
        "{} in all", report::TimeUnit(emulation_.time_seconds).Text(emulation_.time_seconds));
    if (max_clocks_ != nullptr && max_clocks_->time_seconds > 0) {
      detail = fmt::format(
          "{} against maximum clocks; {}",
          ChangePercent(report::PercentOver(emulation_.time_seconds, max_clocks_->time_seconds), 2),
          detail);
    }
    const auto power = [](double watts) { return report::PowerUnit(watts).Text(watts); };
    document_.figures = {
        EnergyFigure(),
        {"Mean iteration time", report::TimeUnit(seconds).Text(seconds), detail},
        {"Mean power of the job", power(emulation_.average_watts),
         fmt::format("peak {}", power(emulation_.peak_watts))},
        {"Power of a GPU", power(emulation_.gpu_average_watts),
         fmt::format("highest of a computation {}", power(emulation_.gpu_peak_watts))}};
  }

  std::string Noise() const {
    const TimeNoise& noise = spec_.noise;
    if (!noise.any()) return "none";
    std::string text =
        fmt::format("{:.4g} % per computation, {:.4g} % per stage, {:.4g} % per GPU",
                    100 * noise.per_computation, 100 * noise.per_stage, 100 * noise.per_gpu);
    if (noise.per_rank > 0) {
      text += fmt::format(", {:.4g} % per rank and iteration", 100 * noise.per_rank);
    }
    if (noise.correlation > 0) text += fmt::format(", correlation {:.4g}", noise.correlation);
    if (noise.has_rare()) {
      text += fmt::format(", {:.4g} % take {:.4g} % longer", 100 * noise.rare_share,
                          100 * noise.rare_length);
    }
    return fmt::format("{}, seed {}", text, spec_.seed);
  }

  std::string Switching() const {
    const ClockSwitching& switching = spec_.switching;
    if (!switching.any()) return "at once";
    return fmt::format("in effect after {:.6g} s{}, {:.6g} s of standstill, asked for {}",
                       switching.latency_seconds,
                       switching.latency_at.empty() ? "" : " (some clocks after another time)",
                       switching.stall_seconds,
                       switching.call_ahead == CallAhead::kNone  ? "as the computation starts"
                       : switching.call_ahead == CallAhead::kEnd ? "ahead"
                                                                 : "ahead of predicted starts");
  }

  void SmallPrint() {
    document_.Heading("What this rests on", "small");
    std::vector<report::Fact> facts;
    const auto fact = [&](std::string name, std::string text) {
      if (!text.empty()) facts.push_back({std::move(name), std::move(text)});
    };
    fact("Profile", std::string(report::FileName(input_.profile->source)));
    fact("SHA-256", input_.profile->sha256);
    fact("Policy", input_.label);
    fact("Target", report::TimeUnit(spec_.target_seconds).Text(spec_.target_seconds) +
                       " an iteration while nobody straggles");
    fact("Noise", Noise());
    fact("Clock switching", Switching());
    fact("Control plane", spec_.control.reacts
                              ? fmt::format("reacts after {:.6g} s", spec_.control.delay_seconds)
                              : "does not react");
    fact("Events",
         fmt::format("{}, {} of plan, {} of clock, {} that began at another clock than planned",
                     Plural(emulation_.stragglers, "straggler"),
                     Plural(emulation_.replans, "change"), Plural(emulation_.clock_calls, "change"),
                     Plural(emulation_.late_computations, "computation")));
    document_.Facts(std::move(facts));
    std::vector<std::string> items = {
        "Emulated, not measured: times and energies of single computations come from the profile "
        "and are replayed on the schedule, as docs/explanation/emulation.md defines. Contention "
        "between GPUs "
        "is not in it.",
        "Intrinsic and extrinsic bloat follow Chung et al. 2024, counted in effective energy: a "
        "computation that runs longer waits less."};
    items.insert(items.end(), input_.remarks.begin(), input_.remarks.end());
    document_.List(std::move(items));
  }

  const EmulationReportInput& input_;
  const EmulationSpec& spec_;
  const Emulation& emulation_;
  const double iterations_;
  const PolicyRow* const max_clocks_;
  report::Document document_;
};

}  // namespace

Result<std::string> FormatEmulationHtml(const EmulationReportInput& input) {
  if (auto good = report::CheckInput(input); !good) return tl::unexpected(good.error());
  return Page(input).Format();
}

}  // namespace v0
}  // namespace perseus
