// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "device/nvml/nvml.h"

namespace perseus::device {
namespace {

struct ErrorName {
  nvml::Return code;
  const char* name;
  const char* why;  // What it means, and what to do.
};

constexpr const char* kNoPermissionSentence =
    "this process lacks the right; GPU clocks are set by root or with CAP_SYS_ADMIN. Run 'perseus "
    "agent' as root on the node and use --driver agent:SOCKET, or give this process the capability";

constexpr ErrorName kErrorNames[] = {
    {nvml::kUninitialized, "uninitialized", "the driver was unloaded; start the program again"},
    {nvml::kInvalidArgument, "invalid_argument", "the driver refuses the value"},
    {nvml::kNotSupported, "not_supported", "this GPU does not offer it"},
    {nvml::kNoPermission, "no_permission", kNoPermissionSentence},
    {nvml::kNotFound, "not_found", "the driver does not know it"},
    {nvml::kDriverNotLoaded, "driver_not_loaded",
     "the NVIDIA driver is not loaded; run 'nvidia-smi' and see 'dmesg'"},
    {nvml::kTimeout, "timeout", "the driver did not answer in time; try again"},
    {nvml::kGpuIsLost, "gpu_is_lost",
     "the GPU fell off the bus; see 'dmesg' for an Xid error, then reset it or restart the node"},
    {nvml::kResetRequired, "reset_required", "the GPU must be reset ('nvidia-smi --gpu-reset')"},
    {nvml::kOperatingSystem, "operating_system", "the operating system refused; see 'dmesg'"},
    {nvml::kVersionMismatch, "version_mismatch",
     "library and kernel module of the NVIDIA driver differ in version, as after an update; "
     "restart the node"},
    {nvml::kInUse, "in_use", "another program has the GPU to itself"},
    {nvml::kNoData, "no_data", "the driver has no value now"},
    {nvml::kNotReady, "not_ready", "the driver is not ready; try again"},
    {nvml::kUnknown, "unknown", "the driver gives no reason; see 'dmesg'"},
};

constexpr std::array<const char*, 26> kProfileNames = {
    "MAX_P",
    "MAX_Q",
    "COMPUTE",
    "MEMORY_BOUND",
    "NETWORK",
    "BALANCED",
    "LLM_INFERENCE",
    "LLM_TRAINING",
    "RBM",
    "DCPCIE",
    "HMMA_SPARSE",
    "HMMA_DENSE",
    "SYNC_BALANCED",
    "HPC",
    "MIG",
    "MAX_Q_1",
    "NETWORK_BOUND",
    "HIGH_THROUGHPUT_INFERENCE",
    "MEDIUM_THROUGHPUT_INFERENCE",
    "LOW_LATENCY_INFERENCE",
    "TRAINING",
    "INFERENCE",
    "MAX_Q_2",
    "MAX_Q_3",
    "LOW_PRIORITY_BACKGROUND",
    "MAX",
};

}  // namespace

std::optional<nvml::Return> NvmlErrorByName(std::string_view name) {
  for (const ErrorName& each : kErrorNames) {
    if (name == each.name) return each.code;
  }
  return std::nullopt;
}

std::vector<std::string> NvmlErrorNames() {
  std::vector<std::string> names;
  for (const ErrorName& each : kErrorNames) names.emplace_back(each.name);
  return names;
}

Error NvmlError(nvml::Return code, std::string_view doing) {
  const ErrorCode kind = code == nvml::kNoPermission ? ErrorCode::kDenied : ErrorCode::kIo;
  for (const ErrorName& each : kErrorNames) {
    if (code == each.code) return {kind, fmt::format("{} failed: {}", doing, each.why)};
  }
  return {kind, fmt::format("{} failed: the NVIDIA driver returned error {}", doing, code)};
}

std::string PowerProfileName(unsigned profile) {
  if (profile < kProfileNames.size()) return kProfileNames[profile];
  return fmt::format("profile {}", profile);
}

std::optional<unsigned> PowerProfileByName(std::string_view name) {
  for (std::size_t i = 0; i < kProfileNames.size(); ++i) {
    if (name == kProfileNames[i]) return static_cast<unsigned>(i);
  }
  return std::nullopt;
}

}  // namespace perseus::device
