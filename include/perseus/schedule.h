// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SCHEDULE_H_
#define PERSEUS_SCHEDULE_H_

// Link perseus::model (pkg-config: perseus-model).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/computation.h"
#include "perseus/export.h"
#include "perseus/result.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One step of a rank: a computation, or two that run as one at one clock: a
// forward with a backward (PyTorch's OVERLAP_F_B), or a recompute with its own.
struct ScheduleStep {
  ComputationId id = {};                    // The forward or recompute, where fused.
  std::optional<ComputationId> fused = {};  // The backward (B or I) that runs with it.

  friend bool operator==(const ScheduleStep&, const ScheduleStep&) = default;
};

// The order in which every rank of one pipeline runs its computations. A
// plain value. Which rank holds a stage follows from `ranks`.
struct Schedule {
  std::string name = {};  // Canonical name ("1f1b", ...), or the file it came from.
  int num_ranks = 0;      // Ranks of one pipeline, from 0. Tensor parallelism is not counted.
  int num_stages = 0;     // Stages of the model = ranks x virtual stages.
  int num_microbatches = 0;
  std::vector<std::vector<ScheduleStep>> ranks = {};  // [rank][position]

  int virtual_stages() const { return num_ranks == 0 ? 0 : num_stages / num_ranks; }
};

// What is needed to generate a schedule by name.
struct ScheduleSpec {
  std::string name = {};   // See ScheduleNames(); case, '-' and '_' do not matter.
  int num_stages = 0;      // ranks x virtual stages
  int virtual_stages = 1;  // per rank
  int num_microbatches = 0;
  // Megatron's interleaving only: microbatches per group. Without: as many as ranks.
  std::optional<int> microbatch_group_size = {};
};

// Canonical names, in the order of the documentation: gpipe, 1f1b,
// early-recomputation-1f1b, looped-bfs, interleaved-1f1b, megatron-interleaved,
// interleaved-zero-bubble, zbv-zero-bubble, dualpipev.
const std::vector<std::string>& ScheduleNames();

// The canonical spelling of `name`, or nullopt.
std::optional<std::string> CanonicalScheduleName(std::string_view name);

// Generates a schedule, in time linear in its computations. Errors: an unknown
// name, a shape that the schedule does not accept (the message says which
// would do), more than 4,000,000 computations.
Result<Schedule> BuildSchedule(const ScheduleSpec& spec);

// Reads PyTorch's CSV text (compute_only, compute_comms, and old files that
// spell I as B beside W): row = rank, cell = computation, empty cell = idle.
// Communication and memory actions are left out. Stricter than PyTorch: nothing
// may follow a computation. Errors name file:line:column; a file over 128 MiB is
// refused. The result is checked by ValidateSchedule.
Result<Schedule> ReadSchedule(const std::string& path);
Result<Schedule> ParseSchedule(std::string_view text, const std::string& name);

// PyTorch's compute_only CSV: no idle cells, lines end with "\r\n" as in Python's csv.
std::string FormatSchedule(const Schedule& schedule);

// Whether a schedule can run: every rank has work, every stage is on one rank, every microbatch has
// its forward and its backward (B, or I and W) once on every stage and in this order, with at most
// one recompute (R) between them, and nothing deadlocks. The error names what is wrong; for a
// deadlock, the computations that wait for each other. Takes linear time.
Result<void> ValidateSchedule(const Schedule& schedule);

// A drawing for a terminal: one line per rank, unit-time forwards, backwards
// twice as long (I, W and R one each), idle time as dots; then the time axis and a
// legend. Fused steps are one box, "F3+B1"; labels name the stage ("2F3") where
// a rank has several. One sentence instead, if the schedule is not valid or too large for a
// terminal (over 64 MiB).
std::string DrawSchedule(const Schedule& schedule);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_SCHEDULE_H_
