// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_PLAN_H_
#define PERSEUS_ROBUST_PLAN_H_

// Link perseus::core (pkg-config: perseus-core).

#include <cstdint>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/export.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/progress.h"
#include "perseus/result.h"

// The robust plan for conditions: clocks that come late, times that vary, changes that cost
// something or are limited. docs/explanation/planning.md ("Robust plans: real clocks") says
// how it is found and what is proven of it.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// Means over replayed iterations of a job whose pipelines all run one plan, with their standard
// errors. Noise that is drawn once per job (per stage or GPU) is drawn anew every few iterations.
// If nothing varies, the figures are those of the iteration that all later ones repeat; if
// iterations never settle, the mean of the later half.
struct ReplayedFigures {
  double iteration_time_seconds = 0;  // Of the job: its slowest pipeline.
  double iteration_time_error_seconds = 0;
  double energy_joules = 0;  // Of one pipeline, with waiting, without the price of changes.
  double energy_error_joules = 0;
  // Against all maximum clocks in the same iterations, with the same draws. If nothing varies, it
  // is the largest of three: the settled iteration, the first 100 and the first 200 of a job.
  double slowdown_percent = 0;
  double slowdown_error_percent = 0;
  double saving_percent = 0;
  double saving_error_percent = 0;
  double clock_calls = 0;  // Of one iteration of one pipeline, all ranks together.
};

// Figures of a plan at a corner of the conditions' ranges.
struct CornerFigures {
  Conditions conditions = {};
  ReplayedFigures figures = {};
};

// One point of the price of changes.
struct ChangePricePoint {
  // Changes of clock in one iteration of one pipeline, all ranks together. If a rank's last
  // computation and its first of the next iteration have different clocks, that is a change, too.
  int changes = 0;
  double saving_percent = 0;
};

// A bound: no plan does better under the conditions.
struct RobustBound {
  // In per cent of the baseline's energy. No plan that keeps to the accepted mean time saves more.
  // For a target beyond T_energy it is the bound at T_energy: waiting does not count.
  // Up to 64 computations, and if max_changes is the only condition and there is no constraint, no
  // plan within that limit saves more; otherwise the limit is not counted.
  // Without noise this is proven. With noise it is an estimate, as accurate as the means of the
  // replays that it starts from.
  double saving_percent = 0;
  bool proven = false;
  // The same if clocks came at once and cost nothing, with the same noise. The rest is due to
  // latency and changes.
  double saving_without_switching_percent = 0;
};

struct RobustPlan {
  Plan plan = {};  // Its own figures do not know the conditions.
  Conditions conditions = {};
  int pipelines = 1;
  bool with_profile_errors = false;  // The profile's standard errors were taken in.
  double accepted_seconds = 0;       // The mean iteration may last this long.
  // Of `plan`, with draws that the search did not use: at the values of Conditions::noise and
  // Conditions::switching. At each corner of Conditions::ranges: `corners`.
  ReplayedFigures expected = {};
  std::vector<CornerFigures> corners = {};
  ReplayedFigures baseline = {};  // All maximum clocks.
  Plan paper_plan = {};           // The plan that does not know the conditions,
  ReplayedFigures paper = {};     // and what becomes of it under them.
  // `paper_plan` would hold with this Conditions::max_slowdown, if its changes of clock are not
  // limited.
  double paper_max_slowdown = 0;
  RobustBound bound = {};
  // The savings of more changes, with the search's own draws. Both ascend: a point that needs more
  // changes and saves no more is left out.
  std::vector<ChangePricePoint> price_curve = {};
};

struct RobustPlanSpec {
  Conditions conditions = {};
  // The plan keeps them, too. A time margin is kept within the accepted time. With constraints the
  // search is another one (docs/explanation/planning.md).
  PlanConstraints constraints = {};
  // See perseus/effort.h.
  double effort = 1;
  // Data-parallel pipelines: an iteration lasts as long as the slowest of them.
  int pipelines = 1;
  bool with_bound = true;
};

// The plan that saves most and holds: its mean iteration takes no longer than accepted, with the
// stated confidence. Accepted are (mean iteration of maximum clocks under the same conditions) x
// (seconds / time at maximum clocks) x (1 + max_slowdown). `seconds` is as for Planner::PlanFor(),
// at least T_min. If it is beyond T_energy, the energy includes the wait until then.
//
// For a target of at least 1.0x, maximum clocks hold, too. The exception: computations differ in
// their highest clock, and so change clocks more often than max_changes allows.
//
// With Conditions::ranges, the plan holds at each of their corners, and saves most on average over
// the corners and the values that figures stand for.
//
// Of plans whose savings differ by less than the standard error of the best one's, the one with the
// fewest changes of clock is taken.
//
// Deterministic. More effort never gives a plan that saves less in the search's own draws, beyond
// that error, and a higher max_changes does not either, unless the number of clocks is limited.
// (With constraints, compare two limits, not a limit and none.) If no search beats what PlanFor()
// makes, the result is that plan, made with the effort asked for. `progress` is told of every
// better plan, with its figures without conditions; false ends the search with what is there.
// Errors: kInfeasible if nothing was found that is as fast as asked; kInvalidInput for numbers out
// of range. Thread-safe.
Result<RobustPlan> PlanUnder(const Planner& planner, double seconds, const RobustPlanSpec& spec,
                             const ProgressFunction& progress = {});

// Input of ReplayUnder().
struct ReplaySpec {
  Conditions conditions = {};
  int pipelines = 1;
  std::int64_t iterations = 200;
  std::uint64_t seed = 0;
};
// Replays a plan and the baseline under conditions, for `iterations` with draws of `seed`. If
// nothing varies, it replays as many as it needs. Errors: kInvalidInput, also for another
// planner's plan.
Result<ReplayedFigures> ReplayUnder(const Planner& planner, const Plan& plan,
                                    const ReplaySpec& spec);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_ROBUST_PLAN_H_
