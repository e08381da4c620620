// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/robust_mean.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace perseus::server {
namespace {

// Of sorted values, without `cut` of them at either end.
double MeanWithout(const std::vector<double>& sorted, std::size_t cut) {
  const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(cut);
  const auto end = sorted.end() - static_cast<std::ptrdiff_t>(cut);
  return std::accumulate(begin, end, 0.0) / static_cast<double>(end - begin);
}

}  // namespace

double StudentT95(std::int64_t freedom) {
  constexpr std::array<double, 10> kFirst = {12.7062, 4.3027, 3.1824, 2.7764, 2.5706,
                                             2.4469,  2.3646, 2.3060, 2.2622, 2.2281};
  if (freedom <= static_cast<std::int64_t>(kFirst.size())) {
    return kFirst[static_cast<std::size_t>(std::max<std::int64_t>(freedom, 1) - 1)];
  }
  // Abramowitz and Stegun 26.7.5.
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(freedom);
  return kZ + (std::pow(kZ, 3) + kZ) / (4 * n) +
         (5 * std::pow(kZ, 5) + 16 * std::pow(kZ, 3) + 3 * kZ) / (96 * n * n) +
         (3 * std::pow(kZ, 7) + 19 * std::pow(kZ, 5) + 17 * std::pow(kZ, 3) - 15 * kZ) /
             (384 * n * n * n);
}

double TrimmedMean(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  return MeanWithout(values, count < 3 ? 0 : (count + 4) / 5);
}

MeanInterval TrimmedInterval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t cut = 3 * count / 20;
  const double mean = MeanWithout(values, cut);
  for (std::size_t i = 0; i < cut; ++i) {
    values[i] = values[cut];
    values[count - 1 - i] = values[count - 1 - cut];
  }
  const double middle = MeanWithout(values, 0);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  const auto n = static_cast<double>(count);
  const auto kept = static_cast<double>(count - 2 * cut);
  const double error = std::sqrt(squares / (n - 1) / n) * n / kept;
  return {.mean = mean,
          .half_width = error * StudentT95(static_cast<std::int64_t>(count - 2 * cut) - 1)};
}

}  // namespace perseus::server
