// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_STEP_PROBE_H_
#define PERSEUS_DEVICE_STEP_PROBE_H_

#include <optional>
#include <vector>

#include "device/device.h"
#include "device/figure.h"
#include "device/probe.h"
#include "device/timed_kernel.h"
#include "perseus/result.h"

namespace perseus::device {

// How an energy counter answers a load that begins and ends at once.
struct StepProbe {
  double idle_watts = 0;
  double load_watts = 0;
  // By how much later the counter shows a load, on average.
  Figure lag_seconds;
  // The share of its period in which the counter looks at the power. Absent: it steps too often to
  // tell.
  std::optional<Figure> duty;
};

// A load, by the clock of the reads.
struct Load {
  double begin = 0;
  double end = 0;
};

// What the reads of a counter tell of loads that came after idle time. Pure. Nullopt: the counter
// did not move enough.
std::optional<StepProbe> LagOf(const std::vector<CounterRead>& reads,
                               const std::vector<Load>& loads);
// The duty of a counter that steps each `period`, by bursts that all take `burst` and begin at
// times that are spread evenly over its period. `lag`: at least its lag.
std::optional<Figure> DutyOf(const std::vector<CounterRead>& reads, const std::vector<Load>& bursts,
                             double idle_watts, double period, double lag);

// Runs loads and bursts while another thread reads the counter. Always gives the clock back. Takes
// some seconds, and longer for a slow counter. Errors: that of the first call, read or kernel that
// fails; kInfeasible if the counter does not show the load.
Result<StepProbe> ProbeStep(Gpu& gpu, TimedKernel& kernel, const StopFunction& stop);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_STEP_PROBE_H_
