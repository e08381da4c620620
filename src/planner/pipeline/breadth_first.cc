// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The schedules that run one stage through all its microbatches in turn.

#include <algorithm>

#include "pipeline/schedule_shape.h"

namespace perseus::pipeline {

using enum ComputationType;

RankOrder GPipeOrder(const ScheduleShape& shape, int rank) {
  RankOrder order;
  for (int i = 0; i < shape.num_microbatches; ++i) order.push_back(Step(kForward, rank, i));
  for (int i = 0; i < shape.num_microbatches; ++i) order.push_back(Step(kBackward, rank, i));
  return order;
}

RankOrder OneForwardOneBackwardOrder(const ScheduleShape& shape, int rank) {
  const int m = shape.num_microbatches;
  const int warm_up = std::min(m, shape.num_ranks - 1 - rank);
  RankOrder order;
  for (int i = 0; i < warm_up; ++i) order.push_back(Step(kForward, rank, i));
  for (int i = warm_up; i < m; ++i) {
    order.push_back(Step(kForward, rank, i));
    order.push_back(Step(kBackward, rank, i - warm_up));
  }
  for (int i = m - warm_up; i < m; ++i) order.push_back(Step(kBackward, rank, i));
  return order;
}

// Merak's (Lai et al. 2023), as in lowtime. A rank that will run no more forwards waits before each
// backward, and recomputes meanwhile; until then it recomputes as part of the backward.
RankOrder EarlyRecomputationOrder(const ScheduleShape& shape, int rank) {
  const int warm_up = shape.num_ranks - 1 - rank;
  RankOrder order;
  for (const ScheduleStep& step : OneForwardOneBackwardOrder(shape, rank)) {
    const auto [type, stage, microbatch] = step.id;
    if (type == kForward) {
      order.push_back(step);
      continue;
    }
    const ComputationId recompute{kRecompute, stage, microbatch};
    if (microbatch + warm_up < shape.num_microbatches) {
      order.push_back({recompute, step.id});
    } else {
      order.push_back({recompute, std::nullopt});
      order.push_back(step);
    }
  }
  return order;
}

RankOrder LoopedBreadthFirstOrder(const ScheduleShape& shape, int rank) {
  const int m = shape.num_microbatches;
  RankOrder order;
  for (int chunk = 0; chunk < shape.virtual_stages; ++chunk) {
    for (int i = 0; i < m; ++i) {
      order.push_back(Step(kForward, rank + chunk * shape.num_ranks, i));
    }
  }
  for (int chunk = shape.virtual_stages - 1; chunk >= 0; --chunk) {
    for (int i = m - 1; i >= 0; --i) {
      order.push_back(Step(kBackward, rank + chunk * shape.num_ranks, i));
    }
  }
  return order;
}

}  // namespace perseus::pipeline
