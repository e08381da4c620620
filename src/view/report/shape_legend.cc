// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "report/shape_legend.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace perseus::report {

std::string DrawShapes(const CostedPipeline& pipeline) {
  std::string html = "<div class=\"shapes\">\n";
  const bool fused = std::any_of(pipeline.tables.begin(), pipeline.tables.end(),
                                 [](const CostTable& t) { return t.fused_type.has_value(); });
  const auto runs = [&pipeline](ComputationType type) {
    return std::any_of(pipeline.tables.begin(), pipeline.tables.end(),
                       [type](const CostTable& t) { return t.type == type; });
  };
  const bool weight = runs(ComputationType::kBackwardWeight);
  const bool recompute = runs(ComputationType::kRecompute);
  const auto shape = [&](std::string_view drawing, std::string_view text) {
    fmt::format_to(std::back_inserter(html),
                   "<span><svg viewBox=\"0 0 30 16\" aria-hidden=\"true\">{}</svg>{}</span>\n",
                   drawing, text);
  };
  shape(
      "<rect class=\"block pale\" x=\"1\" width=\"13\" height=\"16\"/><rect class=\"block\" "
      "x=\"1\" "
      "y=\"5\" width=\"13\" height=\"11\"/>",
      recompute ? "F forward, R recompute: low block" : "F forward: low block");
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
        recompute ? "two that run as one" : "forward and backward overlapped");
  }
  shape(
      "<rect class=\"lane\" width=\"30\" height=\"16\"/><path class=\"lane-line\" "
      "d=\"M2 15L16 1M14 15L28 1\"/>",
      "waiting");
  shape("<path class=\"path\" d=\"M0 12H17V4H30\" fill=\"none\"/>", "critical path");
  return html + "</div>\n";
}

}  // namespace perseus::report
