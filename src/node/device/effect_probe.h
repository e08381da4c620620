// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_EFFECT_PROBE_H_
#define PERSEUS_DEVICE_EFFECT_PROBE_H_

#include <vector>

#include "device/device.h"
#include "device/figure.h"
#include "device/probe.h"
#include "device/timed_kernel.h"
#include "perseus/result.h"

namespace perseus::device {

// How long this clock takes to be in effect.
struct TargetLatency {
  int mhz = 0;
  Figure seconds;
};

// How long a requested clock takes to be in effect, and so how early clock calls must be made: from
// the beginning of the call until kernels run at the new clock.
struct EffectProbe {
  int switches = 0;  // Switches in which the new clock was observed.
  double median_seconds = 0;
  double longest_seconds = 0;
  double kernel_seconds = 0;           // What a kernel takes at the highest clock: the resolution.
  Figure seconds;                      // Of all switches.
  std::vector<TargetLatency> targets;  // By clock, ascending.
};

// Runs kernels back to back on one thread while another thread requests clocks: the highest, and in
// turn three below it, `switches` times. Always gives the clock back at the end. Takes two seconds
// and up to half a second per switch. Errors: that of the first call or kernel that fails;
// kInfeasible if kernels take equally long at all clocks, because the clock is not set or the GPU
// is throttled.
Result<EffectProbe> ProbeEffect(Gpu& gpu, TimedKernel& kernel, int switches,
                                const StopFunction& stop);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_EFFECT_PROBE_H_
