// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/stage_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

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

  std::string Format() {
    const std::vector<StageSavings> stages = ComputeStageSavings(pipeline_, baseline_, chosen_);
    const double stretch = (baseline_.iteration_time_seconds - chosen_.iteration_time_seconds) *
                           pipeline_.total_blocking_power_watts;
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

    Add("<section aria-labelledby=\"h-stages\">\n<h2 id=\"h-stages\">Where the savings come from"
        "</h2>\n<p class=\"lead\">A slower computation fills time in which its rank would have "
        "waited at blocking power, so what counts is the energy saved net of that waiting. The "
        "lines add up to the plan\u2019s saving.</p>\n<p>{}{}{}{}</p>\n",
        Key("forward", "forward"), Key("backward", "backward"),
        any_fused ? Key("fused", "overlapped") : "",
        show_stretch ? Key("stretch", "change of iteration time") : "");
    const bool clocks = pipeline_.knobs_are_numbers;
    Add("<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Stage</th><th scope=\"col\">"
        "Rank</th>{}<th scope=\"col\">Busy before</th><th scope=\"col\">after</th>"
        "<th scope=\"col\">Saved ({})</th><th scope=\"col\">Share</th><th scope=\"col\">"
        "<span class=\"visually-hidden\">Bar</span></th></tr></thead>\n<tbody>\n",
        clocks ? fmt::format("<th scope=\"col\">Mean forward{0}</th><th scope=\"col\">Mean "
                             "backward{0}</th>",
                             knob_unit_.empty() ? std::string()
                                                : fmt::format(" ({})", EscapeHtml(knob_unit_)))
               : "",
        energy_.name);
    for (const StageSavings& stage : stages) {
      Add("<tr><th scope=\"row\">{}</th><td>{}</td>", stage.stage, stage.rank);
      if (clocks)
        Add("<td>{}</td><td>{}</td>", Clock(stage.forward_clock), Clock(stage.backward_clock));
      Add("<td>{:.1f}\u00a0%</td><td>{:.1f}\u00a0%</td>",
          100 * stage.busy_seconds_before / baseline_.iteration_time_seconds,
          100 * stage.busy_seconds_after / chosen_.iteration_time_seconds);
      Saved(stage.total_joules(), total);
      const Part parts[] = {{"forward", stage.forward_joules},
                            {"backward", stage.backward_joules},
                            {"fused", stage.fused_joules}};
      Bar(parts, least, most);
    }
    const int plain_columns = clocks ? 5 : 3;
    if (show_stretch) {
      Add("<tr><th scope=\"row\">time</th><td colspan=\"{}\">all ranks wait {} for {}</td>",
          plain_columns, stretch < 0 ? "longer" : "less",
          time_.Text(std::abs(chosen_.iteration_time_seconds - baseline_.iteration_time_seconds)));
      Saved(stretch, total);
      const Part parts[] = {{"stretch", stretch}};
      Bar(parts, least, most);
    }
    Add("<tr class=\"total\"><th scope=\"row\">all</th><td colspan=\"{}\"></td>", plain_columns);
    Saved(total, total);
    Add("<td></td></tr>\n</tbody>\n</table></div>\n</section>\n");
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  static std::string Clock(double mean) {
    return mean > 0 ? fmt::format("{:.0f}", mean) : std::string("\u2013");
  }

  void Saved(double joules, double total) {
    Add("<td>{}</td><td>{}</td>", energy_.Number(joules),
        total != 0 ? fmt::format("{:.1f}\u00a0%", 100 * joules / total) : std::string("\u2013"));
  }

  struct Part {
    std::string_view css;
    double joules;
  };

  // Gains grow to the right of zero, losses to the left; closes the row.
  template <std::size_t n>
  void Bar(const Part (&parts)[n], double least, double most) {
    const double span = most - least > 0 ? most - least : 1;
    const double zero = -least / span * 100;
    double right = zero, left = zero;
    Add("<td class=\"bar\"><svg viewBox=\"0 0 100 16\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\">");
    for (const Part& part : parts) {
      const double width = std::abs(part.joules) / span * 100;
      if (!(width > 0)) continue;
      if (part.joules < 0) left -= width;
      Add("<rect class=\"{}\" x=\"{:.3f}\" y=\"1\" width=\"{:.3f}\" height=\"14\"/>", part.css,
          part.joules < 0 ? left : right, width);
      if (part.joules > 0) right += width;
    }
    if (least < 0) {
      Add("<line class=\"zero\" x1=\"{0:.3f}\" y1=\"0\" x2=\"{0:.3f}\" y2=\"16\" "
          "vector-effect=\"non-scaling-stroke\"/>",
          zero);
    }
    Add("</svg></td></tr>\n");
  }

  const CostedPipeline& pipeline_;
  const Plan& baseline_;
  const Plan& chosen_;
  const std::string& knob_unit_;
  const DisplayUnit time_;
  const DisplayUnit energy_;
  std::string html_;
};

}  // namespace

std::string StageTable(const CostedPipeline& pipeline, const Plan& baseline, const Plan& chosen,
                       const std::string& knob_unit) {
  return Section(pipeline, baseline, chosen, knob_unit).Format();
}

}  // namespace perseus::report
