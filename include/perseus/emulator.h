// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATOR_H_
#define PERSEUS_EMULATOR_H_

// Link perseus::core (pkg-config: perseus-core).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/export.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/progress.h"
#include "perseus/result.h"

// Simulates a training job: data-parallel pipelines that run plans, with times that vary,
// clocks that come late, stragglers, and a control plane that reacts to them.
// docs/explanation/emulation.md defines every quantity, so that another program can get the same
// numbers.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

enum class StragglerKind : std::uint8_t {
  kSlow,      // Every computation takes `value` times as long, at the same power.
  kClockCap,  // Thermal throttling: no clock above `value` MHz, within those of the profile.
  kPowerCap,  // No option that draws more than `value` watts per GPU.
  kDataStall  // The first computation of a rank waits for `value` seconds.
};
std::string_view StragglerKindName(StragglerKind kind);  // "slow", "clock", "power", "stall"

// A pipeline, or one of its ranks, that is slow for a number of iterations.
struct Straggler {
  StragglerKind kind = StragglerKind::kSlow;
  double value = 1;
  int pipeline = 0;
  std::optional<int> rank = {};  // Without: all ranks of the pipeline (kDataStall: rank 0).
  std::int64_t first_iteration = 0;
  std::optional<std::int64_t> iterations = {};  // Without: until the end.
};

// Stragglers that come by chance. All have this kind and value.
struct RandomStragglers {
  double share_of_gpus_per_day = 0;  // 0.05: one GPU in twenty every day.
  double duration_seconds = 3600;
  StragglerKind kind = StragglerKind::kSlow;
  double value = 1.2;
};

// The control plane, which moves the pipelines along the frontier.
struct ControlPlane {
  // False: nobody reacts, even where the policy could.
  bool reacts = true;
  // A straggler comes or goes at the start of an iteration. New plans are in effect from the first
  // iteration on that begins this much later.
  double delay_seconds = 0;
};

struct EmulationSpec {
  int pipelines = 1;
  std::int64_t iterations = 1;  // At most 10,000,000.
  // Iteration time that the pipelines plan for while none straggles.
  double target_seconds = 0;
  TimeNoise noise = {};
  ClockSwitching switching = {};
  std::vector<Straggler> stragglers = {};
  RandomStragglers random_stragglers = {};
  ControlPlane control = {};
  std::uint64_t seed = 0;
  // Length of one value of the power trace. Without: a hundredth of the target, or
  // longer where the trace would have over a million values.
  std::optional<double> power_interval_seconds = {};
  // False: nobody looks at power over time, and Emulation::power stays empty.
  bool power_over_time = true;
  // The iteration whose timeline is kept. Without: the first with a straggler, else iteration 0.
  // At most `timeline_pipelines` pipelines are kept, stragglers first.
  std::optional<std::int64_t> timeline_iteration = {};
  int timeline_pipelines = 4;
};

// Parts of the energy, in joules (definitions: docs/explanation/emulation.md). The four add up to
// all of it.
struct EnergySplit {
  double useful_joules = 0;
  double intrinsic_bloat_joules = 0;  // Computations off the critical path ran too fast.
  double extrinsic_bloat_joules = 0;  // Pipelines ran too fast for the straggler.
  double blocking_joules = 0;         // GPUs waited.

  double total_joules() const {
    return useful_joules + intrinsic_bloat_joules + extrinsic_bloat_joules + blocking_joules;
  }
};

struct IterationRecord {
  double start_seconds = 0;
  double time_seconds = 0;
  double target_seconds = 0;  // What the healthy pipelines had planned for.
  int straggling_pipelines = 0;
  EnergySplit energy = {};  // Of the job.
};

// One computation as it ran.
struct EmulatedComputation {
  int computation = 0;  // Index into the DAG.
  int knob = 0;         // As planned, unless a straggler's limit forbade that.
  double start_seconds = 0;
  double end_seconds = 0;
  double joules = 0;  // All GPUs of the rank.
};

struct EmulatedPipeline {
  int pipeline = 0;
  bool straggles = false;
  Waiting waiting = Waiting::kSetClock;                // Of its plan.
  std::vector<EmulatedComputation> computations = {};  // In the DAG's order.
  double end_seconds = 0;                              // Of this pipeline alone.
};

// One iteration in detail; times from its start.
struct EmulatedTimeline {
  std::int64_t iteration = 0;
  double time_seconds = 0;
  std::vector<EmulatedPipeline> pipelines = {};
};

// Mean power of the whole job over equal intervals. Waiting included.
struct PowerTrace {
  double interval_seconds = 0;
  std::vector<double> watts = {};
};

struct Emulation {
  std::vector<IterationRecord> iterations = {};
  double time_seconds = 0;  // All iterations together.
  EnergySplit energy = {};  // Of the job, over all iterations.
  std::int64_t gpus = 0;
  double average_watts = 0;  // Of the job.
  double peak_watts = 0;     // Highest value of `power`; at least the average, which it is without.
  double gpu_average_watts = 0;
  double gpu_peak_watts = 0;            // Highest mean power of one computation on one GPU.
  std::int64_t clock_calls = 0;         // Changes of clock asked of GPUs' ranks.
  std::int64_t late_computations = 0;   // That began at another clock than planned.
  std::int64_t stragglers = 0;          // How many came.
  std::int64_t replans = 0;             // Changes of the healthy pipelines' plan.
  std::int64_t replayed_pipelines = 0;  // Replays that were not copies of others.
  PowerTrace power = {};
  EmulatedTimeline timeline = {};
};

// Emulates a job. Errors: kInvalidInput for a number out of range and for a policy or plan of
// another pipeline; kInfeasible where the policy has no plan for the target; the policy's own.
// Deterministic.
//
// Time grows with iterations x pipelines x computations; pipelines that do the same are computed
// once. Memory: 64 bytes an iteration, about 100 bytes a rank of every pipeline, 16 bytes a value
// of the power trace, the plans in use (one for each set of stragglers), and at most 128 MiB for
// results that are kept for later.
Result<Emulation> Emulate(const Planner& planner, const Policy& policy, const EmulationSpec& spec,
                          const ProgressFunction& progress = {});

struct EmulateUnderSpec {
  Conditions conditions = {};
  int pipelines = 1;
  ProgressFunction progress = {};  // Called between seeds.
};

// The figures of each plan if all pipelines run it under the conditions and none straggles:
// `expected` of plan.json. Five emulations of up to 200 iterations, with seeds that no search for
// plans uses. Errors: as Emulate(). Deterministic; thread-safe.
Result<std::vector<ExpectedFigures>> EmulateUnder(const Planner& planner,
                                                  const std::vector<const Plan*>& plans,
                                                  const EmulateUnderSpec& under);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_EMULATOR_H_
