// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_DISTURBANCE_PROBE_H_
#define PERSEUS_DEVICE_DISTURBANCE_PROBE_H_

#include "device/device.h"
#include "device/figure.h"
#include "device/probe.h"
#include "device/timed_kernel.h"
#include "perseus/result.h"

namespace perseus::device {

// What calls that set clocks cost the work that runs meanwhile.
struct DisturbanceProbe {
  double interval_seconds = 0;  // Between two calls.
  int calls = 0;
  Figure seconds_per_call;  // By how much longer the work took.
};

// Runs kernels back to back, in turn with and without calls that set the two highest clocks each
// `interval_seconds`. Always gives the clock back. Takes some `blocks` times ten intervals. Errors:
// that of the first call or kernel that fails, or of giving back.
Result<DisturbanceProbe> ProbeDisturbance(Gpu& gpu, TimedKernel& kernel, double interval_seconds,
                                          int blocks, const StopFunction& stop);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_DISTURBANCE_PROBE_H_
