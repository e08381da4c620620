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
  double work = 0;  // 0: not said.
};

// Time of one kind's computations at one clock: `seconds` at `work`, the mean of
// what was measured, plus `per_work` for each unit more.
struct TimeSummary {
  std::int64_t samples = 0;
  double seconds = 0;
  double work = 0;
  std::optional<double> per_work;
  double variance_of_mean = 0;
  double residual_variance = 0;
};

// Means without outliers (a pause of the trainer, say: beyond 5 robust standard
// deviations), a line where work varies by more than 2 %.
TimeSummary SummariseTimes(const std::vector<TimeSample>& samples);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_TIME_FIT_H_
