// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_KERNEL_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_KERNEL_H_

#include <memory>

#include "device/simulated/simulated_gpu.h"
#include "device/timed_kernel.h"

namespace perseus::device {

// Work on a simulated GPU: a kernel whose length follows the clock, or a transfer, which does not.
// `gpus` must outlive it.
std::unique_ptr<TimedKernel> MakeSimulatedKernel(SimulatedGpus* gpus, int gpu, SimulatedWork work);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_SIMULATED_SIMULATED_KERNEL_H_
