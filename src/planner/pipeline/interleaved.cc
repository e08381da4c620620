// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The schedules that interleave the virtual stages ("chunks") of a rank, one
// forward one backward: PyTorch's rule, Megatron's rule, and PyTorch's zero
// bubble form (ZB1P), which delays weight gradients to fill the cool-down.

#include <algorithm>

#include "pipeline/schedule_shape.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

struct ChunkPass {
  int chunk = 0;
  int microbatch = 0;
};

// The forwards of a rank in order: groups of microbatches, each group through
// every chunk. The last group may be smaller.
std::vector<ChunkPass> ForwardPasses(const ScheduleShape& shape, int group_size) {
  std::vector<ChunkPass> passes;
  for (int first = 0; first < shape.num_microbatches; first += group_size) {
    const int end = std::min(first + group_size, shape.num_microbatches);
    for (int chunk = 0; chunk < shape.virtual_stages; ++chunk) {
      for (int i = first; i < end; ++i) passes.push_back({chunk, i});
    }
  }
  return passes;
}

// The k-th backward takes the k-th forward's microbatch through the mirrored
// chunk. `weight_lag`: backwards are split, and a weight gradient runs after
// every pair once that many pairs lie behind it.
RankOrder Interleave(const ScheduleShape& shape, int rank, int group_size, int warm_up,
                     std::optional<int> weight_lag) {
  const std::vector<ChunkPass> passes = ForwardPasses(shape, group_size);
  const auto total = static_cast<int>(passes.size());
  warm_up = std::min(warm_up, total);
  const auto forward = [&](int k) {
    return Step(kForward, rank + passes[k].chunk * shape.num_ranks, passes[k].microbatch);
  };
  const auto backward = [&](int k, ComputationType type) {
    const int chunk = shape.virtual_stages - 1 - passes[k].chunk;
    return Step(type, rank + chunk * shape.num_ranks, passes[k].microbatch);
  };

  RankOrder order;
  for (int k = 0; k < warm_up; ++k) order.push_back(forward(k));
  int next_weight = 0;
  for (int k = 0; k < total; ++k) {
    if (warm_up + k < total) order.push_back(forward(warm_up + k));
    order.push_back(backward(k, weight_lag ? kBackwardInput : kBackward));
    if (weight_lag && k >= *weight_lag) order.push_back(backward(next_weight++, kBackwardWeight));
  }
  if (weight_lag) {
    while (next_weight < total) order.push_back(backward(next_weight++, kBackwardWeight));
  }
  return order;
}

// PyTorch divides the microbatches into rounds of equal size, at least one
// microbatch per rank where there are that many.
int RoundSize(const ScheduleShape& shape) {
  const int rounds = std::max(1, shape.num_microbatches / shape.num_ranks);
  return shape.num_microbatches / rounds;
}

}  // namespace

RankOrder InterleavedOrder(const ScheduleShape& shape, int rank) {
  const int group = RoundSize(shape);
  const int warm_up = (shape.virtual_stages - 1) * group + 2 * (shape.num_ranks - 1 - rank);
  return Interleave(shape, rank, group, warm_up, std::nullopt);
}

RankOrder MegatronInterleavedOrder(const ScheduleShape& shape, int rank) {
  const int group = shape.microbatch_group_size;
  const int warm_up = (shape.virtual_stages - 1) * group + 2 * (shape.num_ranks - 1 - rank);
  return Interleave(shape, rank, group, warm_up, std::nullopt);
}

RankOrder InterleavedZeroBubbleOrder(const ScheduleShape& shape, int rank) {
  const int group = RoundSize(shape);
  const int warm_up = (shape.virtual_stages - 1) * group + (shape.num_ranks - 1 - rank);
  return Interleave(shape, rank, group, warm_up, rank);
}

}  // namespace perseus::pipeline
