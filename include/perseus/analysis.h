// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ANALYSIS_H_
#define PERSEUS_ANALYSIS_H_

// Link perseus::core (pkg-config: perseus-core).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/export.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/progress.h"
#include "perseus/result.h"
#include "perseus/schedule.h"

// Questions about a job beyond its plan: what does imbalance cost, what would another shape save,
// what does a run cost, and which plan keeps to a deadline or a power budget?
// docs/explanation/analysis.md states every assumption. These functions have no state: several
// threads may call them.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// A job that can be given another shape. `profile` must be set.
struct JobShape {
  const Profile* profile = nullptr;  // Not owned.
  ScheduleSpec schedule = {};
  FixedTimes fixed = {};
  CostSpec costs = {};
};

// --- Shapes ----------------------------------------------------------------

// Which values to try. An empty list stands for the job's own value. Every combination is tried.
struct SweepSpec {
  std::vector<int> microbatches = {};
  std::vector<int> stages = {};  // Divisors of the profile's number: neighbours are merged.
  std::vector<int> virtual_stages = {};
  std::vector<std::string> schedules = {};
  double effort = 1;
};

// One shape. Where it cannot be built, `why_not` has the reason and the figures are 0.
struct SweepRow {
  ScheduleSpec schedule = {};
  std::string why_not = {};
  double baseline_seconds = 0;  // All clocks at maximum.
  double baseline_joules = 0;
  double bubble_percent = 0;          // Share of the GPUs' time spent waiting, at maximum clocks.
  double iteration_time_seconds = 0;  // Of the plan at the baseline's time.
  double energy_joules = 0;
  double lower_bound_joules = 0;
  double saving_percent = 0;
  double seconds_per_microbatch = 0;  // Of the plan.
  double joules_per_microbatch = 0;
};

// Errors: more than 1,000 shapes, or 4,000,000 computations in all of them.
Result<std::vector<SweepRow>> SweepShapes(const JobShape& job, const SweepSpec& sweep,
                                          const ProgressFunction& progress = {});

// --- Imbalance -------------------------------------------------------------

// A partition of the model and what comes of it.
struct PartitionResult {
  // "as measured", "best partition" or "perfectly even"; "best partition (as measured)" where none
  // is better than the measured one.
  std::string name = {};
  std::string why_not = {};      // Why it has no costs; empty if it has. Figures are 0 without.
  std::vector<int> layers = {};  // Per stage; empty where unknown or fractional.
  double imbalance = 0;          // Slowest stage over the mean, forward + backward, maximum clocks.
  double baseline_seconds = 0;
  double baseline_joules = 0;
  double iteration_time_seconds = 0;  // Of the plan at the baseline's time.
  double energy_joules = 0;
  double saving_percent = 0;  // Of the plan against this partition's own baseline.
};

// Three partitions. The one that was measured. The best one, whose slowest stage is fastest, if
// `layers` has the number of layers of each stage: the cost of a layer is then inferred. And one
// whose stages all cost the mean, as if work could be divided at will.
Result<std::vector<PartitionResult>> AnalysePartitions(const JobShape& job,
                                                       const std::vector<int>& layers,
                                                       double effort = 1.0);

// --- Budgets ---------------------------------------------------------------

// The fastest plan whose mean power (of one pipeline) stays within `watts`. Makes at most 12 plans.
//
// If even the plan for T* draws more, the answer is that plan with a wait at its end, which the
// training loop has to make. All figures then include the wait, so iteration_time_seconds is longer
// than the replay of the options. With constraints, a plan beyond T* may need less waiting.
// Errors: those of Planner::PlanFor(); kInfeasible where waiting alone draws more.
Result<Plan> FastestWithinPower(const Planner& planner, double watts, const PlanSpec& spec = {});

// The plan of least energy that takes at most `seconds` an iteration. It is never slower than
// T_economic. Errors: those of Planner::PlanFor(); kInfeasible below T_min.
Result<Plan> CheapestWithin(const Planner& planner, double seconds, const PlanSpec& spec = {});

// --- A whole training run --------------------------------------------------

// All of these are the caller's numbers. Perseus guesses none.
struct RunSpec {
  std::optional<double> gpu_hours = {};         // Of the run at maximum clocks.
  std::optional<double> price_per_kwh = {};     // In any currency.
  std::optional<double> carbon_g_per_kwh = {};  // Grams of CO2.
};

struct RunCost {
  double gpu_hours = 0;
  double mwh = 0;
  double price = 0;      // 0 where no price was given.
  double carbon_kg = 0;  // 0 where no intensity was given.
};

// One iteration of one pipeline.
struct IterationCost {
  double baseline_seconds = 0;  // At maximum clocks.
  double seconds = 0;
  double joules = 0;
  int gpus = 0;
};

// What a run of `spec.gpu_hours` at the baseline's pace costs.
RunCost CostOfRun(const RunSpec& spec, const IterationCost& iteration);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_ANALYSIS_H_
