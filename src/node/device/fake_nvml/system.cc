// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A libnvidia-ml.so.1 over simulated GPUs: the library itself and finding GPUs.
// Names, arguments and return codes are those of NVIDIA's nvml.h.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "device/fake_nvml/state.h"
#include "device/nvml/nvml_names.h"

using perseus::device::SimulatedGpus;
using perseus::device::fake_nvml::CopyText;
using perseus::device::fake_nvml::Gpus;
using perseus::device::fake_nvml::HandleOf;
using perseus::device::fake_nvml::WithGpu;
using perseus::device::nvml::Device;
using perseus::device::nvml::Return;
namespace nvml = perseus::device::nvml;

namespace {

constexpr const char* kDriverVersion = "580.00.00";

std::string BusId(int gpu) { return fmt::format("00000000:{:02X}:00.0", gpu + 1); }

Return FindGpu(Device* device, const char* text, std::string (*name)(SimulatedGpus&, int)) {
  SimulatedGpus* gpus = Gpus();
  if (gpus == nullptr) return nvml::kUninitialized;
  if (device == nullptr || text == nullptr) return nvml::kInvalidArgument;
  for (int gpu = 0; gpu < gpus->count(); ++gpu) {
    if (name(*gpus, gpu) == text) {
      *device = HandleOf(gpu);
      return nvml::kSuccess;
    }
  }
  return nvml::kNotFound;
}

// nvmlPciInfo_t
struct PciInfo {
  std::array<char, 16> legacy_bus_id;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  std::array<char, 32> bus_id;
};

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

PERSEUS_FAKE_NVML_API Return nvmlInit_v2() { return perseus::device::fake_nvml::Start(); }
PERSEUS_FAKE_NVML_API Return nvmlInit() { return nvmlInit_v2(); }
PERSEUS_FAKE_NVML_API Return nvmlInitWithFlags(unsigned /*flags*/) { return nvmlInit_v2(); }
PERSEUS_FAKE_NVML_API Return nvmlShutdown() { return perseus::device::fake_nvml::Stop(); }

PERSEUS_FAKE_NVML_API const char* nvmlErrorString(Return code) {
  // Kept for as long as the library: the caller owns nothing.
  static thread_local std::string text;
  text = code == nvml::kSuccess ? "Success" : fmt::format("Error {}", code);
  for (const std::string& name : perseus::device::NvmlErrorNames()) {
    if (perseus::device::NvmlErrorByName(name) == code) text = name;
  }
  return text.c_str();
}

PERSEUS_FAKE_NVML_API Return nvmlSystemGetDriverVersion(char* version, unsigned size) {
  if (Gpus() == nullptr) return nvml::kUninitialized;
  return CopyText(kDriverVersion, version, size);
}

PERSEUS_FAKE_NVML_API Return nvmlSystemGetNVMLVersion(char* version, unsigned size) {
  if (Gpus() == nullptr) return nvml::kUninitialized;
  return CopyText("13.580.00", version, size);
}

PERSEUS_FAKE_NVML_API Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (Gpus() == nullptr) return nvml::kUninitialized;
  if (version == nullptr) return nvml::kInvalidArgument;
  *version = 13000;
  return nvml::kSuccess;
}
PERSEUS_FAKE_NVML_API Return nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetCount_v2(unsigned* count) {
  if (Gpus() == nullptr) return nvml::kUninitialized;
  if (count == nullptr) return nvml::kInvalidArgument;
  *count = static_cast<unsigned>(Gpus()->count());
  return nvml::kSuccess;
}
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetCount(unsigned* count) {
  return nvmlDeviceGetCount_v2(count);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (Gpus() == nullptr) return nvml::kUninitialized;
  if (device == nullptr || index >= static_cast<unsigned>(Gpus()->count())) {
    return nvml::kInvalidArgument;
  }
  *device = HandleOf(static_cast<int>(index));
  return nvml::kSuccess;
}
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  return FindGpu(device, uuid, [](SimulatedGpus& gpus, int gpu) { return gpus.info(gpu).uuid; });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetHandleByPciBusId_v2(const char* id, Device* device) {
  return FindGpu(device, id, [](SimulatedGpus& /*gpus*/, int gpu) { return BusId(gpu); });
}
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetHandleByPciBusId(const char* id, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(id, device);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetIndex(Device device, unsigned* index) {
  return WithGpu(device, [&](SimulatedGpus& /*gpus*/, int gpu) {
    *index = static_cast<unsigned>(gpu);
    return nvml::kSuccess;
  });
}
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetMinorNumber(Device device, unsigned* number) {
  return nvmlDeviceGetIndex(device, number);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetName(Device device, char* name, unsigned size) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    return CopyText(gpus.info(gpu).name, name, size);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetUUID(Device device, char* uuid, unsigned size) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    return CopyText(gpus.info(gpu).uuid, uuid, size);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetPciInfo_v3(Device device, PciInfo* info) {
  return WithGpu(device, [&](SimulatedGpus& /*gpus*/, int gpu) {
    *info = {};
    info->bus = static_cast<unsigned>(gpu) + 1;
    const std::string id = BusId(gpu);
    // The older form has a shorter domain.
    CopyText(id.substr(4), info->legacy_bus_id.data(), info->legacy_bus_id.size());
    return CopyText(id, info->bus_id.data(), info->bus_id.size());
  });
}

// An Ampere GPU, whatever it is called.
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetCudaComputeCapability(Device device, int* major,
                                                                int* minor) {
  return WithGpu(device, [&](SimulatedGpus& /*gpus*/, int /*gpu*/) {
    *major = 8;
    *minor = 0;
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetArchitecture(Device device, unsigned* architecture) {
  return WithGpu(device, [&](SimulatedGpus& /*gpus*/, int /*gpu*/) {
    *architecture = 7;  // NVML_DEVICE_ARCH_AMPERE
    return nvml::kSuccess;
  });
}

// NOLINTEND(readability-identifier-naming)
