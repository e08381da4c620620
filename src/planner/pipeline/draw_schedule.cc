// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/core.h>

#include <cstdint>

#include "perseus/schedule.h"
#include "pipeline/step_graph.h"

namespace perseus {
inline namespace v0 {
namespace {

using pipeline::StepGraph;

// A drawing that no terminal could show.
constexpr std::int64_t kMostCharacters = std::int64_t{1} << 26;

// "F3"; with its stage, "2F3", where a rank has several.
std::string LabelOf(const ComputationId& id, bool with_stage) {
  const std::string stage = with_stage ? fmt::format("{}", id.stage) : std::string();
  return fmt::format("{}{}{}", stage, ComputationTypeLetter(id.type), id.microbatch);
}

std::string StepLabel(const ScheduleStep& step, bool with_stage) {
  std::string label = LabelOf(step.id, with_stage);
  if (step.fused) label.append("+").append(LabelOf(*step.fused, with_stage));
  return label;
}

// The time axis: a number under every tenth unit, at the column where it starts.
std::string Axis(std::int64_t end_units, int unit_width, std::size_t margin) {
  constexpr std::int64_t kUnitsPerMark = 10;
  std::string axis(margin, ' ');
  for (std::int64_t unit = 0; unit < end_units; unit += kUnitsPerMark) {
    axis.resize(margin + static_cast<std::size_t>(unit * unit_width), ' ');
    axis += fmt::format("{}", unit);
  }
  return axis;
}

}  // namespace

std::string DrawSchedule(const Schedule& schedule) {
  const auto graph = StepGraph::Connect(schedule);
  if (!graph) return graph.error().message + "\n";

  const bool with_stage = schedule.num_stages != schedule.num_ranks;
  const std::int64_t end_units = graph->end_units();
  const ComputationId longest{ComputationType::kForward, schedule.num_stages - 1,
                              schedule.num_microbatches - 1};
  const auto unit_width = static_cast<int>(LabelOf(longest, with_stage).size()) + 1;
  const std::string last_rank = fmt::format("{}", schedule.num_ranks - 1);
  const std::size_t margin = std::string_view("rank ").size() + last_rank.size() + 2;
  if (schedule.num_ranks * (end_units * unit_width) > kMostCharacters) {
    return fmt::format("{} is too large to draw: {} ranks, {} time units\n", schedule.name,
                       schedule.num_ranks, end_units);
  }

  std::string drawing;
  std::int64_t busy_units = 0;
  bool recomputes = false;
  for (int rank = 0; rank < schedule.num_ranks; ++rank) {
    std::string line = fmt::format("rank {:>{}}  ", rank, last_rank.size());
    const auto idle_until = [&](std::int64_t unit) {
      for (auto now = static_cast<std::int64_t>((line.size() - margin) / unit_width); now < unit;
           ++now) {
        line += fmt::format("{:<{}}", '.', unit_width);
      }
    };
    const auto& order = schedule.ranks[rank];
    for (std::size_t position = 0; position < order.size(); ++position) {
      const ScheduleStep& step = order[position];
      const int units = StepGraph::DurationUnits(step);
      busy_units += units;
      recomputes = recomputes || step.id.type == ComputationType::kRecompute;
      idle_until(graph->start_units(graph->first_step(rank) + static_cast<int>(position)));
      // A box as wide as its time, with one space to its neighbour.
      line += fmt::format("{:-<{}} ", StepLabel(step, with_stage), units * unit_width - 1);
    }
    idle_until(end_units);
    drawing += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  drawing += Axis(end_units, unit_width, margin) + "\n";
  drawing += fmt::format(
      "{}F forward 1 unit, B backward 2, I input and W weight gradient 1 each{}; '.' idle: {:.1f} "
      "% "
      "of {} units\n",
      std::string(margin, ' '), recomputes ? ", R recompute 1" : "",
      100.0 * (1.0 - static_cast<double>(busy_units) /
                         static_cast<double>(end_units * schedule.num_ranks)),
      end_units);
  return drawing;
}

}  // namespace v0
}  // namespace perseus
