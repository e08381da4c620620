// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/doubts.h"

#include <fmt/format.h>

#include <cmath>

#include "perseus/note.h"
#include "profile/profile_checks.h"

namespace perseus::server {
namespace {

constexpr double kWidestError = 0.1;  // Relative standard error of an energy.

// Odd in a file, where it may be milliseconds; a measured time is right.
bool HasLongComputations(const Profile& profile) {
  for (const OptionTable& table : profile.tables) {
    for (const Option& option : table.options) {
      if (option.time_seconds > profile::kLongTaskSeconds) return true;
    }
  }
  return false;
}

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
  const bool is_long = HasLongComputations(job.profile);
  for (const Note& note : job.profile.notes) {
    // Odd notes with a line are about a cell, the others about parts that were left out.
    const bool is_cell = note.line > 0 && !is_long;
    if (note.severity != Severity::kOdd || is_cell) return note.text;
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
