// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_EMULATE_POWER_TRACE_H_
#define PERSEUS_EMULATE_POWER_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perseus/emulator.h"

namespace perseus::emulate {

// Power drawn for a time; times from the start of the iteration.
struct PowerSegment {
  double start_seconds = 0;
  double end_seconds = 0;
  double watts = 0;
};

// Adds up the power of a job over time. Its work is proportional to the number of segments plus the
// number of values, and does not depend on the length of segments.
class PowerTraceBuilder {
 public:
  // `may_lengthen`: whether to double the interval if there would be more than `most_values`
  // values.
  PowerTraceBuilder(double interval_seconds, bool may_lengthen, std::int64_t most_values);

  // Times of the next segments count from `start_seconds`, which must not decrease.
  void BeginIteration(double start_seconds);

  // Adds `copies` of segments, none of which ends after `last_end_seconds`. False
  // where the trace would have too many values.
  bool Add(std::span<const PowerSegment> segments, double last_end_seconds, double copies);

  // Ends the trace at `seconds`; the last value is the mean over a whole interval.
  PowerTrace Finish(double seconds);

 private:
  bool MakeRoom(double end_seconds);
  void SpreadWatts();
  void Lengthen();

  double interval_seconds_;
  bool may_lengthen_;
  std::int64_t most_values_;
  double start_seconds_ = 0;  // Of the iteration.
  // The iteration begins in value `first_`, `offset_` seconds from its start.
  std::int64_t first_ = 0;
  double offset_seconds_ = 0;
  std::vector<double> joules_;      // Of intervals that segments cover in part.
  std::vector<double> watts_step_;  // Where segments begin and end to cover whole intervals.
};

}  // namespace perseus::emulate

#endif  // PERSEUS_EMULATE_POWER_TRACE_H_
