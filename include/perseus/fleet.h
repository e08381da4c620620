// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_H_
#define PERSEUS_FLEET_H_

// Link perseus::core (pkg-config: perseus-core).

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
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
// GPUs, clocks or files. All types are values; all functions are pure, and threads may call them at
// once. The order of jobs decides nothing but ties among real plans.
PERSEUS_EXPORT_BEGIN
namespace perseus {
inline namespace v0 {

inline constexpr double kNoPowerLimit = std::numeric_limits<double>::infinity();

// One iteration of one pipeline: all energy, waiting included.
struct IterationPoint {
  double time_seconds = 0;
  double energy_joules = 0;
};

// A part of a job's power that a node of the tree of limits, and all nodes above it, carry. Shares
// of a job sum to 1.
struct PowerShare {
  std::size_t node = 0;  // Index into PowerSite::nodes.
  double fraction = 1;
};

// A pipeline that is late whatever the others do: each iteration it computes for `point`, then
// waits for the rest. No iteration of the job takes less than its time, whatever slowest_seconds
// is.
struct LatePipeline {
  IterationPoint point = {};
};

struct FleetJob {
  std::string name = {};
  std::string tenant = {};  // For fairness by tenant. Empty: a tenant of its own.
  // Corners of E(T) up to T*; any order. What counts is the lower convex hull of these, of the
  // plans and of waiting. One point is enough.
  std::vector<IterationPoint> frontier = {};
  // Plans that the job can really follow, each of one pipeline; any order. Empty: any point of the
  // frontier. A job may also follow its slowest plan and then wait.
  std::vector<IterationPoint> plans = {};
  double full_speed_seconds = 0;  // An iteration at maximum clocks: where x / x_full is 1.
  double waiting_watts = 0;       // One pipeline that only waits: it goes on beyond T* with these.
  int pipelines = 1;              // Late ones included.
  std::vector<LatePipeline> late = {};
  double fixed_watts = 0;                      // Of the whole job: CPUs, fans, network cards.
  double weight = 1;                           // > 0
  std::optional<double> slowest_seconds = {};  // What the owner accepts. Without: any time.
  // The job gets these watts at least, or what its fastest point draws if that is less.
  double least_watts = 0;
  std::vector<PowerShare> shares = {};  // Empty: all in node 0.
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
  // Watts at the meter for a watt at the GPUs (power usage effectiveness). Limits are the meter's.
  double meter_factor = 1;
};

enum class FleetObjective {
  kThroughput,  // Most weighted sum of speeds x / x_full.
  // The smallest x / x_full / weight is as large as can be, then the next, ...
  kMaxMin,
  // The same among tenants. A tenant's ratio is the mean of the speeds of its jobs, each counted
  // `weight` times.
  kMaxMinTenants
};

// The share of one job. Watts are those of the job: GPUs and fixed_watts, before meter_factor.
struct JobShare {
  double time_seconds = 0;           // Of an iteration; infinite where the job only waits.
  double iterations_per_second = 0;  // 0 where the job only waits.
  double watts = 0;
  double speed = 0;  // x / x_full.
  // Of `plans`, where the job has some: an index into FleetJob::plans. An iteration that takes
  // longer than the plan ends with waiting.
  std::size_t plan = 0;
};

struct NodeShare {
  double watts = 0;  // At the meter of this node.
  // Gain of the objective by one more watt of this limit; 0 where the limit does not bind. Of the
  // fair objectives: gain of the ratio of those that this limit holds back. 0 in the division that
  // real plans reach, where jobs have some.
  double price_per_watt = 0;
};

struct PowerDivision {
  double objective = 0;  // kThroughput: the sum. kMaxMin, kMaxMinTenants: the smallest ratio.
  std::vector<JobShare> jobs = {};    // [job]
  std::vector<NodeShare> nodes = {};  // [node]
};

// The convex optimum, which no plans can beat, and what the real plans reach.
struct FleetAnswer {
  PowerDivision bound = {};
  // Each job follows one plan; keeps every limit. The same as `bound` where no job has plans. More
  // watts for node 0 never lower its objective, if each job has plans or none has.
  PowerDivision plans = {};
};

// Which limit cannot be kept even if all jobs run as slowly as their owners accept, on plans where
// they have some.
struct PowerShortage {
  std::size_t node = 0;
  double missing_watts = 0;  // At the meter.
  // Jobs whose suspension would mend it, cheapest first: least weight for a watt.
  std::vector<std::size_t> suspend = {};
};

// A site whose jobs are sorted once, to be divided again and again as its limits move.
class PreparedSite {
 public:
  // Errors: kInvalidInput (names the job or node and its field).
  static Result<PreparedSite> Make(const PowerSite& site);

  // The best division. Exact: by the prices of segments, for a tree from its leaves up; a linear
  // program where jobs have shares in several nodes. `limit_watts` [node] stands for the limits of
  // the site; empty: these. Errors: kInvalidInput, also for kMaxMinTenants where several limits
  // hold some of the jobs; kInfeasible (names the limit and the watts that are missing).
  Result<FleetAnswer> Divide(FleetObjective objective,
                             std::span<const double> limit_watts = {}) const;
  // Only FleetAnswer::bound, where nobody needs plans.
  Result<PowerDivision> DivideBound(FleetObjective objective,
                                    std::span<const double> limit_watts = {}) const;
  // Every limit that cannot be kept; empty where all can. Advice only: nothing suspends a job.
  Result<std::vector<PowerShortage>> Shortages(std::span<const double> limit_watts = {}) const;

  struct State;  // Private to Perseus.

 private:
  explicit PreparedSite(std::shared_ptr<const State> state);

  std::shared_ptr<const State> state_;
};

// PreparedSite::Make(site), then its Shortages().
Result<std::vector<PowerShortage>> FindShortages(const PowerSite& site);

// PreparedSite::Make(site), then its Divide().
Result<FleetAnswer> DividePower(const PowerSite& site, FleetObjective objective);

}  // namespace v0
}  // namespace perseus
PERSEUS_EXPORT_END

#endif  // PERSEUS_FLEET_H_
