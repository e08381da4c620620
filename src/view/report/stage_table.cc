// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/iteration_energy.h"
#include "report/page.h"
#include "report/stage_savings.h"
#include "report/text.h"

namespace perseus::report {
namespace {

class Section {
 public:
  Section(const CostedPipeline& pipeline, const Plan& baseline, const Plan& chosen,
          const std::string& knob_unit)
      : pipeline_(pipeline),
        baseline_(baseline),
        chosen_(chosen),
        knob_unit_(knob_unit),
        time_(TimeUnit(baseline.iteration_time_seconds)),
        energy_(EnergyUnit(baseline.energy_joules)) {}

  void AddTo(Document* document) const {
    const std::vector<StageSavings> stages = ComputeStageSavings(pipeline_, baseline_, chosen_);
    const double stretch = (baseline_.iteration_time_seconds - chosen_.iteration_time_seconds) *
                           pipeline_.total_blocking_power_watts;
    const double waiting = DearerJoules(baseline_) - DearerJoules(chosen_);
    const double total = baseline_.energy_joules - chosen_.energy_joules;
    // Everything the bars have to reach, from the common zero.
    double most = std::max(0.0, stretch);
    double least = std::min(0.0, stretch);
    bool any_fused = false;
    for (const StageSavings& stage : stages) {
      double up = 0, down = 0;
      for (const double part : {stage.forward_joules, stage.backward_joules, stage.fused_joules}) {
        (part > 0 ? up : down) += part;
      }
      most = std::max(most, up);
      least = std::min(least, down);
      any_fused = any_fused || stage.fused_joules != 0;
    }
    const bool show_stretch = std::abs(stretch) > 5e-4 * std::abs(total);

    document->Heading("Where the savings come from");
    document->Paragraph(
        "A slower computation fills time in which its rank would have waited at blocking power, so "
        "what counts is the energy saved net of that waiting. The lines add up to the plan\u2019s "
        "saving.");
    document->Figure(fmt::format("<p class=\"keys\">{}{}{}{}</p>\n", Key("forward", "forward"),
                                 Key("backward", "backward"),
                                 any_fused ? Key("fused", "overlapped") : "",
                                 show_stretch ? Key("stretch", "change of iteration time") : ""));
    const bool clocks = pipeline_.knobs_are_numbers;
    Table table;
    table.columns = {"Stage", "Rank"};
    if (clocks) {
      const std::string unit = knob_unit_.empty() ? "" : fmt::format(" ({})", knob_unit_);
      table.columns.insert(table.columns.end(), {"Mean forward" + unit, "Mean backward" + unit});
    }
    table.columns.insert(
        table.columns.end(),
        {"Busy before", "after", fmt::format("Saved ({})", energy_.name), "Share", "Drawn"});
    for (const StageSavings& stage : stages) {
      std::vector<Cell> cells = {{fmt::format("{}", stage.stage)}, {fmt::format("{}", stage.rank)}};
      if (clocks) {
        cells.push_back({Clock(stage.forward_clock)});
        cells.push_back({Clock(stage.backward_clock)});
      }
      cells.push_back({Percent(stage.busy_seconds_before, baseline_.iteration_time_seconds)});
      cells.push_back({Percent(stage.busy_seconds_after, chosen_.iteration_time_seconds)});
      AddSaved(stage.total_joules(), total, &cells);
      cells.push_back(Bar({{"forward", stage.forward_joules},
                           {"backward", stage.backward_joules},
                           {"fused", stage.fused_joules}},
                          least, most));
      table.Add(std::move(cells));
    }
    const int plain_columns = clocks ? 5 : 3;
    if (show_stretch) {
      std::vector<Cell> cells = {
          {"time"},
          {.text = fmt::format("all ranks wait {} for {}", stretch < 0 ? "longer" : "less",
                               time_.Text(std::abs(chosen_.iteration_time_seconds -
                                                   baseline_.iteration_time_seconds))),
           .columns = plain_columns}};
      AddSaved(stretch, total, &cells);
      cells.push_back(Bar({{"stretch", stretch}}, least, most));
      table.Add(std::move(cells));
    }
    if (waiting != 0) {
      std::vector<Cell> cells = {{"waits"},
                                 {.text = "ranks wait at other clocks", .columns = plain_columns}};
      AddSaved(waiting, total, &cells);
      cells.push_back({""});
      table.Add(std::move(cells));
    }
    std::vector<Cell> cells = {{"all"}, {.text = "", .columns = plain_columns}};
    AddSaved(total, total, &cells);
    cells.push_back({""});
    table.Add(std::move(cells), "total");
    document->Put(std::move(table));
  }

 private:
  // What waits draw beyond the least.
  double DearerJoules(const Plan& plan) const {
    std::vector<double> durations;
    durations.reserve(plan.options.size());
    for (const CostOption& option : plan.options) durations.push_back(option.time_seconds);
    double sum = 0;
    for (const double joules : model::DearerWaitingJoules(pipeline_, plan.options, plan.waiting,
                                                          Replay(pipeline_.dag, durations))) {
      sum += joules;
    }
    return sum;
  }

  struct Part {
    std::string_view css;
    double joules;
  };

  static std::string Clock(double mean) {
    return mean > 0 ? fmt::format("{:.0f}", mean) : std::string("\u2013");
  }

  static std::string Percent(double part, double whole) {
    return whole != 0 ? FixedText(100 * part / whole, 1) + "\u00a0%" : "\u2013";
  }

  void AddSaved(double joules, double total, std::vector<Cell>* cells) const {
    cells->push_back({energy_.Number(joules)});
    cells->push_back({Percent(joules, total)});
  }

  // Gains grow to the right of zero, losses to the left.
  static Cell Bar(const std::vector<Part>& parts, double least, double most) {
    const double span = most - least > 0 ? most - least : 1;
    const double zero = -least / span * 100;
    double right = zero, left = zero;
    std::string svg =
        "<svg class=\"bar\" viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\">";
    for (const Part& part : parts) {
      const double width = std::abs(part.joules) / span * 100;
      if (!(width > 0)) continue;
      if (part.joules < 0) left -= width;
      fmt::format_to(std::back_inserter(svg),
                     "<rect class=\"{}\" x=\"{:.3f}\" y=\"1\" width=\"{:.3f}\" height=\"14\"/>",
                     part.css, part.joules < 0 ? left : right, width);
      if (part.joules > 0) right += width;
    }
    if (least < 0) {
      fmt::format_to(std::back_inserter(svg),
                     "<line class=\"zero\" x1=\"{0:.3f}\" y1=\"0\" x2=\"{0:.3f}\" y2=\"16\" "
                     "vector-effect=\"non-scaling-stroke\"/>",
                     zero);
    }
    return {.text = "", .html = svg + "</svg>"};
  }

  const CostedPipeline& pipeline_;
  const Plan& baseline_;
  const Plan& chosen_;
  const std::string& knob_unit_;
  const DisplayUnit time_;
  const DisplayUnit energy_;
};

}  // namespace

void AddStageSavings(const CostedPipeline& pipeline, const Plan& baseline, const Plan& chosen,
                     const std::string& knob_unit, Document* document) {
  Section(pipeline, baseline, chosen, knob_unit).AddTo(document);
}

}  // namespace perseus::report
