// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "perseus/computation.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/result.h"

namespace perseus {
inline namespace v0 {
namespace {

// Why Zeus' format cannot hold a computation.
std::optional<std::string> WhyNot(const PlannedComputation& computation) {
  if (computation.fused) {
    return "the schedule runs two computations as one, and Zeus knows them only one by one";
  }
  if (computation.id.type != ComputationType::kForward &&
      computation.id.type != ComputationType::kBackward) {
    return fmt::format("the schedule has {} computations, and Zeus knows only forward and backward",
                       ComputationTypeName(computation.id.type));
  }
  const double clock = computation.knob.number;
  if (!(clock > 0 && clock <= std::numeric_limits<int>::max()) || std::trunc(clock) != clock) {
    return fmt::format("the clock {} is not a whole number of MHz, and Zeus knows no other",
                       computation.knob.label);
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> FormatZeusPlan(const PlanDocument& plan) {
  const auto cannot = [](std::string_view reason) {
    return MakeError(ErrorCode::kInfeasible,
                     fmt::format("no Zeus plan file is written: {}; use plan.json", reason));
  };
  if (plan.virtual_stages != 1) {
    return cannot(fmt::format("each rank holds {} stages, and Zeus knows one stage a rank",
                              plan.virtual_stages));
  }
  if (!plan.knobs_are_numbers) {
    return cannot("the profile's knobs are labels, and Zeus knows only SM clocks in MHz");
  }
  // Counts and figures only: nothing of the user's text can end the comment.
  std::string text = fmt::format(
      "# Frequency plan by {} {}: {} stages, {} microbatches.\n"
      "# Iteration {} s, energy {} J of one pipeline, {:.2f} % less than at maximum clocks.\n"
      "# One list a pipeline rank, for zeus.optimizer.pipeline_frequency.server.scheduler:\n"
      "# PointSolution, or PointSolution3D with data or tensor parallelism.\n"
      "[\n",
      plan.generator_name, plan.generator_version, plan.stages, plan.microbatches,
      plan.iteration_time_seconds, plan.energy_joules, plan.saving_percent);
  for (const PlannedRank& rank : plan.ranks) {
    text += "    [";
    for (std::size_t i = 0; i < rank.computations.size(); ++i) {
      const PlannedComputation& computation = rank.computations[i];
      if (const std::optional<std::string> reason = WhyNot(computation)) return cannot(*reason);
      fmt::format_to(std::back_inserter(text), "{}('{}', {})", i == 0 ? "" : ", ",
                     ComputationTypeName(computation.id.type),
                     static_cast<int>(computation.knob.number));
    }
    text += "],\n";
  }
  text += "]\n";
  return text;
}

}  // namespace v0
}  // namespace perseus
