// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/emulation_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "common/html_text.h"
#include "report/page.h"
#include "report/scale.h"
#include "report/text.h"

namespace perseus::report {
namespace {

constexpr double kTimelineWidth = 1120;
constexpr double kTimelineLeft = 64;
constexpr double kTimelineRight = 1110;
// More would be neither readable nor small; the trace has all of them.
constexpr int kMostComputations = 30'000;
constexpr int kMostLanes = 160;
constexpr int kMostSwatches = 9;

// The colours of the plan report's timelines: indigo (slow) to gold (fast).
std::string ColourOf(double speed) {
  return fmt::format("oklch({:.3f} {:.4f} {:.1f})", 0.36 + 0.5 * speed,
                     0.135 - 0.08 * speed * (1 - speed), 285 - 193 * speed);
}

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const EmulationReportInput& input)
      : pipeline_(*input.pipeline),
        timeline_(input.emulation->timeline),
        time_(TimeUnit(timeline_.time_seconds)),
        x_{0, timeline_.time_seconds > 0 ? timeline_.time_seconds : 1, kTimelineLeft,
           kTimelineRight} {
    for (const EmulatedPipeline& each : timeline_.pipelines) {
      for (const EmulatedComputation& ran : each.computations) knobs_.insert(ran.knob);
    }
  }

  std::string Format() {
    if (timeline_.pipelines.empty()) return "";
    Legend();
    int computations = 0, lanes = 0, drawn = 0;
    for (const EmulatedPipeline& each : timeline_.pipelines) {
      computations += static_cast<int>(each.computations.size());
      lanes += pipeline_.dag.num_ranks;
      if (computations > kMostComputations || lanes > kMostLanes) break;
      DrawPipeline(each);
      ++drawn;
    }
    const auto left = static_cast<int>(timeline_.pipelines.size()) - drawn;
    if (left > 0) {
      Add("<p>{} more, too large to be drawn here: timeline.pftrace, beside this file, holds all "
          "that is kept, for Perfetto.</p>\n",
          Plural(left, "pipeline"));
    }
    return std::move(html_);
  }

 private:
  template <typename... Args>
  void Add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(html_), format, std::forward<Args>(args)...);
  }

  // Where a knob is between the slowest and the fastest that ran. Labels are
  // ordered as the profile has them.
  double SpeedOf(int knob) const {
    const auto value = [&](int k) {
      return pipeline_.knobs_are_numbers ? pipeline_.knobs[k].number : -static_cast<double>(k);
    };
    double low = value(*knobs_.begin()), high = low;
    for (const int k : knobs_) {
      low = std::min(low, value(k));
      high = std::max(high, value(k));
    }
    return high > low ? (value(knob) - low) / (high - low) : 1;
  }

  void Legend() {
    const std::vector<int> knobs(knobs_.begin(), knobs_.end());
    const std::size_t shown = std::min<std::size_t>(knobs.size(), kMostSwatches);
    Add("<p class=\"keys\">");
    for (std::size_t k = 0; k < shown; ++k) {
      const int knob = knobs[shown > 1 ? k * (knobs.size() - 1) / (shown - 1) : 0];
      Add("<span class=\"key\"><span class=\"swatch\" style=\"background:{}\"></span>{}</span>",
          ColourOf(SpeedOf(knob)), EscapeHtml(pipeline_.knobs[knob].label));
    }
    Add("</p>\n");
  }

  void DrawPipeline(const EmulatedPipeline& ran) {
    const int ranks = pipeline_.dag.num_ranks;
    const double pitch = ranks <= 16 ? 22 : 12;
    const double lane = pitch - 3;
    const double bottom = pitch * ranks;
    Add("<h3>Pipeline {}{}: its own end after {}</h3>\n<div class=\"scroll\" tabindex=\"0\">\n"
        "<svg class=\"lanes\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Timeline of pipeline "
        "{}: {} on {}\">\n",
        ran.pipeline, ran.straggles ? " (straggles)" : "", time_.Text(ran.end_seconds),
        kTimelineWidth, bottom + 26, ran.pipeline, Plural(pipeline_.dag.size(), "computation"),
        Plural(ranks, "rank"));
    for (int rank = 0; rank < ranks; ++rank) {
      Add("<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", kTimelineLeft,
          pitch * rank, kTimelineRight - kTimelineLeft, lane);
      if (ranks <= 16 || rank % 4 == 0) {
        Add("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">rank {}</text>\n", kTimelineLeft - 8,
            pitch * rank + lane - 4, rank);
      }
    }
    // One path a knob: a rectangle costs a score of bytes.
    std::map<int, std::string> paths;
    for (const EmulatedComputation& each : ran.computations) {
      const Computation& what = pipeline_.dag.computations[each.computation];
      double top = pitch * what.rank;
      double height = lane;
      if (!what.fused && (what.id.type == ComputationType::kForward ||
                          what.id.type == ComputationType::kRecompute)) {
        top += 0.3 * lane;
        height = 0.7 * lane;
      } else if (what.id.type == ComputationType::kBackwardWeight) {
        height = 0.7 * lane;
      }
      const double from = x_(each.start_seconds), to = x_(each.end_seconds);
      // A hair is left free, so that neighbours of one colour stay apart.
      const double width = to - from > 2 ? to - from - 0.5 : to - from;
      fmt::format_to(std::back_inserter(paths[each.knob]), "M{:.2f} {:.1f}h{:.2f}v{:.1f}h{:.2f}z",
                     from, top, width, height, -width);
    }
    for (const auto& [knob, path] : paths) {
      Add("<path fill=\"{}\" d=\"{}\"><title>{}</title></path>\n", ColourOf(SpeedOf(knob)), path,
          EscapeHtml(pipeline_.knobs[knob].label));
    }
    Add("<line class=\"own\" x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1}\"/>\n",
        x_(ran.end_seconds), bottom);
    Add("<line class=\"end\" x1=\"{0:.1f}\" y1=\"0\" x2=\"{0:.1f}\" y2=\"{1}\"/>\n",
        x_(timeline_.time_seconds), bottom);
    const std::vector<double> ticks = RoundTicks(0, timeline_.time_seconds / time_.factor, 10);
    for (const double tick : ticks) {
      Add("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.{}f}</text>\n",
          x_(tick * time_.factor), bottom + 16, tick, TickDecimals(ticks));
    }
    Add("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n</svg>\n</div>\n",
        kTimelineLeft - 30, bottom + 16, time_.name);
  }

  const CostedPipeline& pipeline_;
  const EmulatedTimeline& timeline_;
  const DisplayUnit time_;
  const Scale x_;
  std::set<int> knobs_;
  std::string html_;
};

}  // namespace

std::string DrawEmulatedTimeline(const EmulationReportInput& input) {
  return TimelineDrawing(input).Format();
}

}  // namespace perseus::report
