// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_FAKE_NVML_STATE_H_
#define PERSEUS_DEVICE_FAKE_NVML_STATE_H_

#include <algorithm>
#include <cstring>
#include <string_view>

#include "device/nvml/nvml_abi.h"
#include "device/simulated/simulated_gpu.h"

// What a function of NVML is to everybody: C, and visible.
#define PERSEUS_FAKE_NVML_API extern "C" __attribute__((visibility("default")))

namespace perseus::device::fake_nvml {

// The environment variable that names the file of the simulated GPUs.
inline constexpr const char* kFileVariable = "PERSEUS_FAKE_NVML";

// nvmlInit and nvmlShutdown, which count.
nvml::Return Start();
nvml::Return Stop();

// The GPUs; null before Start and after the last Stop. C has no object that could
// own them: NVML's own ABI is one state per process. Not to be called while
// another thread is in Stop, as with NVML.
SimulatedGpus* Gpus();

// A handle is the address of one of these.
nvml::Device HandleOf(int gpu);
// -1: no handle of ours.
int IndexOf(nvml::Device device);

// Runs `body`(gpus, index) for a good handle: all that device functions share.
template <typename Body>
nvml::Return WithGpu(nvml::Device device, const Body& body) {
  SimulatedGpus* gpus = Gpus();
  if (gpus == nullptr) return nvml::kUninitialized;
  const int index = IndexOf(device);
  if (index < 0 || index >= gpus->count()) return nvml::kInvalidArgument;
  return body(*gpus, index);
}

// The same for a call in which the configuration may inject an error.
template <typename Body>
nvml::Return WithCall(nvml::Device device, SimulatedCall call, const Body& body) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int index) {
    const nvml::Return code = gpus.CountCall(index, call);
    return code == nvml::kSuccess ? body(gpus, index) : code;
  });
}

// The same for what the snapshot of a GPU tells.
template <typename Body>
nvml::Return WithSnapshot(nvml::Device device, SimulatedCall call, const Body& body) {
  return WithCall(device, call, [&](SimulatedGpus& gpus, int index) {
    const Result<SimulatedSnapshot> now = gpus.Snapshot(index);
    if (!now) return nvml::kUnknown;
    body(*now);
    return nvml::kSuccess;
  });
}

inline nvml::Return CopyText(std::string_view text, char* target, unsigned size) {
  if (target == nullptr) return nvml::kInvalidArgument;
  if (text.size() + 1 > size) return nvml::kInsufficientSize;
  std::copy(text.begin(), text.end(), target);
  target[text.size()] = '\0';
  return nvml::kSuccess;
}

}  // namespace perseus::device::fake_nvml

#endif  // PERSEUS_DEVICE_FAKE_NVML_STATE_H_
