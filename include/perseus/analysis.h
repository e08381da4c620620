// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ANALYSIS_H_
#define PERSEUS_ANALYSIS_H_

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
#include "perseus/result.h"
#include "perseus/schedule.h"

// What a user asks about a job beyond its plan: what imbalance costs, what
// another shape would save, what a run costs, and which plan keeps to a
// deadline or a power budget. docs/explanation/analysis.md states every assumption. Pure
// functions, safe to call from several threads.
PERSEUS_EXPORT_BEGIN
namespace perseus {

// A job that can be given another shape. A profile that is missing is an error.
struct JobShape {
  const Profile* profile = nullptr;  // Not owned.
  ScheduleSpec schedule;
  FixedTimes fixed;
  CostSpec costs;
};

// --- Shapes ----------------------------------------------------------------

// Which values to try; an empty list means the job's own. Every combination is
// tried.
struct SweepSpec {
  std::vector<int> microbatches;
  std::vector<int> stages;  // Divisors of the profile's: neighbours are merged.
  std::vector<int> virtual_stages;
  std::vector<std::string> schedules;
  double effort = 1;
};

// One shape. Where it cannot be built (a schedule that needs two virtual
// stages), `why_not` says so and the figures are 0.
struct SweepRow {
  ScheduleSpec schedule;
  std::string why_not;
  double baseline_seconds = 0;  // All clocks at maximum.
  double baseline_joules = 0;
  double bubble_percent = 0;          // Share of the GPUs' time that they wait, at maximum clocks.
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
  // "as measured", "best partition" ("best partition (as measured)" where there
  // is none better), "perfectly even"
  std::string name;
  std::string why_not;      // Where it cannot be costed; the figures are then 0.
  std::vector<int> layers;  // Per stage; empty where unknown or fractional.
  double imbalance = 0;     // Slowest stage over the mean, forward + backward, maximum clocks.
  double baseline_seconds = 0;
  double baseline_joules = 0;
  double iteration_time_seconds = 0;  // Of the plan at the baseline's time.
  double energy_joules = 0;
  double saving_percent = 0;  // Of the plan against this partition's own baseline.
};

// The job as measured; the best partition (its slowest stage is fastest) where
// `layers` says how many layers each stage has (their costs are inferred); and
// every stage the mean of all, as if work could be divided at will.
Result<std::vector<PartitionResult>> AnalysePartitions(const JobShape& job,
                                                       const std::vector<int>& layers,
                                                       double effort = 1.0);

// --- Budgets ---------------------------------------------------------------

// The fastest plan whose mean power (of one pipeline) stays within `watts`.
// Where even T* draws more, it is the plan for T* and a wait (at blocking power,
// at the end, which the training loop has to make): then iteration_time_seconds
// is longer than the replay of its options, by as much as the wait, and figures
// include it; constraints may make a plan beyond T* that needs less of it.
// kInfeasible where waiting alone draws more. Makes at most 12 plans.
Result<Plan> FastestWithinPower(const Planner& planner, double watts,
                                const PlanConstraints& constraints = {}, double effort = 1.0);

// The plan of least energy that takes at most `seconds` an iteration: never
// slower than T_economic. kInfeasible below T_min.
Result<Plan> CheapestWithin(const Planner& planner, double seconds,
                            const PlanConstraints& constraints = {}, double effort = 1.0);

// --- A whole training run --------------------------------------------------

// Numbers of the user's; none is guessed.
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

// What a run of `spec.gpu_hours` at the baseline's pace costs if an iteration
// of one pipeline takes `seconds` and `joules` on `gpus` GPUs.
RunCost CostOfRun(const RunSpec& spec, double baseline_seconds, double seconds, double joules,
                  int gpus);

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_ANALYSIS_H_
