// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/frontier_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/html_text.h"
#include "report/scale.h"
#include "report/text.h"

namespace perseus::report {
namespace {

// The drawing's own pixels; the page scales it.
constexpr double kPlotWidth = 1120;
constexpr double kHeight = 470;
constexpr double kPlotLeft = 84;
constexpr double kPlotRight = 1040;
constexpr double kPlotTop = 44;
constexpr double kBottom = 412;
constexpr double kMarkBand = 58;      // Kept free at the top for the names of times.
constexpr double kLetterWidth = 6.7;  // Of 12.5 px text, on the safe side.

struct Box {
  double x0, y0, x1, y1;
  bool Overlaps(const Box& other) const {
    return x0 < other.x1 && other.x0 < x1 && y0 < other.y1 && other.y0 < y1;
  }
};

struct Point {
  double seconds, joules;
};

// The text width in the eyes of the label placement: UTF-8 counted by letters.
double TextWidth(std::string_view text) {
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  });
  return static_cast<double>(letters) * kLetterWidth;
}

class Plot {
 public:
  explicit Plot(const ReportInput& input)
      : input_(input),
        frontier_(*input.frontier),
        baseline_(*input.baseline),
        time_unit_(TimeUnit(baseline_.iteration_time_seconds)),
        energy_unit_(EnergyUnit(baseline_.energy_joules)) {
    ChooseScales();
  }

  FrontierPlot Draw() {
    fmt::format_to(
        std::back_inserter(svg_),
        "<svg id=\"frontier\" class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" "
        "aria-labelledby=\"frontier-title frontier-desc\">\n"
        "<title id=\"frontier-title\">Energy over iteration time</title>\n"
        "<desc id=\"frontier-desc\">{}</desc>\n"
        "<defs><pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" "
        "y2=\"7\"/></pattern></defs>\n",
        kPlotWidth, kHeight, EscapeHtml(Description()));
    DrawAxes();
    DrawBound();
    DrawTimeMarks();
    DrawPlans();
    svg_ += "<g id=\"frontier-hover\"></g>\n</svg>\n";

    FrontierPlot plot;
    plot.svg = std::move(svg_);
    nlohmann::ordered_json curve = nlohmann::ordered_json::array();
    for (const Point& point : curve_) {
      curve.push_back({RoundSignificant(point.seconds, 9), RoundSignificant(point.joules, 9)});
    }
    plot.hover = {{"x", {x_.low, x_.high, x_.pixel_low, x_.pixel_high}},
                  {"y", {y_.low, y_.high, y_.pixel_low, y_.pixel_high}},
                  {"timeFactor", time_unit_.factor},
                  {"timeUnit", time_unit_.name},
                  {"timeDecimals", time_unit_.decimals},
                  {"energyFactor", energy_unit_.factor},
                  {"energyUnit", energy_unit_.name},
                  {"energyDecimals", energy_unit_.decimals},
                  {"baselineTime", baseline_.iteration_time_seconds},
                  {"baselineEnergy", baseline_.energy_joules},
                  {"curve", curve}};
    return plot;
  }

 private:
  double Bound(double seconds) const { return frontier_.EnergyAt(seconds); }

  void ChooseScales() {
    double first = std::min(baseline_.iteration_time_seconds, frontier_.fastest_seconds);
    double last = std::max({baseline_.iteration_time_seconds, frontier_.tstar_seconds,
                            input_.chosen->iteration_time_seconds});
    double least = std::min(Bound(frontier_.economic_seconds), input_.chosen->energy_joules);
    double most = std::max({baseline_.energy_joules, Bound(frontier_.fastest_seconds),
                            input_.chosen->energy_joules, Bound(frontier_.tstar_seconds)});
    for (const ReportRow& row : input_.rows) {
      if (!row.feasible) continue;
      first = std::min(first, row.iteration_time_seconds);
      last = std::max(last, row.iteration_time_seconds);
      least = std::min(least, row.energy_joules);
      most = std::max(most, row.energy_joules);
    }
    // A frontier may be one point; keep the scales invertible.
    const double width = std::max(last - first, 0.02 * last);
    const double height = std::max(most - least, 0.02 * most);
    x_ = {std::max(0.0, first - 0.045 * width), last + 0.045 * width, kPlotLeft, kPlotRight};
    const double usable = (kBottom - kPlotTop - kMarkBand) / (kBottom - kPlotTop);
    y_.low = std::max(0.0, least - 0.14 * height);
    y_.high = y_.low + (most + 0.05 * height - y_.low) / usable;
    if (!(y_.high > y_.low)) y_.high = y_.low + 1;
    if (!(x_.high > x_.low)) x_.high = x_.low + 1;
    y_.pixel_low = kBottom;
    y_.pixel_high = kPlotTop;

    // Points closer than a third of a pixel add nothing but bytes.
    for (const FrontierPoint& point : frontier_.points) {
      const Point next{point.iteration_time_seconds, point.energy_joules};
      if (!curve_.empty() && &point != &frontier_.points.back() &&
          std::abs(x_(next.seconds) - x_(curve_.back().seconds)) < 0.33 &&
          std::abs(y_(next.joules) - y_(curve_.back().joules)) < 0.33) {
        continue;
      }
      curve_.push_back(next);
    }
    if (curve_.empty() || curve_.back().seconds < x_.high) {
      curve_.push_back({x_.high, Bound(x_.high)});
    }
  }

  std::string Description() const {
    return fmt::format(
        "{} falls from {} at {} to {} at {}. All-maximum clocks need {} and {}; the chosen plan {} "
        "and {}, {:.3f} % above the lower bound. The table below holds the same points.",
        frontier_.fitted ? "The exponential fit of energy" : "The lower bound of energy",
        energy_unit_.Text(Bound(frontier_.fastest_seconds)),
        time_unit_.Text(frontier_.fastest_seconds),
        energy_unit_.Text(Bound(frontier_.economic_seconds)),
        time_unit_.Text(frontier_.economic_seconds),
        time_unit_.Text(baseline_.iteration_time_seconds),
        energy_unit_.Text(baseline_.energy_joules),
        time_unit_.Text(input_.chosen->iteration_time_seconds),
        energy_unit_.Text(input_.chosen->energy_joules), input_.chosen->gap_percent);
  }

  void Line(std::string_view css, double x1, double y1, double x2, double y2) {
    fmt::format_to(std::back_inserter(svg_),
                   "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                   css, x1, y1, x2, y2);
  }

  void Text(std::string_view css, double x, double y, std::string_view anchor,
            std::string_view text) {
    fmt::format_to(std::back_inserter(svg_),
                   "<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n",
                   css, x, y, anchor, EscapeHtml(text));
  }

  void DrawAxes() {
    svg_ += "<g class=\"axes\">\n";
    const std::vector<double> energies =
        RoundTicks(y_.low / energy_unit_.factor, y_.high / energy_unit_.factor, 7);
    for (const double tick : energies) {
      const double y = y_(tick * energy_unit_.factor);
      Line("grid", kPlotLeft, y, kPlotRight, y);
      Text("tick", kPlotLeft - 10, y + 4, "end",
           fmt::format("{:.{}f}", tick, TickDecimals(energies)));
    }
    const std::vector<double> times =
        RoundTicks(x_.low / time_unit_.factor, x_.high / time_unit_.factor, 9);
    for (const double tick : times) {
      const double x = x_(tick * time_unit_.factor);
      Line("grid", x, kPlotTop, x, kBottom);
      Text("tick", x, kBottom + 20, "middle", fmt::format("{:.{}f}", tick, TickDecimals(times)));
    }
    // The same two quantities against the baseline.
    const double base_energy = baseline_.energy_joules;
    const std::vector<double> savings =
        RoundTicks(100 * (1 - y_.high / base_energy), 100 * (1 - y_.low / base_energy), 7);
    for (const double tick : savings) {
      const double y = y_(base_energy * (1 - tick / 100));
      Line("stub", kPlotRight, y, kPlotRight + 5, y);
      Text("tick", kPlotRight + 10, y + 4, "start", SavingPercent(tick, TickDecimals(savings)));
    }
    const double base_time = baseline_.iteration_time_seconds;
    const std::vector<double> factors = RoundTicks(x_.low / base_time, x_.high / base_time, 9);
    for (const double tick : factors) {
      const double x = x_(base_time * tick);
      Line("stub", x, kPlotTop - 5, x, kPlotTop);
      Text("tick", x, kPlotTop - 11, "middle",
           fmt::format("{:.{}f}\u00d7", tick, std::max(2, TickDecimals(factors))));
    }
    Text("axis", (kPlotLeft + kPlotRight) / 2, kBottom + 44, "middle",
         fmt::format("iteration time ({})", time_unit_.name));
    fmt::format_to(std::back_inserter(svg_),
                   "<text class=\"axis\" transform=\"translate(20 {:.1f}) rotate(-90)\" "
                   "text-anchor=\"middle\">energy per iteration ({})</text>\n"
                   "<text class=\"axis\" transform=\"translate({} {:.1f}) rotate(90)\" "
                   "text-anchor=\"middle\">saving against all-maximum clocks</text>\n",
                   (kPlotTop + kBottom) / 2, energy_unit_.name, kPlotWidth - 10,
                   (kPlotTop + kBottom) / 2);
    svg_ += "</g>\n";
  }

  void DrawBound() {
    std::string line;
    for (const Point& point : curve_) {
      fmt::format_to(std::back_inserter(line), "{}{:.1f} {:.1f}", line.empty() ? "M" : "L",
                     x_(point.seconds), y_(point.joules));
    }
    const double first = x_(curve_.front().seconds);
    fmt::format_to(std::back_inserter(svg_),
                   "<path class=\"impossible\" d=\"M{0:.1f} {1:.1f}L{0:.1f} {2:.1f}L{3}L{4:.1f} "
                   "{5:.1f}L{6:.1f} {5:.1f}L{6:.1f} {1:.1f}Z\"/>\n"
                   "<path class=\"bound\" d=\"{7}\"/>\n",
                   first, kPlotTop, y_(curve_.front().joules), std::string_view(line).substr(1),
                   kPlotRight, kBottom, kPlotLeft, line);
    // Below the curve's left part there is the most room.
    if (!frontier_.fitted) {
      Text("region", kPlotLeft + 16, kBottom - 14, "start", "no plan can be in the hatched region");
    }
  }

  // The named times: a dashed line each, and the name in a band at the top.
  void DrawTimeMarks() {
    struct Mark {
      double seconds;
      std::string name;   // Plain, for its width.
      std::string label;  // With subscripts.
    };
    const auto label = [](std::string_view base, std::string_view sub) {
      return fmt::format("{}<tspan class=\"sub\" dy=\"3\">{}</tspan>", base, sub);
    };
    const std::vector<Mark> marks = {
        {frontier_.fastest_seconds, "Tmin " + time_unit_.Text(frontier_.fastest_seconds),
         label("T", "min")},
        {frontier_.economic_seconds, "Teconomic " + time_unit_.Text(frontier_.economic_seconds),
         label("T", "economic")},
        {frontier_.tstar_seconds, "T* " + time_unit_.Text(frontier_.tstar_seconds), "T*"},
    };
    svg_ += "<g class=\"marks\">\n";
    std::vector<Box> rows;
    for (const Mark& mark : marks) {
      const double x = x_(mark.seconds);
      const double width = TextWidth(mark.name) + 8;
      const bool left = x + width > kPlotRight;
      Box box{left ? x - width : x, 0, left ? x : x + width, 15};
      for (box.y0 = kPlotTop + 4, box.y1 = box.y0 + 15;
           std::any_of(rows.begin(), rows.end(), [&](const Box& b) { return b.Overlaps(box); });
           box.y0 += 17, box.y1 += 17) {
      }
      rows.push_back(box);
      Line("mark", x, box.y0 - 2, x, y_(Bound(mark.seconds)));
      fmt::format_to(std::back_inserter(svg_),
                     "<text class=\"mark-name\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}"
                     "<tspan class=\"value\"{}> {}</tspan></text>\n",
                     left ? x - 6 : x + 6, box.y0 + 11, left ? "end" : "start", mark.label,
                     mark.label.size() > 2 ? " dy=\"-3\"" : "", time_unit_.Text(mark.seconds));
    }
    svg_ += "</g>\n";
  }

  void DrawPlans() {
    const double base_x = x_(baseline_.iteration_time_seconds);
    const double base_y = y_(baseline_.energy_joules);
    const double plan_x = x_(input_.chosen->iteration_time_seconds);
    const double plan_y = y_(input_.chosen->energy_joules);
    svg_ += "<g class=\"plans\">\n";
    fmt::format_to(std::back_inserter(svg_),
                   "<path class=\"saving\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n", base_x,
                   base_y + 8, plan_x, plan_y - 10);

    std::vector<Box> taken = {{base_x - 8, base_y - 8, base_x + 8, base_y + 8},
                              {plan_x - 9, plan_y - 9, plan_x + 9, plan_y + 9}};
    const std::string base_label =
        fmt::format("all-maximum clocks  {}", energy_unit_.Text(baseline_.energy_joules));
    taken.push_back({base_x, base_y - 9, base_x + 14 + TextWidth(base_label), base_y + 9});
    const std::string plan_label =
        fmt::format("this plan saves {}", SavingPercent(input_.chosen->saving_percent, 2));
    for (const ReportRow& row : input_.rows) {
      if (!row.feasible) continue;
      const double x = x_(row.iteration_time_seconds), y = y_(row.energy_joules);
      taken.push_back({x - 5, y - 5, x + 5, y + 5});
    }

    // From the slowest: then no leader crosses the label of another point.
    for (auto at = input_.rows.rbegin(); at != input_.rows.rend(); ++at) {
      const ReportRow& row = *at;
      if (!row.feasible) continue;
      const double x = x_(row.iteration_time_seconds), y = y_(row.energy_joules);
      fmt::format_to(std::back_inserter(svg_),
                     "<circle class=\"point\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"><title>{}: {}, "
                     "{}, {}</title></circle>\n",
                     x, y, EscapeHtml(row.label), time_unit_.Text(row.iteration_time_seconds),
                     energy_unit_.Text(row.energy_joules), SavingPercent(row.saving_percent, 2));
      // The names of times stand at the top already.
      if (row.chosen || row.label.starts_with("T_") || row.label == "T*") continue;
      PlaceLabel("point-name", x, y, row.label, 16, &taken);
    }
    PlaceLabel("plan-name", plan_x, plan_y, plan_label, 30, &taken);
    fmt::format_to(
        std::back_inserter(svg_),
        "<rect class=\"baseline\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\"/>\n"
        "<path class=\"chosen\" d=\"M{:.1f} {:.1f}l8 8l-8 8l-8 -8Z\"/>\n",
        base_x - 5.5, base_y - 5.5, plan_x, plan_y - 8);
    Text("baseline-name", base_x + 13, base_y + 4.5, "start", base_label);
    svg_ += "</g>\n";
  }

  // Puts a label up and to the right of its point, where a falling curve
  // leaves room, at the first height that is free.
  void PlaceLabel(std::string_view css, double x, double y, std::string_view text, double reach,
                  std::vector<Box>* taken) {
    const double width = TextWidth(text) + 4;
    for (int level = 0; level < 12; ++level) {
      const double rise = reach + 17 * level;
      // A leader at 60 degrees; steeper where the right edge is near.
      const double run = std::min(0.45 * rise, kPlotRight - width - x);
      const Box box{x + run, y - rise - 9, x + run + width, y - rise + 6};
      if (box.y0 < kPlotTop + kMarkBand - 10) break;
      if (std::any_of(taken->begin(), taken->end(),
                      [&](const Box& other) { return other.Overlaps(box); })) {
        continue;
      }
      taken->push_back(box);
      Line("leader", x + 0.16 * run, y - 0.16 * rise, x + run, y - rise + 5);
      Text(css, box.x0 + 2, y - rise + 2, "start", text);
      return;
    }
    // No room above: below the point, over the hatching.
    Text(css, std::min(x + 6, kPlotRight - width), y + 32, "start", text);
  }

  const ReportInput& input_;
  const Frontier& frontier_;
  const Plan& baseline_;
  const DisplayUnit time_unit_;
  const DisplayUnit energy_unit_;
  Scale x_;
  Scale y_;
  std::vector<Point> curve_;
  std::string svg_;
};

}  // namespace

FrontierPlot DrawFrontier(const ReportInput& input) { return Plot(input).Draw(); }

}  // namespace perseus::report
