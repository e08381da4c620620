// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_HULL_H_
#define PERSEUS_FRONTIER_HULL_H_

#include <vector>

#include "perseus/frontier.h"

namespace perseus::frontier {

// Lower convex hull, fastest first, costs strictly falling. Options whose times
// differ by at most `same_time` count as one.
std::vector<TimeCost> LowerHull(std::vector<TimeCost> options, double same_time);

}  // namespace perseus::frontier

#endif  // PERSEUS_FRONTIER_HULL_H_
