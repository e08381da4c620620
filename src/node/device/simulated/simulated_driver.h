// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_DRIVER_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_DRIVER_H_

#include <memory>
#include <string>

#include "device/device.h"
#include "perseus/result.h"

namespace perseus::device {

// The driver of the GPUs in this file (device/simulated/simulated_gpu.h), which fails where
// their configuration says so. Errors: those of SimulatedGpus::Open.
Result<std::unique_ptr<Driver>> OpenSimulatedDriver(const std::string& path);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_SIMULATED_SIMULATED_DRIVER_H_
