// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SRC_TRACE_RANK_ORDER_H_
#define PERSEUS_SRC_TRACE_RANK_ORDER_H_

#include <cstddef>
#include <vector>

#include "trace/recording.h"

namespace perseus::trace {

// What one rank did in a step, searched by time: a tree of first starts over the
// operations by end. Refers to the recording, which must outlive it.
class RankOrder {
 public:
  RankOrder(const Recording& recording, int cell);

  // What ended last of what began before `operation`, which is of the rank and step, and ended by
  // its start (times of host and device differ by roundings). Of those that ended
  // together, the first recorded; -1: nothing. Logarithmic.
  int Before(int operation) const;

 private:
  const Recording& recording_;
  int first_;                     // Operation of the cell.
  std::vector<int> by_end_;       // Operations; of equal ends, the first last.
  std::vector<int> start_rank_;   // [operation - first] -> its place by start.
  std::size_t leaves_ = 1;        // A power of two.
  std::vector<int> least_start_;  // [node]: of start_rank_ below it; node 1 is the root.
};

}  // namespace perseus::trace

#endif  // PERSEUS_SRC_TRACE_RANK_ORDER_H_
