// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_H_
#define PERSEUS_FLEET_H_

// Link perseus::fleet (pkg-config: perseus-fleet).

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "perseus/export.h"
#include "perseus/result.h"

// Divides the power of a site among its training jobs.
//
// Each job has the exact frontier E(T) of one pipeline: the least energy of an iteration that takes
// T seconds. At x = 1/T iterations a second it draws P(x) = E(1/x) x watts. On a segment
// E(T) = a + b T this is a x + b: P is convex and piecewise linear in x, so the best division is a
// small exact problem. docs/explanation/fleet.md has the mathematics. Nothing in here knows about
// pipelines, GPUs, plans or files. All types are plain values; all functions are pure, and threads
// may call them at once.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

inline constexpr double kNoPowerLimit = std::numeric_limits<double>::infinity();

// One iteration of one pipeline: all energy, waiting included.
struct IterationPoint {
  double time_seconds = 0;
  double energy_joules = 0;
};

// A part of a job's power that a node of the tree of limits carries. Shares of a job sum to 1.
struct PowerShare {
  std::size_t node = 0;  // Index into PowerSite::nodes.
  double fraction = 1;
};

// A pipeline that is late whatever the others do: each iteration it computes for `point`, then
// waits for the rest. The iteration takes no less than its time.
struct LatePipeline {
  IterationPoint point = {};
};

struct FleetJob {
  std::string name = {};
  std::string tenant = {};  // For fairness by tenant. Empty: a tenant of its own.
  // Corners of E(T) up to T*; any order, the lower convex hull counts. One point is enough.
  std::vector<IterationPoint> frontier = {};
  // Plans that the job can really follow, each of one pipeline. Empty: any point of the frontier.
  std::vector<IterationPoint> plans = {};
  double full_speed_seconds =
      0;                     // An iteration at maximum clocks: where the ratio x / x_full is 1.
  double waiting_watts = 0;  // One pipeline that only waits: it goes on beyond T* with these.
  int pipelines = 1;         // Late ones included.
  std::vector<LatePipeline> late = {};
  double fixed_watts = 0;  // Of the whole job: CPUs, fans, network cards.
  double weight = 1;
  std::optional<double> slowest_seconds = {};  // What the owner accepts. Without: any time.
  double least_watts = 0;                      // The job's power never falls below.
  std::vector<PowerShare> shares = {};         // Empty: all in node 0.
};

// A rack, row, hall or feed. Node 0 is the site and has no parent.
struct PowerNode {
  std::string name = {};
  std::optional<std::size_t> parent = {};
  double limit_watts = kNoPowerLimit;
};

struct PowerSite {
  std::vector<PowerNode> nodes = {PowerNode{}};
  std::vector<FleetJob> jobs = {};
  // What the meter sees for a watt at the GPUs (power usage effectiveness). Limits are the meter's.
  double meter_factor = 1;
};

enum class FleetObjective {
  kThroughput,    // Most weighted sum of x / x_full.
  kMaxMin,        // The smallest x / x_full / weight is as large as can be, then the next, ...
  kMaxMinTenants  // The same among tenants: a tenant's ratio is the mean of its jobs'.
};

// What one job gets. Watts are those of the job: GPUs and fixed_watts, before meter_factor.
struct JobShare {
  double time_seconds = 0;           // Of an iteration; infinite where the job only waits.
  double iterations_per_second = 0;  // 0 where the job only waits.
  double watts = 0;
  double speed = 0;      // x / x_full.
  std::size_t plan = 0;  // Index into FleetJob::plans, where the job has some.
};

struct NodeShare {
  double watts = 0;  // At the meter of this node.
  double price_per_watt =
      0;  // What one more watt of this limit is worth; 0 where it does not bind.
};

struct PowerDivision {
  double objective = 0;
  std::vector<JobShare> jobs = {};    // [job]
  std::vector<NodeShare> nodes = {};  // [node]
};

// The convex optimum, which no plans can beat, and what the real plans reach.
struct FleetAnswer {
  PowerDivision bound = {};
  PowerDivision plans = {};  // Keeps every limit. The same as `bound` where no job has plans.
};

// Which limit cannot be kept even if all jobs run as slowly as their owners accept.
struct PowerShortage {
  std::size_t node = 0;
  double missing_watts = 0;
  std::vector<std::size_t> suspend = {};  // Jobs whose suspension would mend it, cheapest first.
};

// Every limit that cannot be kept; empty where all can. Advice only: nothing suspends a job.
Result<std::vector<PowerShortage>> FindShortages(const PowerSite& site);

// The best division. Exact: one sort of all segments for one limit, for a tree the same from its
// leaves up. Errors: kInvalidInput (names the job or node and its field), kInfeasible (names the
// limit and the watts that are missing; FindShortages() has the rest).
Result<FleetAnswer> DividePower(const PowerSite& site, FleetObjective objective);

// A stretch of time with its own limits and price.
struct PowerPeriod {
  double seconds = 0;
  double price_per_joule = 0;            // Money, or grams of CO2: any cost, also negative.
  std::vector<double> limit_watts = {};  // [node], or empty for those of the site.
};

// Iterations that a job must have done by the end of a period.
struct FleetDeadline {
  std::size_t job = 0;
  std::size_t period = 0;
  double iterations = 0;
};

struct PowerSchedule {
  double cost = 0;
  std::vector<PowerDivision> periods = {};  // [period]; objective: cost of the period.
};

struct FleetScheduleAnswer {
  PowerSchedule bound = {};
  PowerSchedule plans = {};  // Each job alternates between plans inside a period.
};

// Least cost of given work over time: a linear program over segments, solved by COIN-OR CLP.
// Errors: as DividePower(); kInfeasible names a deadline that cannot be met, or the first limit.
Result<FleetScheduleAnswer> SchedulePower(const PowerSite& site,
                                          const std::vector<PowerPeriod>& periods,
                                          const std::vector<FleetDeadline>& deadlines);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_FLEET_H_
