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
  // Adds to both halves.
  void Add(std::size_t row, std::size_t column, double value);

 private:
  std::size_t size_;
  std::vector<double> values_;
};

// The Cholesky factor L of a positive definite matrix L L^T. If rounding makes a pivot 0 or less,
// it is replaced by 1e-14 of its diagonal. The solution is then huge in that direction, but so is
// its variance.
class Cholesky {
 public:
  explicit Cholesky(const SymmetricMatrix& matrix);

  std::vector<double> Solve(std::vector<double> right) const;
  SymmetricMatrix Inverse() const;
  double LogDeterminant() const;  // Of the matrix, not of the factor.

 private:
  std::size_t size_;
  // Of each row: its first column that is not 0. Those before it are skipped, so that curves that
  // say nothing of each other cost what each of them costs.
  std::vector<std::size_t> first_;
  std::vector<double> lower_;
};

// Vectors, at most `most` of them, whose outer products add up to nearly a positive semidefinite
// matrix: what remains has a small diagonal. A pivoted Cholesky factor.
std::vector<std::vector<double>> LargestFactors(const SymmetricMatrix& matrix, std::size_t most);

// The same for a covariance matrix whose elements further than `band` from the diagonal are 0.
// Divides vectors by the factor in place, so that errors with this covariance become independent
// with variance 1.
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
