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

// Samples of 5 ms: a hundred millisecond and a second hold whole numbers of
// them, also when they are doubled twice, for longer jobs.
inline constexpr double kShapeInterval = 0.005;
inline constexpr double kLongestShapeInterval = 4 * kShapeInterval;
inline constexpr std::int64_t kMostShapeValues = std::int64_t{1} << 21;

// The shape of a power that is given by means over 5, 10 or 20 ms each.
PowerShape ShapeOf(std::span<const double> watts, double interval_seconds,
                   const PowerShapeSpec& spec);

// The least energy to add so that power never changes by more than
// `watts_per_second` from one mean to the next (per second).
double BallastJoules(std::span<const double> watts, double interval_seconds,
                     double watts_per_second);

// Follows the power of a job for its shape, beside its power trace. Gives up,
// and forgets what it had, where the job gets too long.
class ShapeBuilder {
 public:
  explicit ShapeBuilder(const PowerShapeSpec& spec)
      : spec_(spec), trace_(PowerTraceBuilder(kShapeInterval, true, kMostShapeValues)) {}

  // As those of PowerTraceBuilder.
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
