// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_TOGETHER_PROBE_H_
#define PERSEUS_DEVICE_TOGETHER_PROBE_H_

#include <vector>

#include "device/device.h"
#include "device/figure.h"
#include "device/probe.h"
#include "perseus/result.h"

namespace perseus::device {

// How long calls take when all GPUs of a node are called at once, as at the end of a stage.
struct TogetherProbe {
  int gpus = 0;
  Figure alone_seconds;     // A call while no other is under way.
  Figure together_seconds;  // Until the last of the calls that began at once has ended.

  // The driver serves one call at a time, if all together take about as long as one after the
  // other.
  bool is_serial() const {
    return together_seconds.value > (1 + 0.5 * (gpus - 1)) * alone_seconds.value;
  }
  // By how much more a call may take than one alone.
  double wait_seconds() const {
    return is_serial() ? together_seconds.value - alone_seconds.value : 0;
  }
};

// Sets clocks of each GPU alone, and of all at once, `rounds` times. Always gives the clocks back.
// For two GPUs at least. Errors: that of the first call that fails, or of giving back.
Result<TogetherProbe> ProbeTogether(const std::vector<Gpu*>& gpus, int rounds,
                                    const StopFunction& stop);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_TOGETHER_PROBE_H_
