// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_THROTTLE_H_
#define PERSEUS_MEASURE_THROTTLE_H_

#include <cstddef>
#include <vector>

#include "measure/kind.h"

namespace perseus::measure {

// The clocks at which the card seems to have been throttled though it did not say so, descending:
// the highest ones, if no kind of computation is faster at them, or draws more, than at the lowest
// of them, and below it both change at once. Where only the times are alike the card waits for its
// memory, and is not held back. `rows`: measured ones. Empty: none.
std::vector<int> ThrottledClocks(const std::vector<Estimate>& rows);

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_THROTTLE_H_
