// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_TIMED_KERNEL_H_
#define PERSEUS_DEVICE_TIMED_KERNEL_H_

#include <chrono>

#include "perseus/result.h"

namespace perseus::device {

// One run of a kernel.
struct KernelTime {
  double seconds = 0;                                // What it took on the GPU.
  std::chrono::steady_clock::time_point begin = {};  // As near as it is known.

  std::chrono::steady_clock::time_point end() const {
    return begin + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       std::chrono::duration<double>(seconds));
  }
};

// A short computation on a GPU whose length follows the SM clock, or a transfer, whose length does
// not. One thread.
class TimedKernel {
 public:
  TimedKernel() = default;
  TimedKernel(const TimedKernel&) = delete;
  TimedKernel& operator=(const TimedKernel&) = delete;
  virtual ~TimedKernel() = default;

  // Makes the kernel take about `seconds` at the clock of now.
  virtual Result<void> Fit(double seconds) = 0;
  // Runs it once, to its end.
  virtual Result<KernelTime> Run() = 0;
};

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_TIMED_KERNEL_H_
