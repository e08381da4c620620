// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLANNING_MEASURED_TIMELINE_H_
#define PERSEUS_SERVER_PLANNING_MEASURED_TIMELINE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "perseus/computation.h"
#include "perseus/pipeline.h"
#include "server/planning/measured_gaps.h"

// One iteration of a pipeline as its ranks timed it, on one clock.
namespace perseus::server {

// How much later than the first rank's clock a rank's own clock began.
struct RankOffset {
  double seconds = 0;
  double error_seconds = 0;  // It is at most so far off.
};

// Ranks begin at different times, and hosts' clocks differ. A result is never there before it was
// made, so transfers from one rank to another bound their offset on one side, and transfers back
// bound it on the other. The offset is the middle of both bounds, its error half of their distance:
// about one transfer, where both ranks wait for each other some time in the iteration. Of ranks
// that are lined up over others, errors add up. [rank]; none: nothing goes both ways, or `ranks`
// ([rank][position]) does not fit the pipeline.
std::vector<std::optional<RankOffset>> OffsetsOf(const PipelineDag& dag,
                                                 const std::vector<std::vector<RowSpan>>& ranks);

struct TimedComputation {
  ComputationId id;
  double clock_mhz = 0;
  double start_seconds = 0;  // Since the first computation of the pipeline began.
  double duration_seconds = 0;
};

struct MeasuredRank {
  std::optional<RankOffset> offset = {};  // None: its times are since its own iteration began.
  std::vector<TimedComputation> computations = {};
};

struct MeasuredTimeline {
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  double heard_at_seconds = 0;  // When the last rank told; time of day.
  std::vector<MeasuredRank> ranks = {};

  std::int64_t size() const;
  // From the first computation's begin to the last one's end.
  double seconds() const;
  // The largest error of the ranks' offsets; none: some ranks have no offset.
  std::optional<double> error_seconds() const;
};

// `ranks`: of OffsetsOf(); `clocks_mhz`: [computation]. Both must fit the pipeline.
MeasuredTimeline TimelineOf(const PipelineDag& dag, const std::vector<std::vector<RowSpan>>& ranks,
                            const std::vector<double>& clocks_mhz);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLANNING_MEASURED_TIMELINE_H_
