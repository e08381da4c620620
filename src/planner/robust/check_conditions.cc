// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/check_conditions.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "common/input_limits.h"
#include "model/rare_noise.h"

namespace perseus::robust {
namespace {

constexpr int kMostPipelines = 4096;

// `what` follows "expected ": "seconds", "a share".
Result<void> CheckRange(std::string_view key, double value, std::string_view what, double most) {
  if (value >= 0 && value <= most) return {};
  return InvalidInput(
      std::isinf(most)
          ? fmt::format("'{}' is {}; expected {} >= 0", key, value, what)
          : fmt::format("'{}' is {}; expected {} from 0 to {}", key, value, what, most));
}

}  // namespace

Result<void> CheckConditions(const Conditions& conditions, int pipelines) {
  constexpr double kMostSeconds = 1e6;
  constexpr std::string_view kShare = "a share (0.01 is 1 %)";
  constexpr std::string_view kSeconds = "seconds";
  const ClockSwitching& switching = conditions.switching;
  const struct {
    std::string_view key;
    double value;
    std::string_view what;
    double most;
  } ranges[] = {
      {"noise", conditions.noise.per_computation, kShare, kMostNoise},
      {"stage_noise", conditions.noise.per_stage, kShare, kMostNoise},
      {"gpu_noise", conditions.noise.per_gpu, kShare, kMostNoise},
      {"rank_noise", conditions.noise.per_rank, kShare, kMostNoise},
      {"rare_noise", conditions.noise.rare_length, kShare, kMostNoise},
      {"rare_noise_share", conditions.noise.rare_share, kShare, kMostNoise},
      {"switch_latency", switching.latency_seconds, kSeconds, kMostSeconds},
      {"switch_latency_spread", switching.latency_spread_seconds, kSeconds, kMostSeconds},
      {"switch_stall", switching.stall_seconds, kSeconds, kMostSeconds},
      {"min_call_interval", switching.min_interval_seconds, kSeconds, kMostSeconds},
      {"max_early_loss", switching.max_early_loss, kShare, 1},
      {"change_price", conditions.change_joules, "joules", 1e12},
      {"max_slowdown", conditions.max_slowdown, kShare, 100},
      {"max_changes", static_cast<double>(conditions.max_changes.value_or(0)), "a number",
       HUGE_VAL},
  };
  for (const auto& range : ranges) {
    if (auto checked = CheckRange(range.key, range.value, range.what, range.most); !checked) {
      return checked;
    }
  }
  const ConditionRanges& known = conditions.ranges;
  const struct {
    std::string_view key;
    const std::optional<ValueRange>& range;
    double value;
    std::string_view what;
    double most;
  } widths[] = {
      {"noise", known.noise, conditions.noise.per_computation, kShare, kMostNoise},
      {"rank_noise", known.rank_noise, conditions.noise.per_rank, kShare, kMostNoise},
      {"switch_latency", known.switch_latency_seconds, switching.latency_seconds, kSeconds,
       kMostSeconds},
  };
  for (const auto& [key, range, value, what, most] : widths) {
    if (!range) continue;
    for (const double end : {range->least, range->most}) {
      if (auto checked = CheckRange(key, end, what, most); !checked) return checked;
    }
    if (!(range->least <= value && value <= range->most)) {
      return InvalidInput(
          fmt::format("the range of '{}' is {} to {}; expected one that contains {}", key,
                      range->least, range->most, value));
    }
  }
  const double correlation = conditions.noise.correlation;
  if (!(correlation >= 0 && correlation < 1)) {
    return InvalidInput(
        fmt::format("'noise_correlation' is {}; expected a share from 0 to below 1 (0.9 is 90 %)",
                    correlation));
  }
  const TimeNoise& noise = conditions.noise;
  if (model::HasHalfOfRareNoise(noise)) {
    return InvalidInput(fmt::format(
        "'rare_noise' is {} and 'rare_noise_share' is {}; give both above 0, or neither",
        noise.rare_length, noise.rare_share));
  }
  if (!ParseCallAhead(CallAheadName(switching.call_ahead))) {
    return InvalidInput("'call_ahead' is none; expected none, end or predicted");
  }
  if (switching.latency_spread_seconds > switching.latency_seconds) {
    return InvalidInput(fmt::format(
        "'switch_latency_spread' is {} s, more than the 'switch_latency' of {} s; expected "
        "at most as much",
        switching.latency_spread_seconds, switching.latency_seconds));
  }
  if (auto checked = CheckClockLatencies(switching); !checked) return checked;
  if (!(conditions.confidence >= 0.5 && conditions.confidence < 1)) {
    return InvalidInput(
        fmt::format("'confidence' is {}; expected a share from 0.5 to below 1 (0.95 is 95 %)",
                    conditions.confidence));
  }
  if (pipelines < 1 || pipelines > kMostPipelines) {
    return InvalidInput(
        fmt::format("'dp' is {}; expected 1 to {} pipelines for a plan under conditions", pipelines,
                    kMostPipelines));
  }
  return {};
}

}  // namespace perseus::robust
