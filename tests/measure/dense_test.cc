// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "measure/curve.h"

namespace perseus::measure {
namespace {

// Curves that say nothing of each other, one that hangs on all, and zeros within a row.
TEST(CholeskyTest, ZerosThatAreSkippedChangeNothing) {
  constexpr std::size_t kSize = 7;
  SymmetricMatrix matrix(kSize);
  for (std::size_t i = 0; i < kSize; ++i) matrix.Add(i, i, 2 + static_cast<double>(i));
  for (const auto& [row, column] :
       {std::pair<std::size_t, std::size_t>(1, 0), {3, 2}, {4, 2}, {6, 0}, {6, 3}, {6, 5}}) {
    matrix.Add(row, column, 0.5 + 0.1 * static_cast<double>(row));
  }
  const Cholesky factor(matrix);
  const std::vector<double> right = {2, 1, 5, -2, 3, 7, 4};
  const std::vector<double> solved = factor.Solve(right);
  const SymmetricMatrix inverse = factor.Inverse();
  for (std::size_t i = 0; i < kSize; ++i) {
    double product = 0;
    double by_inverse = 0;
    for (std::size_t j = 0; j < kSize; ++j) {
      product += matrix.at(i, j) * solved[j];
      by_inverse += inverse.at(i, j) * right[j];
    }
    EXPECT_NEAR(product, right[i], 1e-12) << i;
    EXPECT_NEAR(by_inverse, solved[i], 1e-12) << i;
  }
}

}  // namespace
}  // namespace perseus::measure
