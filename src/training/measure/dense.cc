// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/dense.h"

#include <algorithm>
#include <cmath>

namespace perseus::measure {
namespace {

constexpr double kLeastPivot = 1e-14;

double RootOfPivot(double rest, double whole) {
  return std::sqrt(std::max({rest, kLeastPivot * whole, 1e-300}));
}

}  // namespace

void SymmetricMatrix::Add(std::size_t row, std::size_t column, double value) {
  at(row, column) += value;
  if (row != column) at(column, row) += value;
}

Cholesky::Cholesky(const SymmetricMatrix& matrix)
    : size_(matrix.size()), first_(matrix.size()), lower_(matrix.size() * matrix.size()) {
  for (std::size_t i = 0; i < size_; ++i) {
    double* const row = &lower_[i * size_];
    while (first_[i] < i && matrix.at(i, first_[i]) == 0) ++first_[i];
    for (std::size_t j = first_[i]; j <= i; ++j) {
      const double* const other = &lower_[j * size_];
      double rest = matrix.at(i, j);
      for (std::size_t k = std::max(first_[i], first_[j]); k < j; ++k) rest -= row[k] * other[k];
      row[j] = i == j ? RootOfPivot(rest, matrix.at(i, i)) : rest / other[j];
    }
  }
}

std::vector<double> Cholesky::Solve(std::vector<double> right) const {
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t k = first_[i]; k < i; ++k) right[i] -= lower_[i * size_ + k] * right[k];
    right[i] /= lower_[i * size_ + i];
  }
  for (std::size_t i = size_; i-- > 0;) {
    right[i] /= lower_[i * size_ + i];
    for (std::size_t k = first_[i]; k < i; ++k) right[k] -= lower_[i * size_ + k] * right[i];
  }
  return right;
}

SymmetricMatrix Cholesky::Inverse() const {
  // L^-1, column by column, then L^-T L^-1.
  std::vector<double> inverse(size_ * size_);
  for (std::size_t j = 0; j < size_; ++j) {
    inverse[j * size_ + j] = 1 / lower_[j * size_ + j];
    for (std::size_t i = j + 1; i < size_; ++i) {
      double sum = 0;
      for (std::size_t k = j; k < i; ++k) sum -= lower_[i * size_ + k] * inverse[k * size_ + j];
      inverse[i * size_ + j] = sum / lower_[i * size_ + i];
    }
  }
  SymmetricMatrix whole(size_);
  for (std::size_t k = 0; k < size_; ++k) {
    const double* const row = &inverse[k * size_];
    for (std::size_t i = 0; i <= k; ++i) {
      for (std::size_t j = 0; j <= i; ++j) whole.at(i, j) += row[i] * row[j];
    }
  }
  for (std::size_t i = 0; i < size_; ++i) {
    for (std::size_t j = 0; j < i; ++j) whole.at(j, i) = whole.at(i, j);
  }
  return whole;
}

double Cholesky::LogDeterminant() const {
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += std::log(lower_[i * size_ + i]);
  return 2 * sum;
}

std::vector<std::vector<double>> LargestFactors(const SymmetricMatrix& matrix, std::size_t most) {
  std::vector<double> rest;
  for (std::size_t i = 0; i < matrix.size(); ++i) rest.push_back(matrix.at(i, i));
  std::vector<std::vector<double>> factors;
  while (factors.size() < std::min(most, matrix.size())) {
    const auto pivot =
        static_cast<std::size_t>(std::max_element(rest.begin(), rest.end()) - rest.begin());
    if (!(rest[pivot] > 0)) break;
    const double root = std::sqrt(rest[pivot]);
    std::vector<double> factor;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      double value = i < pivot ? matrix.at(pivot, i) : matrix.at(i, pivot);
      for (const std::vector<double>& known : factors) value -= known[i] * known[pivot];
      // No more than what is left: rounding.
      factor.push_back(std::copysign(
          std::min(std::abs(value / root), std::sqrt(std::max(0.0, rest[i]))), value));
    }
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      rest[i] = std::max(0.0, rest[i] - factor[i] * factor[i]);
    }
    rest[pivot] = 0;
    factors.push_back(std::move(factor));
  }
  return factors;
}

BandedWhitener::BandedWhitener(std::size_t size, std::size_t band)
    : size_(size), band_(band), values_(size * (band + 1)) {}

void BandedWhitener::Factor() {
  for (std::size_t i = 0; i < size_; ++i) {
    const std::size_t first = i > band_ ? i - band_ : 0;
    const double whole = value(i, i);
    for (std::size_t j = first; j <= i; ++j) {
      const std::size_t begin = std::max(first, j > band_ ? j - band_ : 0);
      double rest = value(i, j);
      for (std::size_t k = begin; k < j; ++k) rest -= value(i, k) * value(j, k);
      at(i, j) = i == j ? RootOfPivot(rest, whole) : rest / value(j, j);
    }
  }
}

void BandedWhitener::Whiten(std::vector<double>* column) const {
  for (std::size_t i = 0; i < size_; ++i) {
    double rest = (*column)[i];
    for (std::size_t k = i > band_ ? i - band_ : 0; k < i; ++k) rest -= value(i, k) * (*column)[k];
    (*column)[i] = rest / value(i, i);
  }
}

double BandedWhitener::LogDeterminant() const {
  double sum = 0;
  for (std::size_t i = 0; i < size_; ++i) sum += std::log(value(i, i));
  return 2 * sum;
}

}  // namespace perseus::measure
