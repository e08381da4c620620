// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_DIVISION_H_
#define PERSEUS_FLEET_DIVISION_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perseus/fleet.h"

namespace perseus::fleet {

// Power over throughput: the corners of a convex function, iterations a second and watts at the
// meter both ascending. From the least that a job may get to the most that it can use.
struct PowerCurve {
  std::vector<double> x = {};
  std::vector<double> watts = {};

  std::size_t size() const { return x.size(); }
  // Watts for one more iteration a second, on the segment after a corner.
  double SlopeAfter(std::size_t corner) const {
    return (watts[corner + 1] - watts[corner]) / (x[corner + 1] - x[corner]);
  }
  // x is between the first corner's and the last's.
  double WattsAt(double at) const;
  double ThroughputAt(double power) const;
};

// A point that a job with plans can really have.
struct PlanOption {
  double x = 0;
  double watts = 0;  // At the meter.
  std::size_t plan = 0;
};

// A job as the division sees it.
struct Member {
  std::string label = {};                // For messages: job "a", or "job 3".
  PowerCurve curve = {};                 // The convex bound.
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

// The limits of the site, or those that stand for them. Errors: kInvalidInput.
Result<Limits> LimitsOf(const State& state, std::span<const double> limit_watts);

// The watts of each node, if the jobs draw `watts` [job].
std::vector<double> NodeWatts(const State& state, std::span<const double> watts);

// Least power of the jobs: anywhere on their curves, or following plans.
std::vector<double> LeastOfCurves(const State& state);
std::vector<double> LeastOfPlans(const State& state);

// Limits that do not hold what these watts [job] come to; and the first of them as an error
// (kInfeasible).
std::vector<PowerShortage> ShortagesOf(const State& state, const Limits& limits,
                                       const std::vector<double>& least_watts);
std::optional<Error> FirstShortage(const State& state, const Limits& limits,
                                   const std::vector<double>& least_watts);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_DIVISION_H_
