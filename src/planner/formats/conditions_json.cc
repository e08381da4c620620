// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "formats/conditions_json.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "common/input_limits.h"
#include "formats/figures_json.h"
#include "model/rare_noise.h"

namespace perseus::formats {
namespace {

constexpr int kMostCount = std::numeric_limits<int>::max();

void Set(const TreeCursor& object, std::string_view key, const NumberRange& range, double* value) {
  if (const auto found = object.Find(key)) *value = found->Number(range);
}

// The ranges by their keys, and the values that they contain.
template <typename Visit>
void VisitRanges(Visit&& visit) {
  visit("noise", &ConditionRanges::noise,
        [](const Conditions& of) { return of.noise.per_computation; });
  visit("rank_noise", &ConditionRanges::rank_noise,
        [](const Conditions& of) { return of.noise.per_rank; });
  visit("switch_latency_s", &ConditionRanges::switch_latency_seconds,
        [](const Conditions& of) { return of.switching.latency_seconds; });
}

std::string RangesJson(const ConditionRanges& ranges) {
  std::string json;
  VisitRanges([&](std::string_view key, auto member, auto&& /*value*/) {
    const std::optional<ValueRange>& range = ranges.*member;
    if (!range) return;
    json +=
        fmt::format("{}\"{}\": [{}, {}]", json.empty() ? "" : ", ", key, range->least, range->most);
  });
  return "{" + json + "}";
}

void ReadRanges(const TreeCursor& object, Conditions* conditions) {
  VisitRanges([&](std::string_view key, auto member, auto&& value_of) {
    const auto found = object.Find(key);
    if (!found) return;
    const double most = key == "switch_latency_s" ? kNotNegative.most : kMostNoise;
    const std::vector<double> ends = found->Numbers({.least = 0, .most = most});
    const double value = value_of(*conditions);
    if (ends.size() != 2 || !(ends[0] <= value && value <= ends[1])) {
      found->FailExpected("two numbers, the least and the most that it may be");
      return;
    }
    conditions->ranges.*member = ValueRange(ends[0], ends[1]);
  });
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
  if (noise.per_rank > 0) json += fmt::format(", \"rank_noise\": {}", noise.per_rank);
  if (noise.correlation > 0) json += fmt::format(", \"noise_correlation\": {}", noise.correlation);
  if (noise.has_rare()) {
    json += fmt::format(", \"rare_noise\": {}, \"rare_noise_share\": {}", noise.rare_length,
                        noise.rare_share);
  }
  if (!switching.latency_at.empty()) {
    std::string list;
    for (const ClockLatency& each : switching.latency_at) {
      list += fmt::format("{}[{}, {}]", list.empty() ? "" : ", ", each.clock, each.seconds);
    }
    json += fmt::format(", \"switch_latency_at_s\": [{}]", list);
  }
  if (conditions.max_changes) json += fmt::format(", \"max_changes\": {}", *conditions.max_changes);
  if (!conditions.profile_errors) json += ", \"profile_errors\": false";
  if (conditions.ranges.any()) {
    json += fmt::format(", \"ranges\": {}", RangesJson(conditions.ranges));
  }
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
  Set(object, "rank_noise", kNoise, &conditions.noise.per_rank);
  Set(object, "noise_correlation", {.least = 0, .most = 1, .below_most = true},
      &conditions.noise.correlation);
  Set(object, "rare_noise", kNoise, &conditions.noise.rare_length);
  Set(object, "rare_noise_share", kNoise, &conditions.noise.rare_share);
  if (model::HasHalfOfRareNoise(conditions.noise)) {
    const bool has_length = conditions.noise.rare_length > 0;
    object.Get(has_length ? "rare_noise" : "rare_noise_share")
        .Fail(fmt::format("expected {} above 0, too, or neither of the two",
                          has_length ? "rare_noise_share" : "rare_noise"));
  }
  ClockSwitching& switching = conditions.switching;
  Set(object, "switch_latency_s", kNotNegative, &switching.latency_seconds);
  if (const auto found = object.Find("switch_latency_spread_s")) {
    switching.latency_spread_seconds = found->Number(kNotNegative);
    if (switching.latency_spread_seconds > switching.latency_seconds) {
      found->FailExpected("at most switch_latency_s");
    }
  }
  if (const auto found = object.Find("switch_latency_at_s")) {
    for (std::size_t i = 0; i < found->Size(); ++i) {
      const std::vector<double> pair = found->At(i).Numbers(kNotNegative);
      if (pair.size() != 2) found->At(i).FailExpected("a clock and its latency");
      if (pair.size() == 2) switching.latency_at.push_back({pair[0], pair[1]});
    }
    if (const auto checked = CheckClockLatencies(switching); !checked) {
      found->Fail(checked.error().message);
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
  if (const auto found = object.Find("profile_errors")) conditions.profile_errors = found->Bool();
  if (const auto found = object.Find("ranges")) ReadRanges(*found, &conditions);
  return conditions;
}

ExpectedFigures ReadExpected(const TreeCursor& object) {
  ExpectedFigures expected;
  ReadFigures(object, &expected);
  // Plans of before there were ranges have neither.
  if (!object.Find("most_slowdown_percent")) {
    expected.most_slowdown_percent = expected.slowdown_percent;
  }
  if (!object.Find("least_saving_percent")) {
    expected.least_saving_percent = expected.saving_percent;
  }
  return expected;
}

}  // namespace perseus::formats
