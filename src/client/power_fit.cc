// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/power_fit.h"

#include <algorithm>
#include <cmath>

namespace perseus::client {
namespace {

// A kind is told apart where at least this share of its squared seconds is not
// explained by the others.
constexpr double kDistinct = 1e-4;

}  // namespace

void PowerFit::Add(const std::vector<double>& seconds, double joules) {
  for (std::size_t i = 0; i < kinds_; ++i) {
    for (std::size_t j = 0; j < kinds_; ++j) normal_[i * kinds_ + j] += seconds[i] * seconds[j];
    right_[i] += seconds[i] * joules;
  }
  ++count_;
}

std::optional<std::vector<double>> PowerFit::Solve() const {
  if (count_ < 2 * kinds_) return std::nullopt;
  // Cholesky: normal = L L^T.
  std::vector<double> lower(kinds_ * kinds_);
  for (std::size_t j = 0; j < kinds_; ++j) {
    const double whole = normal_[j * kinds_ + j];
    double rest = whole;
    for (std::size_t k = 0; k < j; ++k) rest -= lower[j * kinds_ + k] * lower[j * kinds_ + k];
    if (!(rest > kDistinct * whole)) return std::nullopt;
    const double pivot = std::sqrt(rest);
    lower[j * kinds_ + j] = pivot;
    for (std::size_t i = j + 1; i < kinds_; ++i) {
      double value = normal_[i * kinds_ + j];
      for (std::size_t k = 0; k < j; ++k) value -= lower[i * kinds_ + k] * lower[j * kinds_ + k];
      lower[i * kinds_ + j] = value / pivot;
    }
  }
  std::vector<double> watts = right_;
  for (std::size_t i = 0; i < kinds_; ++i) {
    for (std::size_t k = 0; k < i; ++k) watts[i] -= lower[i * kinds_ + k] * watts[k];
    watts[i] /= lower[i * kinds_ + i];
  }
  for (std::size_t i = kinds_; i-- > 0;) {
    for (std::size_t k = i + 1; k < kinds_; ++k) watts[i] -= lower[k * kinds_ + i] * watts[k];
    watts[i] /= lower[i * kinds_ + i];
  }
  if (std::any_of(watts.begin(), watts.end(), [](double value) { return !(value > 0); })) {
    return std::nullopt;
  }
  return watts;
}

}  // namespace perseus::client
