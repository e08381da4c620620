// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_NVML_NVML_DRIVER_H_
#define PERSEUS_DEVICE_NVML_NVML_DRIVER_H_

#include <memory>
#include <string>

#include "device/device.h"
#include "perseus/result.h"

namespace perseus::device {

// NVIDIA's GPUs through the NVML in `path` (empty: where the loader finds it).
// Errors: kIo (no library, no driver, no GPU), kDenied.
Result<std::unique_ptr<Driver>> OpenNvmlDriver(const std::string& path);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_NVML_NVML_DRIVER_H_
