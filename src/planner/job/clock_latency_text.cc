// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "job/clock_latency_text.h"

#include <fmt/format.h>

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
    const Result<double> seconds = ParseDuration(Trimmed(part.substr(equals + 1)));
    if (!seconds) return tl::unexpected(seconds.error());
    latencies.push_back({*clock, *seconds});
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  // Whether there is a latency for other clocks is not to be seen here.
  const Result<void> checked = CheckClockLatencies({.latency_seconds = 1, .latency_at = latencies});
  if (!checked) return tl::unexpected(checked.error());
  return latencies;
}

std::string ClockLatenciesText(const std::vector<ClockLatency>& latencies) {
  std::string text;
  for (const ClockLatency& each : latencies) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", each.clock, each.seconds);
  }
  return text;
}

}  // namespace perseus::job
