// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/clock_latency_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "job/duration_text.h"

namespace perseus::job {

Result<std::vector<ClockLatency>> ParseClockLatencies(std::string_view text) {
  std::vector<ClockLatency> latencies;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = Trimmed(rest.substr(0, comma));
    const std::size_t equals = part.find('=');
    const std::optional<double> clock = ParseFinite(Trimmed(part.substr(0, equals)));
    if (equals == std::string_view::npos || !clock) {
      return InvalidInput(fmt::format(
          "expected a time for each of some clocks, such as \"1410=9ms,600=30ms\", found {}",
          Shown(text)));
    }
    if (*clock <= 0) {
      return InvalidInput(
          fmt::format("expected a clock above 0 (MHz), found {} in {}", *clock, Shown(text)));
    }
    if (std::any_of(latencies.begin(), latencies.end(),
                    [&](const ClockLatency& each) { return each.clock == *clock; })) {
      return InvalidInput(fmt::format("the clock {} is there twice in {}", *clock, Shown(text)));
    }
    const Result<double> seconds = ParseDuration(Trimmed(part.substr(equals + 1)));
    if (!seconds) return tl::unexpected(seconds.error());
    latencies.push_back({*clock, *seconds});
    if (comma == std::string_view::npos) return latencies;
    rest.remove_prefix(comma + 1);
  }
}

std::string ClockLatenciesText(const std::vector<ClockLatency>& latencies) {
  std::string text;
  for (const ClockLatency& each : latencies) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", each.clock, each.seconds);
  }
  return text;
}

}  // namespace perseus::job
