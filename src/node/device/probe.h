// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_PROBE_H_
#define PERSEUS_DEVICE_PROBE_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "device/device.h"
#include "perseus/result.h"

namespace perseus::device {

// Measures properties that no driver reports. Reads at a low rate, because fast reading would raise
// the power of an idle card and so falsify the result.

// Returns true to stop the measurement and restore the GPU.
using StopFunction = std::function<bool()>;

// How an energy counter moved while it was read every `read_every_seconds`.
struct CounterProbe {
  int reads = 0;
  double read_every_seconds = 0;
  int changes = 0;  // Reads that differ from the one before.
  // Time between steps of the counter; absent: it moved less than twice. Where
  // every read differs the step is this long at most.
  std::optional<double> period_seconds;
  bool period_is_upper_bound = false;
  std::optional<double> counter_watts;  // Between its first and last step.
  std::optional<double> reading_watts;  // The power reading, a mean of ten.
  std::optional<Error> error;           // Of the counter, where it cannot be read.
};

// What reads of a counter tell. Pure.
struct CounterRead {
  double seconds = 0;
  double joules = 0;
};
CounterProbe SummarizeCounter(const std::vector<CounterRead>& reads, double read_every_seconds);

// Reads the counters of all GPUs in turns for `seconds`; a probe for each.
std::vector<CounterProbe> ProbeCounters(const std::vector<Gpu*>& gpus, double seconds,
                                        double read_every_seconds, const StopFunction& stop);

// How long calls that set a clock take.
struct ClockProbe {
  int calls = 0;
  double median_call_seconds = 0;
  double longest_call_seconds = 0;
  // From the beginning of a call until the driver reads back the new clock, a
  // median; absent: it never did (an idle card may rest at a lower clock).
  std::optional<double> median_seen_seconds;
};

// Locks two clocks in turn, `calls` times, and always gives the clock back at the end. That also
// removes a lock that another process had set, because drivers cannot report locks. Errors: that of
// the first call that fails; if giving back fails, that one, because the GPU stays locked then.
Result<ClockProbe> ProbeClock(Gpu& gpu, int calls, const StopFunction& stop);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_PROBE_H_
