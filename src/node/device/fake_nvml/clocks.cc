// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The clocks of the fake NVML.

#include <algorithm>
#include <vector>

#include "device/fake_nvml/state.h"
#include "device/simulated/simulated_file.h"

using perseus::device::SimulatedCall;
using perseus::device::SimulatedGpus;
using perseus::device::SimulatedSnapshot;
using perseus::device::fake_nvml::WithCall;
using perseus::device::fake_nvml::WithGpu;
using perseus::device::fake_nvml::WithSnapshot;
using perseus::device::nvml::Device;
using perseus::device::nvml::Return;
namespace nvml = perseus::device::nvml;

namespace {

constexpr unsigned kMemoryMhz = 1593;

// NVML's way to return a list; it goes from the highest down.
Return CopyList(const std::vector<unsigned>& list, unsigned* count, unsigned* values) {
  if (count == nullptr) return nvml::kInvalidArgument;
  const bool fits = values != nullptr && *count >= list.size();
  *count = static_cast<unsigned>(list.size());
  if (!fits) return nvml::kInsufficientSize;
  std::copy(list.begin(), list.end(), values);
  return nvml::kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetSupportedMemoryClocks(Device device, unsigned* count,
                                                                unsigned* clocks) {
  return WithGpu(device, [&](SimulatedGpus& /*gpus*/, int /*gpu*/) {
    return CopyList({kMemoryMhz}, count, clocks);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetSupportedGraphicsClocks(Device device,
                                                                  unsigned memory_mhz,
                                                                  unsigned* count,
                                                                  unsigned* clocks) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    if (memory_mhz != kMemoryMhz) return nvml::kNotFound;
    const std::vector<int>& all = gpus.info(gpu).clocks_mhz;
    return CopyList(std::vector<unsigned>(all.rbegin(), all.rend()), count, clocks);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetMaxClockInfo(Device device, unsigned type,
                                                       unsigned* mhz) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    *mhz = type == nvml::kClockMemory ? kMemoryMhz
                                      : static_cast<unsigned>(gpus.info(gpu).clocks_mhz.back());
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetClockInfo(Device device, unsigned type, unsigned* mhz) {
  return WithSnapshot(device, SimulatedCall::kClock, [&](const SimulatedSnapshot& now) {
    *mhz = type == nvml::kClockMemory ? kMemoryMhz : static_cast<unsigned>(now.clock_mhz);
  });
}

// The highest clock of the range, as a busy GPU would take it.
PERSEUS_FAKE_NVML_API Return nvmlDeviceSetGpuLockedClocks(Device device, unsigned least,
                                                          unsigned most) {
  if (least > most || most > 1'000'000) return nvml::kInvalidArgument;
  return WithCall(device, SimulatedCall::kSetClock, [&](SimulatedGpus& gpus, int gpu) {
    const std::vector<int>& clocks = gpus.info(gpu).clocks_mhz;
    auto above = std::upper_bound(clocks.begin(), clocks.end(), static_cast<int>(most));
    if (above != clocks.begin()) --above;
    return gpus.LockClock(gpu, *above) ? nvml::kSuccess : nvml::kUnknown;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceResetGpuLockedClocks(Device device) {
  return WithCall(device, SimulatedCall::kResetClock, [&](SimulatedGpus& gpus, int gpu) {
    return gpus.ReleaseClock(gpu) ? nvml::kSuccess : nvml::kUnknown;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceSetMemoryLockedClocks(Device device, unsigned least,
                                                             unsigned most) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    if (least > most) return nvml::kInvalidArgument;
    if (gpus.refuses_sets(gpu)) return nvml::kNoPermission;
    gpus.shared(gpu).memory_clock_mhz = most;
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceResetMemoryLockedClocks(Device device) {
  return nvmlDeviceSetMemoryLockedClocks(device, 0, 0);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetCurrentClocksEventReasons(Device device,
                                                                    unsigned long long* reasons) {
  return WithSnapshot(device, SimulatedCall::kConditions, [&](const SimulatedSnapshot& now) {
    constexpr unsigned long long kIdle = 0x1;
    *reasons = now.busy ? 0 : kIdle;
    perseus::device::fake_nvml::WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
      *reasons |= gpus.config(gpu).throttle_reasons;
      return nvml::kSuccess;
    });
  });
}
PERSEUS_FAKE_NVML_API Return
nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

// NOLINTEND(readability-identifier-naming)
