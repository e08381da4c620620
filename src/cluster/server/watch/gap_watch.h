// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_WATCH_GAP_WATCH_H_
#define PERSEUS_SERVER_WATCH_GAP_WATCH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "server/planning/measured_gaps.h"

namespace perseus::server {

// Puts together what the ranks of a pipeline tell of the same iteration, in any order. Ranks that
// report to another server are missed: nothing is learned then. For one thread.
class GapWatch {
 public:
  // `rank`: in the pipeline.
  void Take(const PipelineDag& dag, int rank, std::int64_t iteration, std::int64_t plan_version,
            std::vector<RowSpan> rows);

  const GapEstimate& estimate() const { return estimate_; }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // Version of the plan, iteration.

  std::map<Key, std::map<int, std::vector<RowSpan>>> waiting_;  // For the other ranks.
  std::deque<Key> order_;  // Of waiting_, as they came: training may begin again before them.
  GapEstimate estimate_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_WATCH_GAP_WATCH_H_
