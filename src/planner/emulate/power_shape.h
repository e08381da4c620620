// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_POWER_SHAPE_H_
#define PERSEUS_EMULATE_POWER_SHAPE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emulate/power_trace.h"
#include "perseus/power_shape.h"

namespace perseus::emulate {

// Samples of 5 ms. For long jobs they are doubled once or twice; 100 ms and 1 s are then still
// whole numbers of samples.
inline constexpr double kShapeInterval = 0.005;
inline constexpr double kLongestShapeInterval = 4 * kShapeInterval;
inline constexpr std::int64_t kMostShapeValues = std::int64_t{1} << 21;

// The shape of the power whose means over 5, 10 or 20 ms each are given.
PowerShape ShapeOf(std::span<const double> watts, double interval_seconds,
                   const PowerShapeSpec& spec);

// The least energy to add so that power never changes by more than
// `watts_per_second` from one mean to the next (per second).
double BallastJoules(std::span<const double> watts, double interval_seconds,
                     double watts_per_second);

// Collects the power of a job for its shape, independently of the power trace. If the job is too
// long, it gives up and drops all values.
class ShapeBuilder {
 public:
  explicit ShapeBuilder(const PowerShapeSpec& spec)
      : spec_(spec), trace_(PowerTraceBuilder(kShapeInterval, true, kMostShapeValues)) {}

  // The next functions are as those of PowerTraceBuilder.
  void BeginIteration(double start_seconds);
  void Add(std::span<const PowerSegment> segments, double last_end_seconds, double copies);

  PowerShape Finish(double seconds);

 private:
  PowerShapeSpec spec_;
  double start_seconds_ = 0;
  std::optional<PowerTraceBuilder> trace_;
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_POWER_SHAPE_H_
