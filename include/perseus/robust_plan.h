// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_PLAN_H_
#define PERSEUS_ROBUST_PLAN_H_

#include <cstdint>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/export.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/result.h"

// The plan that holds under conditions: clocks that come late, times that
// vary, changes that cost or are limited. docs/explanation/planning.md ("Plans that hold
// under real clocks") says how it is found and what is proven of it.
PERSEUS_EXPORT_BEGIN
namespace perseus {

// Means over replayed iterations of a job whose pipelines all run one plan,
// with their standard errors. Where a draw is made once per job (noise per stage
// or GPU) every few iterations are those of another job. Where nothing varies, figures are of an
// iteration that all later ones are like; of a job that never settles, the mean of the later half.
struct ReplayedFigures {
  double iteration_time_seconds = 0;  // Of the job: its slowest pipeline.
  double iteration_time_error_seconds = 0;
  double energy_joules = 0;  // Of one pipeline, waiting included, the price of changes not.
  double energy_error_joules = 0;
  // Against all maximum clocks in the same iterations, with the same draws. Where nothing varies
  // it is at least that of a job's first 100 and first 200 iterations.
  double slowdown_percent = 0;
  double slowdown_error_percent = 0;
  double saving_percent = 0;
  double saving_error_percent = 0;
  double clock_calls = 0;  // Of one iteration of one pipeline, all ranks together.
};

// One point of the price of changes.
struct ChangePricePoint {
  // Changes of clock in one iteration of one pipeline, all ranks together. If a rank's last
  // computation and its first of the next iteration have different clocks, that is a change, too.
  int changes = 0;
  double saving_percent = 0;
};

// What no plan under the conditions can do better than.
struct RobustBound {
  // Of all plans whose mean iteration is at most as long as accepted; in per cent of the
  // baseline's energy. A wait for a target beyond T_economic is not counted: then it is what the
  // plan for T_economic can save at most. Proven where `proven`: without noise. With noise the
  // accepted time and the baseline's energy are themselves means of replays, so
  // the number is an estimate, good to their standard errors.
  double saving_percent = 0;
  bool proven = false;
  // The same for clocks that come at once and never cost anything, with the same
  // noise: what latency and changes do not explain. An estimate with noise.
  double saving_without_switching_percent = 0;
};

struct RobustPlan {
  Plan plan;  // Its own figures are those without conditions.
  Conditions conditions;
  int pipelines = 1;
  double accepted_seconds = 0;  // What the mean iteration may take.
  ReplayedFigures expected;     // Of `plan`, from draws that the search did not use.
  ReplayedFigures baseline;     // All maximum clocks.
  Plan paper_plan;              // PlanFor() the target, which knows no conditions...
  ReplayedFigures paper;        // ... and what becomes of it under them.
  // The least Conditions::max_slowdown with which `paper_plan` itself would hold, whatever its
  // changes of clock.
  double paper_max_slowdown = 0;
  RobustBound bound;
  // By ascending changes and savings, from the search's own draws. More changes that save the
  // same, but for rounding, are no point.
  std::vector<ChangePricePoint> price_curve;
};

struct RobustPlanSpec {
  Conditions conditions;
  // The plan keeps them, too: the time margin within the accepted time. Where any() of them is
  // set the search is another one (docs/explanation/planning.md).
  PlanConstraints constraints;
  // Of the search, as for PlanFor(): 1 for a plan that will be used.
  double effort = 1;
  // Data-parallel pipelines: an iteration takes as long as the slowest of them.
  int pipelines = 1;
  bool with_bound = true;
};

// The plan that saves most while the mean iteration takes no longer than
// all maximum clocks under the same conditions x (seconds / all-maximum-clock
// time) x (1 + max_slowdown), kept with the stated confidence. `seconds` is as
// for Planner::PlanFor, at least T_min; where it is beyond T_economic an iteration
// of that length counts, with the wait until then. All maximum clocks are a plan that
// holds for targets of at least 1.0x, unless they change clocks themselves (kinds whose highest
// clocks differ) more often than max_changes allows.
//
// Deterministic: the search is bounded by counts and draws by a hash of its own
// seeds. More effort, and a higher max_changes (without constraints; or one higher limit
// than another with a granularity or a dwell and no limit on clocks), never give a plan that saves
// less in the search's own draws; but where no search beats what PlanFor() makes, that plan is one
// of the asked effort, and may hold or not. The callback sees every better plan with its figures
// without conditions, and may end the search with what is there. Errors: kInfeasible where nothing
// was found that is as fast as asked; kInvalidInput for numbers out of range. Thread-safe.
Result<RobustPlan> PlanUnder(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                             const PlanCallback& callback = {});

// Of ReplayUnder().
struct ReplaySpec {
  Conditions conditions = {};
  int pipelines = 1;
  std::int64_t iterations = 200;
  std::uint64_t seed = 0;
};
// Replays a plan under conditions: `iterations` of a job under draws of `seed`, and the baseline
// beside it; where nothing varies, as many as it takes. Errors: kInvalidInput, also for another
// planner's plan.
Result<ReplayedFigures> ReplayUnder(const Planner& planner, const Plan& plan,
                                    const ReplaySpec& spec);

}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_ROBUST_PLAN_H_
