// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// DualPipeV (DeepSeek 2025, "cut-in-half" by Sea AI Lab): two stages a rank in
// V shape; in the steady state a forward of one overlaps a backward of the
// other. The eight steps carry the numbers of the authors' code.

#include <deque>
#include <utility>

#include "pipeline/schedule_shape.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

class DualPipeVRank {
 public:
  DualPipeVRank(int num_ranks, int rank) : stages_{rank, 2 * num_ranks - 1 - rank} {}

  void Forward(int chunk) { order_.push_back({NextForward(chunk), std::nullopt}); }
  void Backward(int chunk) { order_.push_back({NextBackward(chunk, kBackward), std::nullopt}); }
  void Input(int chunk) {
    const ComputationId input = NextBackward(chunk, kBackwardInput);
    order_.push_back({input, std::nullopt});
    pending_weights_.push_back({kBackwardWeight, input.stage, input.microbatch});
  }
  void Weight() {
    order_.push_back({pending_weights_.front(), std::nullopt});
    pending_weights_.pop_front();
  }
  void Overlap(int forward_chunk, int backward_chunk) {
    const ComputationId forward = NextForward(forward_chunk);
    order_.push_back({forward, NextBackward(backward_chunk, kBackward)});
  }
  RankOrder Take() { return std::move(order_); }

 private:
  ComputationId NextForward(int chunk) { return {kForward, stages_[chunk], forwards_[chunk]++}; }
  ComputationId NextBackward(int chunk, ComputationType type) {
    return {type, stages_[chunk], backwards_[chunk]++};
  }

  int stages_[2];
  int forwards_[2] = {0, 0};
  int backwards_[2] = {0, 0};
  std::deque<ComputationId> pending_weights_;
  RankOrder order_;
};

}  // namespace

RankOrder DualPipeVOrder(const ScheduleShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int after = p - rank - 1;  // Ranks behind this one.
  DualPipeVRank run(p, rank);

  for (int i = 0; i < 2 * after; ++i) run.Forward(0);  // 1
  for (int i = 0; i < rank + 1; ++i) {                 // 2
    run.Forward(0);
    run.Forward(1);
  }
  for (int i = 0; i < after; ++i) {  // 3
    run.Input(1);
    run.Weight();
    run.Forward(1);
  }
  for (int i = 0; i < shape.num_microbatches - 2 * p + rank + 1; ++i) {  // 4
    if (i == 0 && after == 0) {
      // Not overlapped: the last rank's first backward is what all wait for.
      run.Forward(0);
      run.Backward(1);
    } else {
      run.Overlap(0, 1);
    }
    run.Overlap(1, 0);
  }
  for (int i = 0; i < after; ++i) {  // 5
    run.Backward(1);
    run.Overlap(1, 0);
  }
  // 6: backwards, of which the second half is split.
  const int pairs = rank + 1;
  for (int backward = 0; backward < 2 * pairs; ++backward) {
    const int chunk = backward % 2 == 0 ? 1 : 0;
    const int first_split = 2 * (pairs / 2) + (rank % 2 == 0 ? 1 : 0);
    if (backward < first_split) {
      run.Backward(chunk);
    } else {
      run.Input(chunk);
    }
  }
  for (int i = 0; i < after; ++i) {  // 7
    run.Weight();
    run.Input(0);
  }
  for (int i = 0; i < rank + 1; ++i) run.Weight();  // 8
  return run.Take();
}

}  // namespace perseus::pipeline
