// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_GAP_WATCH_H_
#define PERSEUS_SERVER_DETECT_GAP_WATCH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "perseus/pipeline.h"
#include "server/planning/measured_gaps.h"

namespace perseus::server {

// What a rank of a pipeline tells of one iteration.
struct RankRows {
  int rank = 0;  // In the pipeline.
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  std::vector<RowSpan> rows = {};
  bool as_planned = true;    // Its clocks were those of the plan.
  double heard_seconds = 0;  // When it told; of Moment::seconds.
};

// An iteration of which all ranks of the pipeline told.
struct WholeIteration {
  std::vector<std::vector<RowSpan>> ranks = {};  // [rank][position]
  bool as_planned = true;                        // On all ranks.
};

// Puts together what the ranks of a pipeline tell of the same iteration, in any order. Ranks that
// report to another server are missed: nothing is learned then. For one thread.
class GapWatch {
 public:
  // The iteration, if this was the last rank that was missing. What does not fit the pipeline is
  // ignored.
  std::optional<WholeIteration> Take(const PipelineDag& dag, RankRows told);

  const GapEstimate& estimate() const { return estimate_; }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // Version of the plan, iteration.
  struct Waiting {
    std::map<int, std::vector<RowSpan>> ranks = {};
    bool as_planned = true;
    double since_seconds = 0;
  };

  std::map<Key, Waiting> waiting_;  // For the other ranks.
  std::deque<Key> order_;  // Of waiting_, as they came: training may begin again before them.
  GapEstimate estimate_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_GAP_WATCH_H_
