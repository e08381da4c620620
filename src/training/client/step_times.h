// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_STEP_TIMES_H_
#define PERSEUS_CLIENT_STEP_TIMES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perseus::client {

inline constexpr std::size_t kMostStepTimes = 65'536;

// When the device ran one computation, in nanoseconds since the begin of its step.
struct DeviceSpan {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// When the rows of a plan ran in an iteration, since it began.
struct RankTimeline {
  std::vector<DeviceSpan> rows;
  std::vector<int> changes;  // Rows before which the plan changes the clock.
};

// The device times of one iteration, from perseus_step_times(), in the order of its begin events.
struct StepTimes {
  std::int64_t iteration = 0;
  std::vector<DeviceSpan> computations;

  // Whether begins are ascending and no computation ends before it begins.
  bool InOrder() const {
    for (std::size_t i = 0; i < computations.size(); ++i) {
      if (computations[i].end_ns < computations[i].begin_ns) return false;
      if (i > 0 && computations[i].begin_ns < computations[i - 1].begin_ns) return false;
    }
    return true;
  }
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_STEP_TIMES_H_
