// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/check_conditions.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace perseus::robust {
namespace {

constexpr int kMostPipelines = 4096;

Result<void> CheckRange(std::string_view what, double value, double most) {
  if (value >= 0 && value <= most) return {};
  if (std::isinf(most)) {
    return InvalidInput(fmt::format("{} is {}; expected a number >= 0", what, value));
  }
  return InvalidInput(fmt::format("{} is {}; expected a number from 0 to {}", what, value, most));
}

}  // namespace

Result<void> CheckConditions(const Conditions& conditions, int pipelines) {
  constexpr double kMostSeconds = 1e6;
  const ClockSwitching& switching = conditions.switching;
  const struct {
    std::string_view what;
    double value;
    double most;
  } ranges[] = {
      {"the noise per computation", conditions.noise.per_computation, kMostNoise},
      {"the noise per stage", conditions.noise.per_stage, kMostNoise},
      {"the noise per GPU", conditions.noise.per_gpu, kMostNoise},
      {"the switch latency", switching.latency_seconds, kMostSeconds},
      {"the spread of the switch latency", switching.latency_spread_seconds,
       switching.latency_seconds},
      {"the switch stall", switching.stall_seconds, kMostSeconds},
      {"the shortest time between calls", switching.min_interval_seconds, kMostSeconds},
      {"the most early loss", switching.max_early_loss, 1},
      {"the price of a change", conditions.change_joules, 1e12},
      {"the accepted slowdown", conditions.max_slowdown, 100},
      {"the number of changes", static_cast<double>(conditions.max_changes.value_or(0)), HUGE_VAL},
  };
  for (const auto& range : ranges) {
    if (auto checked = CheckRange(range.what, range.value, range.most); !checked) return checked;
  }
  if (!(conditions.confidence >= 0.5 && conditions.confidence < 1)) {
    return InvalidInput(fmt::format("the confidence is {}; expected a number from 0.5 to below 1",
                                    conditions.confidence));
  }
  if (pipelines < 1 || pipelines > kMostPipelines) {
    return InvalidInput(fmt::format("{} pipelines; expected 1 to {} for a plan under conditions",
                                    pipelines, kMostPipelines));
  }
  return {};
}

}  // namespace perseus::robust
