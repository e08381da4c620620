// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_DENSE_H_
#define PERSEUS_MEASURE_DENSE_H_

#include <cstddef>
#include <vector>

namespace perseus::measure {

// A symmetric matrix of doubles, row by row; only its lower half is read.
class SymmetricMatrix {
 public:
  explicit SymmetricMatrix(std::size_t size = 0) : size_(size), values_(size * size) {}

  std::size_t size() const { return size_; }
  double& at(std::size_t row, std::size_t column) { return values_[row * size_ + column]; }
  double at(std::size_t row, std::size_t column) const { return values_[row * size_ + column]; }
  // Both halves.
  void Add(std::size_t row, std::size_t column, double value);

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// The Cholesky factor L of a positive definite matrix L L^T. A pivot that rounding
// made 0 or less is taken as 1e-14 of its diagonal: the answer is then huge in
// that direction, and so is its variance.
class Cholesky {
 public:
  explicit Cholesky(const SymmetricMatrix& matrix);

  std::vector<double> Solve(std::vector<double> right) const;
  SymmetricMatrix Inverse() const;
  double LogDeterminant() const;  // Of the matrix, not the factor.

 private:
  std::size_t size_;
  std::vector<double> lower_;
};

// The same for matrices whose elements beyond `band` off the diagonal are 0:
// divides by the factor, so that errors of this covariance become independent
// ones of variance 1. In place.
class BandedWhitener {
 public:
  // `at(i, j)` for i >= j, i - j <= band.
  BandedWhitener(std::size_t size, std::size_t band);
  double& at(std::size_t row, std::size_t column) {
    return values_[row * (band_ + 1) + (row - column)];
  }
  void Factor();
  void Whiten(std::vector<double>* column) const;
  double LogDeterminant() const;

 private:
  double value(std::size_t row, std::size_t column) const {
    return values_[row * (band_ + 1) + (row - column)];
  }

  std::size_t size_;
  std::size_t band_;
  std::vector<double> values_;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_DENSE_H_
