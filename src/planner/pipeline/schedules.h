// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_SCHEDULES_H_
#define PERSEUS_PIPELINE_SCHEDULES_H_

#include <fmt/core.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/schedule.h"

namespace perseus::pipeline {

// Sixty times the largest pipeline anyone trains (64 stages x 512
// microbatches); beyond it a typing error is likelier than a wish.
inline constexpr std::int64_t kMaxComputations = 4'000'000;

// A schedule file: what can be scheduled can be read back.
inline constexpr std::size_t kMaxScheduleBytes = std::size_t{128} << 20;
static_assert(kMaxScheduleBytes >= kMaxComputations * 32);

inline std::string TooManyComputations() {
  return fmt::format(
      "the schedule would have more than {} computations: use fewer stages or microbatches",
      kMaxComputations);
}

// "unknown schedule 'x'; did you mean ...?; known are ...".
std::string UnknownScheduleName(std::string_view name);

// The numbers that a schedule's order rules are written in.
struct ScheduleShape {
  int num_ranks = 0;
  int virtual_stages = 0;  // Per rank.
  int num_microbatches = 0;
  int microbatch_group_size = 0;  // Megatron's interleaving only.

  int num_stages() const { return num_ranks * virtual_stages; }
};

using RankOrder = std::vector<ScheduleStep>;

inline ScheduleStep Step(ComputationType type, int stage, int microbatch) {
  return {ComputationId{type, stage, microbatch}, std::nullopt};
}

// The order of one rank under each schedule (spec: docs/reference/schedules.md).
// Precondition: the shape is one that the schedule accepts.
RankOrder GPipeOrder(const ScheduleShape& shape, int rank);
RankOrder OneForwardOneBackwardOrder(const ScheduleShape& shape, int rank);
RankOrder EarlyRecomputationOrder(const ScheduleShape& shape, int rank);
RankOrder LoopedBreadthFirstOrder(const ScheduleShape& shape, int rank);
RankOrder InterleavedOrder(const ScheduleShape& shape, int rank);
RankOrder MegatronInterleavedOrder(const ScheduleShape& shape, int rank);
RankOrder InterleavedZeroBubbleOrder(const ScheduleShape& shape, int rank);
RankOrder ZbvZeroBubbleOrder(const ScheduleShape& shape, int rank);
RankOrder DualPipeVOrder(const ScheduleShape& shape, int rank);

}  // namespace perseus::pipeline

#endif  // PERSEUS_PIPELINE_SCHEDULES_H_
