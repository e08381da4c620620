// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_EFFECT_PROBE_H_
#define PERSEUS_DEVICE_EFFECT_PROBE_H_

#include "device/device.h"
#include "device/probe.h"
#include "perseus/result.h"

namespace perseus::device {

// A short computation on a GPU whose length follows the SM clock. One thread.
class TimedKernel {
 public:
  TimedKernel() = default;
  TimedKernel(const TimedKernel&) = delete;
  TimedKernel& operator=(const TimedKernel&) = delete;
  virtual ~TimedKernel() = default;

  // Makes the kernel take about `seconds` at the clock of now.
  virtual Result<void> Fit(double seconds) = 0;
  // Runs it once; returns what it took on the GPU, in seconds.
  virtual Result<double> Run() = 0;
};

// How long a requested clock takes to be in effect, and so how early clock calls must be made.
struct EffectProbe {
  int switches = 0;  // Switches in which the new clock was observed.
  // From the beginning of the call that sets a clock until the beginning of the
  // first kernel that ran at it.
  double median_seconds = 0;
  double longest_seconds = 0;
  double kernel_seconds = 0;  // What a kernel takes: the resolution.
};

// Runs kernels back to back on one thread while another thread requests two clocks in turn,
// `switches` times. Always gives the clock back at the end. Takes a second and up to half a second
// per switch. Errors: that of the first call or kernel that fails; kInfeasible if kernels take
// equally long at both clocks, because the clock is not set or the GPU is throttled.
Result<EffectProbe> ProbeEffect(Gpu& gpu, TimedKernel& kernel, int switches,
                                const StopFunction& stop);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_EFFECT_PROBE_H_
