// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

Result<void> CheckClockLatencies(const ClockSwitching& switching) {
  constexpr double kMostSeconds = 1e6;
  if (!switching.latency_at.empty() && !(switching.latency_seconds > 0)) {
    return InvalidInput(
        "'switch_latency_at' is for clocks that take another time than others; give "
        "'switch_latency', too");
  }
  std::set<double> seen;
  for (const ClockLatency& each : switching.latency_at) {
    if (!(each.clock > 0)) {
      return InvalidInput(fmt::format(
          "the clock {} has a latency of its own; expected a clock above 0 (MHz)", each.clock));
    }
    if (!(each.seconds >= 0 && each.seconds <= kMostSeconds)) {
      return InvalidInput(fmt::format("the latency of the clock {:g} is {} s; expected 0 to {} s",
                                      each.clock, each.seconds, kMostSeconds));
    }
    if (!seen.insert(each.clock).second) {
      return InvalidInput(
          fmt::format("the clock {:g} has two latencies of its own; keep one", each.clock));
    }
  }
  return {};
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
    for (ClockLatency& each : switching.latency_at) {
      each.seconds = std::max(0.0, each.seconds + (value - switching.latency_seconds));
    }
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
