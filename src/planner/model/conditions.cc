// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/conditions.h"

#include <algorithm>
#include <utility>

#include "common/enum_names.h"

namespace perseus {
inline namespace v0 {
namespace {

constexpr EnumNames<CallAhead, 3> kCallAheadNames = {{"none", "end", "predicted"}};

}  // namespace

std::string_view CallAheadName(CallAhead call_ahead) { return kCallAheadNames.Of(call_ahead); }

std::optional<CallAhead> ParseCallAhead(std::string_view name) {
  return kCallAheadNames.Parse(name);
}

std::vector<Conditions> CornersOf(const Conditions& conditions) {
  const ConditionRanges& ranges = conditions.ranges;
  Conditions one = conditions;
  one.ranges = {};
  if (!ranges.any()) return {one};
  std::vector<Conditions> corners = {one};
  const auto divide = [&corners](const std::optional<ValueRange>& range, auto&& set) {
    if (!range) return;
    std::vector<Conditions> divided;
    for (const Conditions& corner : corners) {
      for (const double value : {range->least, range->most}) {
        divided.push_back(corner);
        set(value, &divided.back());
        if (range->is_one()) break;
      }
    }
    corners = std::move(divided);
  };
  divide(ranges.noise, [](double value, Conditions* c) { c->noise.per_computation = value; });
  divide(ranges.rank_noise, [](double value, Conditions* c) { c->noise.per_rank = value; });
  divide(ranges.switch_latency_seconds, [&ranges](double value, Conditions* c) {
    ClockSwitching& switching = c->switching;
    switching.latency_seconds = value;
    const bool least = value < ranges.switch_latency_seconds->most;
    switching.latency_spread_seconds =
        least ? 0 : std::min(value, switching.latency_spread_seconds);
  });
  corners.insert(corners.begin(), one);
  return corners;
}

}  // namespace v0
}  // namespace perseus
