// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_CUDA_KERNEL_H_
#define PERSEUS_DEVICE_CUDA_KERNEL_H_

#include <memory>
#include <string>
#include <string_view>

#include "device/timed_kernel.h"
#include "perseus/result.h"

namespace perseus::device {

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
