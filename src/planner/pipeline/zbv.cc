// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// ZB-V (Qi et al. 2024): two stages a rank in V shape, backwards split so that
// weight gradients fill what would be idle.

#include <algorithm>

#include "pipeline/schedule_shape.h"

namespace perseus::pipeline {
namespace {

using enum ComputationType;

// Hands out the microbatches of one stage, separately for F, I and W. The rule
// is written for at least 2P - 1 microbatches; where there are fewer, those
// that do not exist are left out.
class StageFeed {
 public:
  StageFeed(RankOrder& order, int stage, int num_microbatches)
      : order_(order), stage_(stage), num_microbatches_(num_microbatches) {}

  void Forward() { Emit(kForward, forwards_); }
  void Input() { Emit(kBackwardInput, inputs_); }
  void Weight() { Emit(kBackwardWeight, weights_); }
  bool has_pending_weight() const { return weights_ < inputs_; }

 private:
  void Emit(ComputationType type, int& microbatch) {
    if (microbatch < num_microbatches_) order_.push_back(Step(type, stage_, microbatch++));
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
  // Each time round hands out one more of everything, so after as many times as
  // there are microbatches nothing is left to hand out: the rest is skipped.
  // With few microbatches on many ranks it would be nearly all of the time.
  const auto repeat = [&shape](int times, const auto& hand_out) {
    for (int i = 0; i < std::min(times, shape.num_microbatches); ++i) hand_out();
  };

  repeat(2 * (p - rank) - 1, [&] { down.Forward(); });
  repeat(rank, [&] {
    up.Forward();
    down.Forward();
  });
  repeat(p - rank, [&] {
    up.Forward();
    up.Input();
    up.Weight();
  });
  // Until all n forwards of both stages are out: p of the stage above are.
  repeat(n - p, [&] {
    down.Forward();
    down.Input();
    down.Weight();
    up.Forward();
    up.Input();
    up.Weight();
  });
  repeat(rank, [&] {
    down.Input();
    up.Input();
  });
  repeat(p - rank, [&] {
    down.Input();
    down.Weight();
  });
  while (up.has_pending_weight()) up.Weight();
  while (down.has_pending_weight()) down.Weight();
  return order;
}

}  // namespace perseus::pipeline
