// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/trace_drawings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "report/page.h"
#include "report/text.h"

namespace perseus::trace {
namespace {

constexpr double kDrawingWidth = 1120;
constexpr double kDrawingLeft = 64;
constexpr double kDrawingRight = 1110;
// More would be neither readable nor small.
constexpr int kMostCells = 20'000;

// From the page's ground to red.
std::string HeatOf(double share) {
  return fmt::format("color-mix(in oklab, var(--intrinsic) {:.0f}%, var(--wait))",
                     100 * std::clamp(share, 0.0, 1.0));
}

std::string_view LaneClass(OperationKind kind) {
  if (kind == OperationKind::kForward) return "forward";
  if (kind == OperationKind::kBackward) return "backward";
  return "stretch";
}

}  // namespace

std::string DrawHeatMap(const Recording& recording, const std::vector<double>& slowdowns) {
  if (slowdowns.empty()) {
    return fmt::format("<p>Left out: {} ranks are too many to replay each.</p>\n",
                       recording.places());
  }
  if (recording.places() > kMostCells) {
    return fmt::format("<p>{} ranks are too many to draw; --json has their figures.</p>\n",
                       recording.places());
  }
  const auto [least, most] = std::minmax_element(slowdowns.begin(), slowdowns.end());
  const double low = std::min(1.0, *least);
  const double range = std::max(*most - low, 1e-9);
  const double cell = std::min(30.0, (kDrawingRight - kDrawingLeft) / recording.pipelines);
  const double height = 24;
  const bool numbers = cell >= 28;
  std::string svg = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\">\n<svg class=\"lanes\" viewBox=\"0 0 {} {}\" "
      "role=\"img\" aria-label=\"Heat map of {} pipelines and {} stages\">\n",
      kDrawingWidth, height * recording.stages + 22, recording.pipelines, recording.stages);
  for (int stage = 0; stage < recording.stages; ++stage) {
    fmt::format_to(std::back_inserter(svg),
                   "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">stage {}</text>\n",
                   kDrawingLeft - 8, height * stage + 16, stage);
    for (int pipeline = 0; pipeline < recording.pipelines; ++pipeline) {
      const int place = recording.Place(pipeline, stage);
      const double slowdown = slowdowns[static_cast<std::size_t>(place)];
      const double x = kDrawingLeft + cell * pipeline;
      fmt::format_to(std::back_inserter(svg),
                     "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" "
                     "style=\"fill:{}\"><title>rank "
                     "{}, pipeline {}, stage {}: {:.4f}</title></rect>\n",
                     x, height * stage, cell - 1, height - 2, HeatOf((slowdown - low) / range),
                     recording.rank_of[static_cast<std::size_t>(place)], pipeline, stage, slowdown);
      if (numbers) {
        fmt::format_to(std::back_inserter(svg),
                       "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" font-size=\"10\">{:.2f}"
                       "</text>\n",
                       x + cell / 2 - 0.5, height * stage + 15, slowdown);
      }
    }
  }
  const int every = std::max(1, recording.pipelines / 16);
  for (int pipeline = 0; pipeline < recording.pipelines; pipeline += every) {
    fmt::format_to(
        std::back_inserter(svg), "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        kDrawingLeft + cell * (pipeline + 0.5), height * recording.stages + 15, pipeline);
  }
  return svg + "</svg>\n</div>\n";
}

std::string DrawRecordedLanes(const Recording& recording, int step_index, int pipeline) {
  const int begin = recording.first_of[recording.Cell(step_index, 0, 0)];
  const int end = recording.first_of[recording.Cell(step_index + 1, 0, 0)];
  double from = recording.operations[begin].start_seconds;
  double to = from;
  for (int i = begin; i < end; ++i) {
    from = std::min(from, recording.operations[i].start_seconds);
    to = std::max(to, recording.operations[i].end_seconds());
  }
  const double scale = (kDrawingRight - kDrawingLeft) / std::max(to - from, 1e-12);
  const double pitch = recording.stages <= 16 ? 22 : 12;
  const double lane = pitch - 3;
  std::string svg = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\">\n<svg class=\"lanes\" viewBox=\"0 0 {} {}\" "
      "role=\"img\" aria-label=\"Timeline of pipeline {}\">\n",
      kDrawingWidth, pitch * recording.stages + 18, pipeline);
  for (int stage = 0; stage < recording.stages; ++stage) {
    fmt::format_to(std::back_inserter(svg),
                   "<rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n<text "
                   "x=\"{}\" y=\"{}\" text-anchor=\"end\">stage {}</text>\n",
                   kDrawingLeft, pitch * stage, kDrawingRight - kDrawingLeft, lane,
                   kDrawingLeft - 8, pitch * stage + lane - 4, stage);
    // One path a class: a rectangle costs a score of bytes.
    std::array<std::string, 3> paths;
    constexpr std::array<OperationKind, 3> kDrawn = {
        OperationKind::kForward, OperationKind::kBackward, OperationKind::kOptimizer};
    const int cell = recording.Cell(step_index, pipeline, stage);
    for (int i = recording.first_of[cell]; i < recording.first_of[cell + 1]; ++i) {
      const Operation& operation = recording.operations[i];
      if (IsTransfer(operation.kind) || operation.duration_seconds <= 0) continue;
      const std::size_t path = operation.kind == OperationKind::kForward    ? 0
                               : operation.kind == OperationKind::kBackward ? 1
                                                                            : 2;
      const double share = path == 1 ? 1 : path == 0 ? 0.7 : 0.35;
      const double width = operation.duration_seconds * scale;
      fmt::format_to(std::back_inserter(paths[path]), "M{:.2f} {:.1f}h{:.2f}v{:.1f}h{:.2f}z",
                     kDrawingLeft + (operation.start_seconds - from) * scale,
                     pitch * stage + (1 - share) * lane, width > 2 ? width - 0.5 : width,
                     share * lane, -(width > 2 ? width - 0.5 : width));
    }
    for (std::size_t path = 0; path < paths.size(); ++path) {
      if (paths[path].empty()) continue;
      fmt::format_to(std::back_inserter(svg), "<path class=\"{}\" d=\"{}\"/>\n",
                     LaneClass(kDrawn[path]), paths[path]);
    }
  }
  fmt::format_to(std::back_inserter(svg),
                 "<text x=\"{}\" y=\"{}\">0</text>\n<text x=\"{}\" y=\"{}\" "
                 "text-anchor=\"end\">{}</text>\n</svg>\n</div>\n",
                 kDrawingLeft, pitch * recording.stages + 12, kDrawingRight,
                 pitch * recording.stages + 12, report::TimeUnit(to - from).Text(to - from));
  return svg;
}

}  // namespace perseus::trace
