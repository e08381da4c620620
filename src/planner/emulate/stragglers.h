// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_STRAGGLERS_H_
#define PERSEUS_EMULATE_STRAGGLERS_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/emulator.h"
#include "perseus/result.h"

namespace perseus::emulate {

// The combined effect of all stragglers of one rank.
struct RankLimits {
  double slow = 1;  // Durations are multiplied by it.
  double most_mhz = std::numeric_limits<double>::infinity();
  double most_watts = std::numeric_limits<double>::infinity();  // Per GPU.
  double stall_seconds = 0;  // The first computation starts no earlier.

  void Add(StragglerKind kind, double value);
  friend auto operator<=>(const RankLimits&, const RankLimits&) = default;
};

// "slow=1.2": how the user wrote it.
std::string StragglerText(StragglerKind kind, double value);

// Whether the value makes sense for the kind; the error starts with `what`.
Result<void> CheckStragglerValue(StragglerKind kind, double value, const std::string& what);

// Which pipelines straggle in the iteration at hand.
class StragglerCalendar {
 public:
  // Both must outlive it. Precondition: `spec` was checked.
  StragglerCalendar(const CostedPipeline& pipeline, const EmulationSpec& spec);

  // Advances to the next iteration, which starts at `start_seconds`. `last_seconds`: how long the
  // iteration before took.
  void Advance(double start_seconds, double last_seconds);

  // Pipelines whose stragglers changed since the iteration before, each once.
  const std::vector<int>& changed() const { return changed_; }
  // Pipelines that straggle.
  const std::set<int>& straggling() const { return straggling_; }
  // How many stragglers have begun so far.
  std::int64_t came() const { return came_; }
  // By rank; empty for a pipeline that does not straggle.
  std::vector<RankLimits> LimitsOf(int pipeline) const;

 private:
  struct Change {
    std::int64_t iteration = 0;
    int straggler = 0;  // Index into spec.stragglers.
    bool comes = false;
  };

  void DrawRandom(double start_seconds, double last_seconds);

  const CostedPipeline& pipeline_;
  const EmulationSpec& spec_;
  std::int64_t iteration_ = -1;
  std::vector<Change> changes_;  // Of the stragglers that were asked for, by iteration.
  std::size_t next_change_ = 0;
  std::vector<std::vector<int>> there_;     // [pipeline] Those of spec.stragglers, ascending.
  std::vector<double> random_end_seconds_;  // [pipeline x ranks + rank]; negative: none.
  std::vector<int> changed_;
  std::set<int> straggling_;
  std::int64_t came_ = 0;
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_STRAGGLERS_H_
