// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_FIGURE_H_
#define PERSEUS_DEVICE_FIGURE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "common/median.h"

namespace perseus::device {

// What a probe measured.
struct Figure {
  double value = 0;
  double error = 0;   // Standard error, and at least the resolution of the measurement.
  double spread = 0;  // Standard deviation of the samples.
  int samples = 0;
};

// The mean of these. On a busy machine, a thread is kept waiting now and then: samples that are far
// from all others say nothing of the GPU, and are left out. Of few samples, two may be near each
// other by chance; then all count, and a late one shows in the error.
inline Figure FigureOf(std::vector<double> values, double resolution) {
  constexpr double kDeviations = 5;
  constexpr double kNormal = 1.4826;  // A standard deviation by the median deviation.
  constexpr std::size_t kFew = 8;
  Figure figure;
  if (values.empty()) return figure;
  const double median = UpperMedianOf(values);
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (const double value : values) deviations.push_back(std::abs(value - median));
  const double far = std::max(kDeviations * kNormal * UpperMedianOf(deviations), 2 * resolution);
  if (values.size() >= kFew) {
    std::erase_if(values, [&](double value) { return std::abs(value - median) > far; });
  }
  double sum = 0;
  double squares = 0;
  for (const double value : values) {
    sum += value - median;
    squares += (value - median) * (value - median);
  }
  const auto count = static_cast<double>(values.size());
  figure.samples = static_cast<int>(values.size());
  figure.value = median + sum / count;
  if (values.size() > 1) {
    figure.spread = std::sqrt(std::max(0.0, squares - sum * sum / count) / (count - 1));
  }
  figure.error = std::max(figure.spread / std::sqrt(count), resolution);
  return figure;
}

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_FIGURE_H_
