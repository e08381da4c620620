// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLIENT_TALLY_H_
#define PERSEUS_CLIENT_TALLY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "client/event_ring.h"
#include "perseus/computation.h"

namespace perseus::client {

// How many computations an iteration runs: [type and stage; -1: not said].
using ComputationCounts = std::map<std::pair<ComputationType, int>, std::int64_t>;

// Counts what the iterations of a rank without a plan run, so that the server can compare it with
// the job's schedule. Two iterations in a row must run the same: one may be odd. For one thread.
class Tally {
 public:
  // Takes the trainer's events in order. `lost`: events that the ring has lost so far.
  void Handle(const Event& event, std::uint64_t lost);
  // Some events are not to be counted: their iteration is left out.
  void Skip() { is_counting_ = false; }

  // What the last two iterations ran; none: not known yet.
  const std::optional<ComputationCounts>& counts() const { return counts_; }

 private:
  bool is_counting_ = false;
  std::uint64_t lost_ = 0;  // When the iteration began.
  ComputationCounts now_;
  std::optional<ComputationCounts> last_;
  std::optional<ComputationCounts> counts_;
};

}  // namespace perseus::client

#endif  // PERSEUS_CLIENT_TALLY_H_
