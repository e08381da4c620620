// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_FLEET_POWER_CURVE_H_
#define PERSEUS_FLEET_POWER_CURVE_H_

#include <cstddef>
#include <span>
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

// What all pipelines of a job draw at the meter while one that is not late draws `watts`.
struct JobScale {
  explicit JobScale(const FleetJob& job, double meter_factor);

  double WattsOfJob(double x, double watts) const {
    return factor * (pipelines * watts + late_joules * x + constant_watts);
  }

  double factor = 1;
  double pipelines = 0;       // Those that are not late.
  double late_joules = 0;     // What late ones need for an iteration beyond waiting.
  double constant_watts = 0;  // Late ones that wait, and the job's own.
  double fastest = 0;         // The most iterations a second; infinite without late pipelines.
};

// The lower hull of these points and of waiting, for the whole job, without what more throughput
// for less power makes useless. Clipped to what late pipelines, the owner and least_watts allow.
PowerCurve MakePowerCurve(const FleetJob& job, double meter_factor,
                          std::span<const IterationPoint> points);

}  // namespace perseus::fleet

#endif  // PERSEUS_FLEET_POWER_CURVE_H_
