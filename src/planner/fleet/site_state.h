// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_SITE_STATE_H_
#define PERSEUS_FLEET_SITE_STATE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "fleet/power_curve.h"
#include "perseus/fleet.h"

namespace perseus::fleet {

// A point that a job with plans can really have.
struct PlanOption {
  double x = 0;
  double watts = 0;  // At the meter.
  std::size_t plan = 0;
};

// A job as the division sees it.
struct Member {
  std::string label = {};  // For messages: job "a", or "job 3".
  PowerCurve curve = {};   // The convex bound.
  // What alternating between plans reaches; empty where the job has none.
  PowerCurve plan_curve = {};
  std::vector<PlanOption> options = {};  // x and watts ascending; empty where the job has no plans.
  double per_speed = 1;                  // x at full speed: x = speed * per_speed.
  double weight = 1;
  std::size_t tenant = 0;
  std::vector<PowerShare> nodes = {};  // All nodes that carry a part, nearest the leaves first.

  double LeastWatts() const { return options.empty() ? curve.watts.front() : options[0].watts; }
  double ValueOf(double x) const { return weight * (x / per_speed); }
};

struct NodeState {
  std::string label = {};
  std::size_t parent = 0;  // Of the root: itself.
  double limit_watts = kNoPowerLimit;
};

using Limits = std::vector<double>;  // [node]

}  // namespace perseus::fleet

namespace perseus {
inline namespace v0 {

struct PreparedSite::State {
  std::vector<fleet::Member> members = {};
  std::vector<fleet::NodeState> nodes = {};
  std::vector<std::size_t> leaves_first = {};  // Each node before its parent.
  std::size_t tenants = 0;
  double meter_factor = 1;
};

}  // namespace v0
}  // namespace perseus

namespace perseus::fleet {

using State = PreparedSite::State;

// Where each job is: x, [job].
using Throughputs = std::vector<double>;

// The limits of the site, or those that stand for them. Errors: kInvalidInput.
Result<Limits> LimitsOf(const State& state, std::span<const double> limit_watts);

// The watts of each node, if the jobs draw `watts` [job].
std::vector<double> NodeWatts(const State& state, std::span<const double> watts);

// True if each job is in one node, or every limit holds all of it or nothing.
bool IsTree(const State& state, const Limits& limits);

// The nodes that carry all of the job and have a limit, nearest the leaves first.
std::vector<std::size_t> LimitedNodes(const Member& member, const Limits& limits);

// A division with jobs at x on their curves; prices are 0.
PowerDivision DivisionAt(const State& state, const Throughputs& x);

// A part of a job is all of it, up to rounding.
inline constexpr double kWhole = 1 - 1e-12;

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_SITE_STATE_H_
