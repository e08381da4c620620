// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATOR_H_
#define PERSEUS_EMULATOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/export.h"
#include "perseus/plan_document.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/power_shape.h"
#include "perseus/result.h"

// Replays a training job on paper: data-parallel pipelines that run plans,
// with noisy times, clocks that settle late, stragglers, and a control plane
// that reacts to them. docs/explanation/emulation.md defines every quantity, so that
// another program gets the same numbers (tests/oracle/emulation.py does).
PERSEUS_EXPORT_BEGIN
namespace perseus {

// Of one emulation; a record of 64 bytes is kept of each.
inline constexpr std::int64_t kMaxIterations = 10'000'000;

enum class StragglerKind : std::uint8_t {
  kSlow,      // Every computation takes `value` times as long, at the same power.
  kClockCap,  // Thermal throttling: no clock above `value` MHz, within those of the profile.
  kPowerCap,  // No option that draws more than `value` watts per GPU.
  kDataStall  // The first computation of a rank waits for `value` seconds.
};
std::string_view StragglerKindName(StragglerKind kind);  // "slow", "clock", "power", "stall"

// Something wrong with one pipeline for a number of iterations.
struct Straggler {
  StragglerKind kind = StragglerKind::kSlow;
  double value = 1;
  int pipeline = 0;
  std::optional<int> rank = {};  // Without: all ranks of the pipeline (kDataStall: rank 0).
  std::int64_t first_iteration = 0;
  std::int64_t iterations = 0;  // 0: until the end.
};

// Stragglers that come by chance, like `kind` and `value` of the example.
struct RandomStragglers {
  double share_of_gpus_per_day = 0;  // 0.05: one GPU in twenty every day.
  double duration_seconds = 3600;
  StragglerKind kind = StragglerKind::kSlow;
  double value = 1.2;
};

// Who moves the pipelines along the frontier.
struct ControlPlane {
  // False: nobody reacts, even where the policy could.
  bool reacts = true;
  // From the start of an iteration in which something changes (a straggler
  // comes or goes) until new plans can be in effect, at the next iteration.
  double delay_seconds = 0;
};

struct EmulationSpec {
  int pipelines = 1;
  std::int64_t iterations = 1;
  // What the pipelines plan for while nobody straggles.
  double target_seconds = 0;
  TimeNoise noise;
  ClockSwitching switching;
  std::vector<Straggler> stragglers;
  RandomStragglers random_stragglers;
  ControlPlane control;
  std::uint64_t seed = 0;
  // Length of one value of the power trace. 0: a hundredth of the target, or
  // longer where the trace would have over a million values.
  double power_interval_seconds = 0;
  PowerShapeSpec power_shape;
  // The iteration whose timeline is kept, and of how many pipelines at most
  // (stragglers first). Without: the first with a straggler, else iteration 0.
  std::optional<std::int64_t> timeline_iteration = {};
  int timeline_pipelines = 4;
};

// Where energy went, in joules (definitions: docs/explanation/emulation.md). The four add
// up to all of it.
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
  EnergySplit energy;  // Of the job.
};

// One operation as it ran.
struct EmulatedComputation {
  int computation = 0;  // Index into the DAG.
  int knob = 0;         // As planned, or as a straggler's limit left of it.
  double start_seconds = 0;
  double end_seconds = 0;
  double joules = 0;  // All GPUs of the rank.
};

struct EmulatedPipeline {
  int pipeline = 0;
  bool straggles = false;
  std::vector<EmulatedComputation> computations;  // In the DAG's order.
  double end_seconds = 0;                         // Of this pipeline alone.
};

// One iteration in detail; times from its start.
struct EmulatedTimeline {
  std::int64_t iteration = 0;
  double time_seconds = 0;
  std::vector<EmulatedPipeline> pipelines;
};

// Mean power of the whole job over equal intervals. Waiting included.
struct PowerTrace {
  double interval_seconds = 0;
  std::vector<double> watts;
};

struct Emulation {
  std::vector<IterationRecord> iterations;
  double time_seconds = 0;  // All iterations together.
  EnergySplit energy;       // Of the job, over all iterations.
  std::int64_t gpus = 0;
  double average_watts = 0;  // Of the job.
  double peak_watts = 0;     // Highest value of `power`; at least the average.
  double gpu_average_watts = 0;
  double gpu_peak_watts = 0;            // Highest mean power of one computation on one GPU.
  std::int64_t clock_calls = 0;         // Changes of clock asked of GPUs' ranks.
  std::int64_t late_computations = 0;   // That began at another clock than planned.
  std::int64_t stragglers = 0;          // How many came.
  std::int64_t replans = 0;             // Changes of the healthy pipelines' plan.
  std::int64_t replayed_pipelines = 0;  // Replays that were not copies of others.
  PowerTrace power;
  // Not stated for a job shorter than a sample (5 ms) or longer than 11 hours.
  PowerShape power_shape;
  EmulatedTimeline timeline;
};

// Errors: kInvalidInput for numbers out of range (it says which) and for a policy or plan that was
// made for another pipeline, kInfeasible
// where the policy has no plan for the target, and what the policy says.
// Deterministic. Time is in proportion to iterations, pipelines and
// computations; pipelines that do the same thing are computed once. Memory is 64
// bytes an iteration, some 100 a rank of every pipeline, 16 a value of the power
// trace, 100 MB at most for the shape of the power, the plans in use (that of each set of
// stragglers is one), and 128 MiB for what is kept so as not to compute it again.
Result<Emulation> Emulate(const Planner& planner, const Policy& policy, const EmulationSpec& spec,
                          const ProgressFunction& progress = {});

// What each of these plans comes to where all pipelines run it under `conditions` and nobody
// straggles: five seeds, from which no search for plans draws, of up to 200 iterations. What
// plan.json has as `expected`. `keep_going` is told the share that is done (0..1) between seeds.
// Errors: as Emulate(), and kCancelled where it says no. Deterministic; thread-safe.
Result<std::vector<ExpectedFigures>> EmulateUnder(
    const Planner& planner, const std::vector<const Plan*>& plans, const Conditions& conditions,
    int pipelines, const std::function<bool(double)>& keep_going = {});

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_EMULATOR_H_
