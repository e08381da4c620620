// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_NVML_NVML_NAMES_H_
#define PERSEUS_DEVICE_NVML_NVML_NAMES_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/nvml/nvml_abi.h"
#include "perseus/result.h"

namespace perseus::device {

// "no_permission" for NVML_ERROR_NO_PERMISSION; a name is what a simulated GPU's
// configuration gives.
std::optional<nvml::Return> NvmlErrorByName(std::string_view name);
std::vector<std::string> NvmlErrorNames();

// A sentence for people: what failed ("locking the clock of GPU 3"), why, what
// to do. kDenied where a right is missing, else kIo.
Error NvmlError(nvml::Return code, std::string_view doing);

// "LLM_TRAINING" for NVML_POWER_PROFILE_LLM_TRAINING; "profile 90" where newer.
std::string PowerProfileName(unsigned profile);
std::optional<unsigned> PowerProfileByName(std::string_view name);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_NVML_NVML_NAMES_H_
