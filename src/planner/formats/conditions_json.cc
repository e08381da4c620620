// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/conditions_json.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>

#include "common/input_limits.h"
#include "formats/figures_json.h"

namespace perseus::formats {
namespace {

constexpr int kMostCount = std::numeric_limits<int>::max();

void Set(const TreeCursor& object, std::string_view key, const NumberRange& range, double* value) {
  if (const auto found = object.Find(key)) *value = found->Number(range);
}

}  // namespace

std::string ConditionsJson(const Conditions& conditions) {
  const TimeNoise& noise = conditions.noise;
  const ClockSwitching& switching = conditions.switching;
  std::string json = fmt::format(
      "{{\"noise\": {}, \"stage_noise\": {}, \"gpu_noise\": {}, \"switch_latency_s\": {}, "
      "\"switch_latency_spread_s\": {}, \"switch_stall_s\": {}, \"call_ahead\": \"{}\", "
      "\"max_early_loss\": {}, \"min_call_interval_s\": {}, \"change_price_j\": {}, "
      "\"max_slowdown\": {}, \"confidence\": {}",
      noise.per_computation, noise.per_stage, noise.per_gpu, switching.latency_seconds,
      switching.latency_spread_seconds, switching.stall_seconds,
      CallAheadName(switching.call_ahead), switching.max_early_loss, switching.min_interval_seconds,
      conditions.change_joules, conditions.max_slowdown, conditions.confidence);
  if (conditions.max_changes) json += fmt::format(", \"max_changes\": {}", *conditions.max_changes);
  return json + "}";
}

std::string ExpectedJson(const ExpectedFigures& expected) {
  return "{" + FigureMembers(expected) + "}";
}

Conditions ReadConditions(const TreeCursor& object) {
  constexpr NumberRange kNoise = {.least = 0, .most = kMostNoise};
  constexpr NumberRange kShare = {.least = 0, .most = 1};
  constexpr NumberRange kInnerShare = {
      .least = 0, .most = 1, .above_least = true, .below_most = true};
  Conditions conditions;
  Set(object, "noise", kNoise, &conditions.noise.per_computation);
  Set(object, "stage_noise", kNoise, &conditions.noise.per_stage);
  Set(object, "gpu_noise", kNoise, &conditions.noise.per_gpu);
  ClockSwitching& switching = conditions.switching;
  Set(object, "switch_latency_s", kNotNegative, &switching.latency_seconds);
  if (const auto found = object.Find("switch_latency_spread_s")) {
    switching.latency_spread_seconds = found->Number(kNotNegative);
    if (switching.latency_spread_seconds > switching.latency_seconds) {
      found->FailExpected("at most switch_latency_s");
    }
  }
  Set(object, "switch_stall_s", kNotNegative, &switching.stall_seconds);
  if (const auto found = object.Find("call_ahead")) {
    const std::optional<CallAhead> call_ahead = ParseCallAhead(found->String());
    if (!call_ahead) found->FailExpected("none, end or predicted");
    switching.call_ahead = call_ahead.value_or(CallAhead::kNone);
  }
  Set(object, "max_early_loss", kShare, &switching.max_early_loss);
  Set(object, "min_call_interval_s", kNotNegative, &switching.min_interval_seconds);
  Set(object, "change_price_j", kNotNegative, &conditions.change_joules);
  Set(object, "max_slowdown", kShare, &conditions.max_slowdown);
  Set(object, "confidence", kInnerShare, &conditions.confidence);
  if (const auto found = object.Find("max_changes")) {
    conditions.max_changes = found->Integer(0, kMostCount);
  }
  return conditions;
}

ExpectedFigures ReadExpected(const TreeCursor& object) {
  ExpectedFigures expected;
  ReadFigures(object, &expected);
  return expected;
}

}  // namespace perseus::formats
