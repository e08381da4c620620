// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WALKS_CLOCK_MOVES_H_
#define PERSEUS_ROBUST_WALKS_CLOCK_MOVES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "robust/replay/draws.h"
#include "robust/replay/lane_replay.h"

namespace perseus::robust {

// What a search over runs of clocks tries: along a rank, where a run begins, ends and at
// which clock; and the same on ranks beside it.
class ClockMoves {
 public:
  // Both must outlive it.
  ClockMoves(const CostedPipeline& pipeline, Stream* stream);

  // Some change near a computation (no computation twice); may be empty. Valid until the
  // next call.
  std::span<const KnobChange> Propose(const std::vector<int>& knobs, int computation);

  // A stretch of the iteration gets the clocks of another one, some microbatches away.
  std::span<const KnobChange> ProposeRepeat(const std::vector<int>& knobs,
                                            std::span<const int> stretch);

 private:
  void Add(int i, int knob);
  void ProposeOnRank(int computation);
  void ProposeCopy(int computation);
  void Widen(int rank);
  int Beside(int computation, int rank, int slant) const;
  int StepFrom(int rank, int knob);

  const CostedPipeline& pipeline_;
  Stream& stream_;
  const std::vector<int>* knobs_ = nullptr;
  std::vector<std::vector<int>> useful_;  // [rank]: knobs, ascending.
  std::vector<char> has_option_;          // [table x knobs + knob]
  std::vector<KnobChange> proposal_;
  std::vector<std::vector<int>> alike_;    // [rank x types + type]: computations in order.
  std::vector<int> number_;                // [computation]: among those.
  std::vector<std::int64_t> proposed_in_;  // [computation]: the last proposal that it was part of.
  std::int64_t proposals_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WALKS_CLOCK_MOVES_H_
