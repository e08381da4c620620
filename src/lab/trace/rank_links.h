// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_RANK_LINKS_H_
#define PERSEUS_SRC_TRACE_RANK_LINKS_H_

#include <vector>

#include "perseus/result.h"
#include "trace/recording.h"

namespace perseus::trace {

// `to` begins once `from` has ended.
struct Wait {
  int from = 0;
  int to = 0;
};

// What the operations of one rank in one step, [first, last) of the recording,
// wait for on the same rank, added to `waits`. Fills in `computation_of` of its transfers.
Result<void> LinkRank(const Recording& recording, int first, int last, std::vector<Wait>* waits,
                      std::vector<int>* computation_of);

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_RANK_LINKS_H_
