// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PIPELINE_H_
#define PERSEUS_PIPELINE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "perseus/export.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// Work of fixed duration around the computations. Seconds, each >= 0.
struct FixedTimes {
  // Transfer of activations or gradients between neighbouring stages on
  // different ranks: one number for all boundaries, or one per boundary
  // (num_stages - 1). Empty = 0. Stages on one rank need no transfer.
  std::vector<double> comm_delay_seconds = {};
  // Reading a microbatch: before every forward of stage 0, on its rank, which
  // does nothing else meanwhile.
  double data_loading_seconds = 0;
  // All-reduce, optimizer step: after the last computation of every rank.
  double iteration_overhead_seconds = 0;
};

// One node of the DAG: a computation, or two that run fused, at one knob.
struct Computation {
  int rank = 0;      // In the pipeline, from 0.
  int position = 0;  // In the rank's order.
  ComputationId id = {};
  std::optional<ComputationId> fused = {};  // See ScheduleStep.
};

// `to` starts no earlier than `delay_seconds` after `from` ends.
struct Precedence {
  int from = 0;  // Index into PipelineDag::computations.
  int to = 0;
  double delay_seconds = 0;
};

// The computations of one iteration of one pipeline and what each waits for.
// Invariants: `computations` is in a topological order. `precedences` is sorted by (to, from)
// without duplicates. The computations of a rank form a chain, and an order that follows from the
// chain (F before B of one stage) has no precedence of its own. A plain value. Once it is made
// nobody changes it, so threads may share it.
struct PipelineDag {
  int num_ranks = 0;
  int num_stages = 0;
  int num_microbatches = 0;
  std::string schedule_name = {};
  std::vector<Computation> computations = {};
  std::vector<Precedence> precedences = {};
  std::vector<int> first_precedence = {};         // Offsets by `to`, size n + 1.
  std::vector<double> start_delay_seconds = {};   // Earliest start of each computation.
  double end_delay_seconds = 0;                   // From the last end to the iteration's end.
  std::vector<std::vector<int>> rank_order = {};  // [rank][position] -> computation
  FixedTimes fixed = {};                          // What the delays were made from.

  int size() const { return static_cast<int>(computations.size()); }

  // The index of the computation that does this, alone or fused with another. Takes linear time.
  std::optional<int> Find(const ComputationId& id) const;

  // Whether a DAG that was filled in by hand keeps to the invariants above. Takes linear time.
  Result<void> Validate() const;
};

// Errors: a schedule that is not valid (see ValidateSchedule), a wrong number of
// communication delays, negative or non-finite times.
Result<PipelineDag> BuildDag(const Schedule& schedule, const FixedTimes& fixed);

// The earliest start and end of every computation, and the iteration time.
struct Timing {
  std::vector<double> start_seconds = {};
  std::vector<double> end_seconds = {};
  double iteration_time_seconds = 0;  // max end + end_delay_seconds
};

// Runs every computation as early as possible. This defines the iteration time of a plan: start =
// max(start delay, end of each predecessor + its delay), end = start + duration, in IEEE doubles
// and in this order, so that another program gets the same bits. If there is not one duration for
// each computation, the result has no starts and ends, and NaN as time.
Timing Replay(const PipelineDag& dag, std::span<const double> durations_seconds);

// The same for durations that depend on when a computation can start. `run(i, ready_seconds,
// &start_seconds, &end_seconds)` sets start and end of computation i; what it waits for is done at
// `ready_seconds`. It is called in the order of dag.computations. `timing` is filled in, and its
// memory is used again. Precondition: dag.Validate().
template <typename Run>
void ReplayBy(const PipelineDag& dag, Run&& run, Timing* timing) {
  timing->start_seconds.resize(dag.computations.size());
  timing->end_seconds.resize(dag.computations.size());
  double last_end = 0;
  for (int i = 0; i < dag.size(); ++i) {
    const auto to = static_cast<std::size_t>(i);
    double ready = dag.start_delay_seconds[to];
    for (int k = dag.first_precedence[to]; k < dag.first_precedence[to + 1]; ++k) {
      const Precedence& precedence = dag.precedences[static_cast<std::size_t>(k)];
      const auto from = static_cast<std::size_t>(precedence.from);
      const double end = timing->end_seconds[from] + precedence.delay_seconds;
      if (end > ready) ready = end;
    }
    run(i, ready, &timing->start_seconds[to], &timing->end_seconds[to]);
    if (timing->end_seconds[to] > last_end) last_end = timing->end_seconds[to];
  }
  timing->iteration_time_seconds = last_end + dag.end_delay_seconds;
}

// Marks the computations on a longest path of `timing`: those with less slack than 1e-9 of the
// iteration time. None if `timing` has another number of computations than `dag`.
std::vector<bool> CriticalComputations(const PipelineDag& dag, const Timing& timing);

// Warm-up: before the rank's first backward. Cool-down: after its last
// forward. Steady: between.
enum class Phase : std::uint8_t { kWarmUp, kSteady, kCoolDown };
std::vector<Phase> ComputationPhases(const PipelineDag& dag);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PIPELINE_H_
