// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_ODD_CELLS_H_
#define PERSEUS_PROFILE_ODD_CELLS_H_

#include <cstddef>
#include <span>
#include <vector>

#include "profile/rows.h"

namespace perseus::profile {

// A cell that does not fit its neighbours on the curve of its stage,
// instruction and GPU.
struct OddCell {
  const Row* row = nullptr;
  Column column = Column::kTime;  // Or kEnergy.
  // How many times more (above 1) or less (below 1) than the neighbours allow.
  double factor = 1;
};

// The cells of `all` (its rows) that are probably wrong, in the order of the
// text. Empty where knobs have no order. Time: n log n.
std::vector<OddCell> FindOddCells(const Rows& all);

// The same on one curve, for tests: indices of the odd ones.
struct CurvePoint {
  double speed = 0;  // Above 0, distinct, ascending.
  double value = 0;  // 0 or more.
};
// The least and the most that the value rises, each as a power of the speed.
struct Steepness {
  double least = 0;
  double most = 0;
};
struct OddPoint {
  std::size_t index = 0;
  double factor = 1;
};
std::vector<OddPoint> FindOddPoints(std::span<const CurvePoint> curve, const Steepness& steepness);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_ODD_CELLS_H_
