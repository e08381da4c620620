// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_TIME_FIT_H_
#define PERSEUS_MEASURE_TIME_FIT_H_

#include <cstdint>
#include <optional>
#include <vector>

namespace perseus::measure {

struct TimeSample {
  double seconds = 0;
  double work = 0;  // 0: not reported.
};

// Time of one kind's computations at one clock: `seconds` for the mean work `work`, plus `per_work`
// for each unit of work above it.
struct TimeSummary {
  std::int64_t samples = 0;
  double seconds = 0;
  double work = 0;
  std::optional<double> per_work;
  double residual_variance = 0;
};

// Means without outliers beyond 5 robust standard deviations (for example, a pause of the trainer).
// Fits a line if work varies by more than 2 %.
TimeSummary SummariseTimes(const std::vector<TimeSample>& samples);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_TIME_FIT_H_
