// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_MEDIAN_H_
#define PERSEUS_COMMON_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace perseus {

// The value in the middle; of an even number the upper one of the two there, so that it is always
// one of the values. 0: there are none.
inline double UpperMedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The median: of an even number, halfway between the two in the middle. 0: there are none. Reorders
// `values`.
template <typename T>
double MedianOf(std::span<T> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  const double upper = *middle;
  if (values.size() % 2 == 1) return upper;
  const double lower = *std::max_element(values.begin(), middle);
  return (lower + upper) / 2;
}
template <typename T>
double MedianOf(std::vector<T>& values) {
  return MedianOf(std::span<T>(values));
}

}  // namespace perseus

#endif  // PERSEUS_COMMON_MEDIAN_H_
