// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "trace/trace_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/median.h"
#include "profile/plausible.h"
#include "trace/operation_kind.h"

namespace perseus::trace {
namespace {

constexpr double kHeavily = 1.5;          // Computing over the time that it has.
constexpr double kLongMedianSeconds = 2;  // Odd from there on; measured: 0.005 to 1.
constexpr double kThousandRoughly = 300;  // A factor of 1000 between two machines' times, or 3000.
constexpr double kMillionRoughly = 300e3;

// Of all stages and kinds, at the highest clock.
double MedianSeconds(const Profile& profile) {
  std::vector<double> seconds;
  for (const OptionTable& table : profile.tables) {
    seconds.push_back(table.options[static_cast<std::size_t>(table.baseline)].time_seconds);
  }
  return UpperMedianOf(std::move(seconds));
}

}  // namespace

std::vector<Note> CheckRecording(const Recording& recording, const Profile* profile,
                                 const std::string& source) {
  double busy = 0;
  double spans = 0;
  std::vector<double> seconds;
  for (std::size_t cell = 0; cell + 1 < recording.first_of.size(); ++cell) {
    double from = 0;
    double to = 0;
    bool is_first = true;
    for (int k = recording.first_of[cell]; k < recording.first_of[cell + 1]; ++k) {
      const Operation& operation = recording.operations[k];
      if (!IsComputation(operation.kind)) continue;
      busy += operation.duration_seconds;
      seconds.push_back(operation.duration_seconds);
      from = is_first ? operation.start_seconds : std::min(from, operation.start_seconds);
      to = is_first ? operation.end_seconds() : std::max(to, operation.end_seconds());
      is_first = false;
    }
    spans += to - from;
  }
  if (seconds.empty()) return {};
  std::vector<Note> notes;
  const auto add = [&](Severity severity, std::string text) {
    notes.push_back({.severity = severity, .text = std::move(text), .source = source});
  };
  if (busy > kHeavily * spans) {
    add(Severity::kImplausible,
        fmt::format("the computations of a rank overlap: they last {:.1f} times as long as from "
                    "the start of the first to the end of the last; start_ts and duration must "
                    "both be in seconds",
                    busy / spans));
  }
  const double shortest = *std::min_element(seconds.begin(), seconds.end());
  const double median = UpperMedianOf(seconds);
  if (!notes.empty()) {
    // Their lengths say no more.
  } else if (shortest > profile::kLongTaskSeconds) {
    add(Severity::kImplausible,
        fmt::format("the shortest computation lasts {:g} s; are start_ts and duration in milli- or "
                    "microseconds? They must be in seconds",
                    shortest));
  } else if (median < profile::kTaskSeconds.least) {
    add(Severity::kImplausible,
        fmt::format("half of the computations last less than {:g} s, and computations take {:g} us "
                    "or more; start_ts and duration must be in seconds",
                    median, 1e6 * profile::kTaskSeconds.least));
  } else if (median > kLongMedianSeconds) {
    add(Severity::kOdd,
        fmt::format("half of the computations last longer than {:g} s; if start_ts and duration "
                    "are in milliseconds, divide them by 1000",
                    median));
  }
  if (profile == nullptr || median <= 0) return notes;
  const double factor = median / MedianSeconds(*profile);
  const double size = std::max(factor, 1 / factor);
  if (size < kThousandRoughly) return notes;
  add(Severity::kImplausible,
      fmt::format("computations of the trace last about {:.2g} times as long as those of the "
                  "profile at its highest clock ({:.3g} s and {:.3g} s); is {} in {}seconds?",
                  factor, median, MedianSeconds(*profile), factor > 1 ? "the trace" : "the profile",
                  size < kMillionRoughly ? "milli" : "micro"));
  return notes;
}

}  // namespace perseus::trace
