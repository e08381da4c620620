// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/overlap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "profile/plausible.h"
#include "trace/operation_kind.h"

namespace perseus::trace {

std::string OverlapNote(const Recording& recording) {
  constexpr double kHeavily = 1.5;
  double busy = 0;
  double spans = 0;
  double shortest = std::numeric_limits<double>::infinity();
  for (std::size_t cell = 0; cell + 1 < recording.first_of.size(); ++cell) {
    double from = 0;
    double to = 0;
    bool is_first = true;
    for (int k = recording.first_of[cell]; k < recording.first_of[cell + 1]; ++k) {
      const Operation& operation = recording.operations[k];
      if (!IsComputation(operation.kind)) continue;
      busy += operation.duration_seconds;
      shortest = std::min(shortest, operation.duration_seconds);
      from = is_first ? operation.start_seconds : std::min(from, operation.start_seconds);
      to = is_first ? operation.end_seconds() : std::max(to, operation.end_seconds());
      is_first = false;
    }
    spans += to - from;
  }
  if (busy <= kHeavily * spans) {
    const bool is_long = std::isfinite(shortest) && shortest > profile::kLongTaskSeconds;
    if (!is_long) return "";
    return fmt::format(
        "the shortest computation lasts {:g} s. Check that start_ts and duration are in seconds, "
        "not in milli- or microseconds.",
        shortest);
  }
  return fmt::format(
      "the computations of a rank overlap: they last {:.1f} times as long as from the start of the "
      "first to the end of the last. Check that start_ts and duration are both in seconds.",
      busy / spans);
}

}  // namespace perseus::trace
