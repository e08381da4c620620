// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// ZB-V (Qi et al. 2024): two stages a rank in V shape, backwards split so that
// weight gradients fill what would be idle.

#include <algorithm>

#include "pipeline/schedule_shape.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

// Hands out the microbatches of one stage, separately for F, I and W.
class StageFeed {
 public:
  StageFeed(RankOrder& order, int stage, int num_microbatches)
      : order_(order), stage_(stage), num_microbatches_(num_microbatches) {}

  void Forward() { Emit(kForward, forwards_++); }
  void Input() { Emit(kBackwardInput, inputs_++); }
  void Weight() { Emit(kBackwardWeight, weights_++); }
  int forwards() const { return forwards_; }
  bool has_pending_weight() const { return weights_ < inputs_; }

 private:
  // The rule is written for at least 2P - 1 microbatches; where there are
  // fewer, those that do not exist are left out.
  void Emit(ComputationType type, int microbatch) {
    if (microbatch < num_microbatches_) order_.push_back(Step(type, stage_, microbatch));
  }

  RankOrder& order_;
  int stage_;
  int num_microbatches_;
  int forwards_ = 0;
  int inputs_ = 0;
  int weights_ = 0;
};

}  // namespace

RankOrder ZbvZeroBubbleOrder(const ScheduleShape& shape, int rank) {
  const int p = shape.num_ranks;
  const int n = std::max(2 * p - 1, shape.num_microbatches);
  RankOrder order;
  StageFeed down(order, rank, shape.num_microbatches);
  StageFeed up(order, 2 * p - 1 - rank, shape.num_microbatches);

  for (int i = 0; i < 2 * (p - rank) - 1; ++i) down.Forward();
  for (int i = 0; i < rank; ++i) {
    up.Forward();
    down.Forward();
  }
  for (int i = 0; i < p - rank; ++i) {
    up.Forward();
    up.Input();
    up.Weight();
  }
  while (up.forwards() < down.forwards() || down.forwards() < n) {
    if (down.forwards() < n) down.Forward();
    down.Input();
    down.Weight();
    up.Forward();
    up.Input();
    up.Weight();
  }
  for (int i = 0; i < rank; ++i) {
    down.Input();
    up.Input();
  }
  for (int i = 0; i < p - rank; ++i) {
    down.Input();
    down.Weight();
  }
  while (up.has_pending_weight()) up.Weight();
  while (down.has_pending_weight()) down.Weight();
  return order;
}

}  // namespace perseus::pipeline
