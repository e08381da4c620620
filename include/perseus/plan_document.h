// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_DOCUMENT_H_
#define PERSEUS_PLAN_DOCUMENT_H_

// Link perseus::model (pkg-config: perseus-model).

#include <optional>
#include <string>
#include <vector>

#include "perseus/computation.h"
#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/note.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "perseus/schedule.h"
#include "perseus/work.h"

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// The cost of one computation, or of two that run fused, in the baseline.
struct BaselineCost {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  std::optional<ComputationType> fused_type = {};  // With fused_stage, where two run as one.
  int fused_stage = 0;
  Knob knob = {};
  double duration_seconds = 0;
  double energy_joules = 0;  // All GPUs of the rank.
  // As in CostTable. Both are 1 if all microbatches are alike.
  double work = 1;
  double fused_work = 1;
};

// One computation of a rank, or two that run fused, as planned.
struct PlannedComputation {
  ComputationId id = {};                    // The forward, where fused.
  std::optional<ComputationId> fused = {};  // See ScheduleStep.
  Knob knob = {};
  double start_seconds = 0;  // From the start of the iteration, as replayed.
  double duration_seconds = 0;
  double energy_joules = 0;  // All GPUs of the rank.
  double work = 1;           // As of BaselineCost.
  double fused_work = 1;
};

// Power that a GPU of a rank draws while it waits at a clock.
struct PlannedWaiting {
  Knob knob = {};
  double watts = 0;
};

// One rank of the pipeline.
struct PlannedRank {
  double blocking_power_watts = 0;  // Per GPU. Where it depends on the clock, the least.
  // The clock at which the rank waits. Without: the power is taken as constant, or nothing sets a
  // clock for waiting, and that of the computation before stays.
  std::optional<Knob> waiting_knob = {};
  // At each knob of the plan, of its baseline and of waiting. Empty: taken as constant.
  std::vector<PlannedWaiting> waiting = {};
  std::vector<PlannedComputation> computations = {};  // In execution order.
};

// The figures of the all-maximum-clock run.
struct PlanBaseline {
  double iteration_time_seconds = 0;
  double energy_joules = 0;
  double average_power_watts = 0;
  std::vector<BaselineCost> costs = {};  // One per kind of computation and amount of work.
};

// Figures of a plan under its conditions, by emulation: means over all iterations and seeds. Each
// "spread" is the standard deviation between seeds.
struct ExpectedFigures {
  double iteration_time_seconds = 0;  // Of the job.
  double iteration_time_spread_seconds = 0;
  double energy_joules = 0;  // Of one pipeline in one iteration, waiting included.
  double energy_spread_joules = 0;
  // Against all clocks at maximum under the same conditions.
  double slowdown_percent = 0;
  double slowdown_spread_percent = 0;
  double saving_percent = 0;
  double saving_spread_percent = 0;
  // Extremes over all corners where conditions are ranges. Else those above.
  double most_slowdown_percent = 0;
  double least_saving_percent = 0;
  double clock_calls = 0;  // Of one pipeline in one iteration, all ranks together.
  int seeds = 0;
  int iterations = 0;  // Of each seed.

  friend bool operator==(const ExpectedFigures&, const ExpectedFigures&) = default;
};

// Everything that plan.json holds (docs/reference/files.md). Energies and powers are of
// one pipeline unless said otherwise. A plain value, safe to copy between threads.
struct PlanDocument : PlanFigures {
  std::string generator_name = {};
  std::string generator_version = {};

  std::string schedule = {};  // Canonical name, or the base name of its file.
  int stages = 0;             // Of the model = ranks x virtual stages.
  int virtual_stages = 1;
  int microbatches = 0;
  int tensor_parallel = 1;
  int data_parallel = 1;

  std::string profile_source = {};  // Base name of the profile.
  std::string profile_sha256 = {};
  std::string profile_modelled = {};  // Profile::modelled; empty: measured, or not said.
  bool knobs_are_numbers = true;      // SM clocks in MHz, else labels.

  PlanBaseline baseline = {};

  // How the lower bound was found.
  double slope_quantum_watts = 0;  // 0: the exact frontier.
  bool exponential_fit = false;
  double certified_error = 0;  // See Frontier.

  PlanConstraints constraints = {};
  FixedTimes fixed = {};
  std::optional<double> split_ratio = {};  // Where `backward` was divided.

  // The conditions under which the plan was made, and what it comes to under them.
  std::optional<Conditions> conditions = {};
  std::optional<ExpectedFigures> expected = {};

  // Findings in profile and job. They name files by their base names.
  std::vector<Note> notes = {};

  std::vector<PlannedRank> ranks = {};
};

// Facts of plan.json that neither the pipeline nor the planner knows.
struct PlanContext {
  std::string profile_source = {};  // A path; only its base name is kept.
  std::string profile_sha256 = {};
  int data_parallel = 1;
  PlanConstraints constraints = {};
  std::vector<Note> notes = {};
};

// How the lower bound of a plan was found.
struct BoundOrigin {
  double slope_quantum_watts = 0;  // That the planner really used; 0: the exact frontier.
  bool exponential_fit = false;
  double certified_error = 0;
};

// Makes what plan.json says. If you have a planner, take the function of the same name in
// perseus/planner.h. Errors: a plan or baseline of another pipeline.
Result<PlanDocument> MakePlanDocument(const CostedPipeline& pipeline, const Plan& plan,
                                      const Plan& baseline, const BoundOrigin& bound,
                                      const PlanContext& context);

// The work that a plan was made for; empty if all microbatches are alike.
Work WorkOf(const PlanDocument& plan);

// The schedule that a plan's ranks follow. It is not validated.
Schedule ScheduleOf(const PlanDocument& plan);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_PLAN_DOCUMENT_H_
