// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_CUDA_KERNEL_H_
#define PERSEUS_DEVICE_CUDA_KERNEL_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "perseus/result.h"

namespace perseus::device {

// One run of a kernel.
struct KernelTime {
  double seconds = 0;                                // What it took on the GPU.
  std::chrono::steady_clock::time_point begin = {};  // As near as it is known.
};

// A short computation on a GPU whose length follows the SM clock. One thread.
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

// PTX of the kernel: one thread that multiplies and adds, each step waiting for the
// one before, so that its length is a number of SM cycles.
extern const std::string_view kSpinPtx;

// The kernel on the GPU with NVML's UUID ("GPU-8f2c..."), by CUDA's driver interface,
// loaded from `library` (empty: libcuda.so.1). It takes the GPU's primary context,
// some hundred MB of its memory, until it is destroyed. Errors: kIo with a
// sentence: no library, no such GPU (CUDA_VISIBLE_DEVICES hides it, or it is in
// exclusive use), a driver that refuses.
Result<std::unique_ptr<TimedKernel>> OpenCudaKernel(const std::string& library,
                                                    const std::string& uuid);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_CUDA_KERNEL_H_
