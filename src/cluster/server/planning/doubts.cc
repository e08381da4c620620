// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/doubts.h"

#include <fmt/format.h>

#include <cmath>

#include "perseus/note.h"

namespace perseus::server {
namespace {

constexpr double kWidestError = 0.1;  // Relative standard error of an energy.

bool WaitingDrawsMore(const CostedPipeline& pipeline) {
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      if (option.energy_joules < table.blocking_power_watts * option.time_seconds) return true;
    }
  }
  return false;
}

}  // namespace

std::string DoubtOf(const Job& job) {
  for (const Note& note : job.profile.notes) {
    // Odd notes with a line are about a cell, the others about what was left out.
    if (note.severity != Severity::kOdd || note.line > 0) return note.text;
  }
  if (WaitingDrawsMore(job.pipeline)) {
    return "a GPU seems to draw more while it waits than while it computes";
  }
  for (const OptionErrors& errors : job.profile.errors) {
    const double error = std::hypot(errors.time_std, errors.power_std);
    if (error <= kWidestError) continue;
    return fmt::format("the energy of stage {} {} has a standard error of {:.0f} %", errors.stage,
                       ComputationTypeName(errors.type), 100 * error);
  }
  return "";
}

}  // namespace perseus::server
