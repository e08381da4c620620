// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FRONTIER_H_
#define PERSEUS_FRONTIER_H_

// Link perseus::core (pkg-config: perseus-core).

#include <optional>
#include <span>
#include <vector>

#include "perseus/export.h"
#include "perseus/progress.h"
#include "perseus/result.h"

// A general solver for the continuous time-cost trade-off problem ("project crashing"). Activities
// wait for each other. Each has a curve: the more time it may take, the less it costs. What is the
// least total cost for each deadline? Nothing in here knows about pipelines or GPUs. To Perseus, an
// activity is a computation, time is in seconds and cost in effective joules, so slopes are watts.
//
//   TimeCostProblem house;
//   house.curves = {{{2, 90}, {4, 40}, {5, 30}},   // 2 days cost 90, ...
//                   {{3, 50}, {6, 20}}};
//   house.curve_of = {0, 1, 1};                    // three activities
//   house.precedences = {{0, 1, 0.0}, {0, 2, 0.0}};
//   const auto frontier = SolveFrontier(house, {});
//   if (!frontier) return Fail(frontier.error().message);
//   for (const auto& p : frontier->breakpoints) std::cout << p.time << ' ' << p.cost << '\n';
//
// docs/explanation/planning.md has the algorithm and its guarantees.

PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

// One way to do an activity. Any finite cost; time >= 0.
struct TimeCost {
  double time = 0;
  double cost = 0;
};

// `to` starts no earlier than `delay` (>= 0) after `from` ends.
struct TimeCostPrecedence {
  int from = 0;
  int to = 0;
  double delay = 0;
};

// A plain value. Activities may share a curve. The options of a curve may come in any order. The
// solver takes their lower convex hull, so its result is a lower bound for every choice of options.
struct TimeCostProblem {
  std::vector<std::vector<TimeCost>> curves = {};
  std::vector<int> curve_of = {};                    // [activity] -> curves
  std::vector<TimeCostPrecedence> precedences = {};  // Any order; acyclic.
  std::vector<double> earliest_start = {};           // [activity], or empty for 0.
  double end_delay = 0;                              // From the last end to the deadline.
};

// One corner of the piecewise linear, convex cost(time).
struct FrontierBreakpoint {
  double time = 0;
  double cost = 0;
  double slope = 0;  // -d(cost)/d(time) to the right; 0 in the last.
};

// An optimal schedule for one deadline, and the prices that prove it optimal:
// sum over activities of min over options (cost + price x time), minus
// price_of_time x deadline, plus the fixed delays' share, equals the cost.
struct TimeCostSchedule {
  double time = 0;
  double cost = 0;
  double price_of_time = 0;                   // -d(cost)/d(time); at a corner, on one of its sides.
  std::vector<double> start = {};             // [activity]
  std::vector<double> duration = {};          // [activity]: the time that the activity may take.
  std::vector<double> price = {};             // [activity], >= 0: what a unit of its time costs.
  std::vector<double> precedence_price = {};  // [precedence], >= 0
  // Sum of prices x fixed delays (precedences, earliest starts, end delay).
  double delay_value = 0;
};

struct FrontierOptions {
  // The walk goes from long times to short ones, and stops here. Without either it goes on to the
  // fastest time.
  std::optional<double> stop_time = {};
  std::optional<double> stop_slope = {};
  // Round slopes to multiples of this. 0: exact. The result then holds for the rounded curves, and
  // cost_error bounds its distance to the true one.
  double slope_quantum = 0;
  // Deadlines for which a schedule is wanted, in any order. A deadline that is too short or too
  // long gets the schedule of the fastest or the slowest time.
  std::vector<double> schedule_times = {};
  // Called about every hundred breakpoints, and at least once. Its share is that of the time
  // between the slowest and the fastest.
  ProgressFunction progress = {};
};

struct TimeCostFrontier {
  std::vector<FrontierBreakpoint> breakpoints = {};  // Times ascending.
  bool complete = false;                             // Down to the fastest time.
  std::vector<TimeCostSchedule> schedules = {};      // One for each schedule_times.
  // Largest |cost - true cost| over the frontier that rounding to integers or
  // to slope_quantum can have caused. (Options within 1e-9 of each other in
  // time count as one, the cheaper: the cost stays a lower bound.)
  double cost_error = 0;
  long long pivots = 0;
  long long work = 0;  // Steps done, as EstimateFrontier() counts them.
};

// Walks the whole frontier. Exact in integers: the only rounding is that of
// the input to the integer grid (relative 1e-15 or so; cost_error says it).
// Errors: kInvalidInput (cycle, index out of range, empty curve, negative or
// non-finite number, no activity), kOverflow (sums that are not finite or do
// not fit 62 bits, more than 2^28 activities and precedences), kCancelled.
// Thread-safe; no state is shared.
Result<TimeCostFrontier> SolveFrontier(const TimeCostProblem& problem,
                                       const FrontierOptions& options);

// The size of a problem, on which the cost of a whole frontier depends.
struct FrontierSize {
  double activities = 0;
  double precedences = 0;
  // Hull segments, after rounding to slope_quantum: of the curves of all
  // activities, and of the curves that have a user.
  double segments = 0;
  double curve_segments = 0;
  double longest_chain = 0;  // Activities on the longest path of precedences.
  double slope_steps = 0;    // The steepest slope in multiples of slope_quantum; 0: exact.
};

struct FrontierEstimate {
  double breakpoints = 0;
  double work = 0;     // Steps: about nodes touched.
  double seconds = 0;  // CPU time, where a step takes 18 ns.
  double bytes = 0;    // Peak memory of SolveFrontier(), without the problem itself.
};

// One pass over the problem; builds nothing. Errors: as SolveFrontier(), but for cycles.
Result<FrontierSize> SizeOf(const TimeCostProblem& problem, double slope_quantum);

// The cost of SolveFrontier() for a whole frontier, estimated before it starts. Fitted to pipelines
// (docs/explanation/planning.md): there the true work is within a factor of 3. For other graphs it
// may be far off.
FrontierEstimate EstimateFrontier(const FrontierSize& size);

// The lower convex hulls after rounding to the solver's integer grid: one list per curve, fastest
// first. Another exact solver finds the same frontier for them, to the last digit.
Result<std::vector<std::vector<TimeCost>>> QuantisedCurves(const TimeCostProblem& problem,
                                                           const FrontierOptions& options);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_FRONTIER_H_
