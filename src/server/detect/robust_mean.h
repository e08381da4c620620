// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_ROBUST_MEAN_H_
#define PERSEUS_SERVER_DETECT_ROBUST_MEAN_H_

#include <cstdint>
#include <vector>

namespace perseus::server {

// Quantile of Student's t distribution for a two-sided 95 % interval, to 1e-3. `freedom` (degrees
// of freedom) >= 1.
double StudentT95(std::int64_t freedom);

// The mean of what is left without the lowest and the highest fifth (rounded up; of three values or
// more). A few wild values do not move it. Needs a value.
double TrimmedMean(std::vector<double> values);

// A mean and half the width of its 95 % interval.
struct MeanInterval {
  double mean = 0;
  double half_width = 0;
};

// The mean without the lowest and the highest 15 % (rounded down), and the interval of Tukey and
// McLaughlin (Sankhya A 25, 1963) from the Winsorised variance. For six values or fewer this is
// Student's interval. Needs two values.
MeanInterval TrimmedInterval(std::vector<double> values);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_ROBUST_MEAN_H_
