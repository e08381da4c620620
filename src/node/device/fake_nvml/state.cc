// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/fake_nvml/state.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "common/mutex.h"

namespace perseus::device::fake_nvml {
namespace {

struct State {
  Mutex mutex;
  int starts PERSEUS_GUARDED_BY(mutex) = 0;
  std::unique_ptr<SimulatedGpus> gpus PERSEUS_GUARDED_BY(mutex);
};

State& Global() {
  static State state;
  return state;
}

std::array<char, kMaxSimulatedGpus>& Handles() {
  static std::array<char, kMaxSimulatedGpus> handles;
  return handles;
}

}  // namespace

nvml::Return Start() {
  State& state = Global();
  const MutexLock lock(state.mutex);
  if (state.starts == 0) {
    const char* path = std::getenv(kFileVariable);
    if (path == nullptr) return nvml::kDriverNotLoaded;
    auto gpus = SimulatedGpus::Open(path);
    if (!gpus) return nvml::kDriverNotLoaded;
    state.gpus = *std::move(gpus);
  }
  ++state.starts;
  return nvml::kSuccess;
}

nvml::Return Stop() {
  State& state = Global();
  const MutexLock lock(state.mutex);
  if (state.starts == 0) return nvml::kUninitialized;
  if (--state.starts == 0) state.gpus.reset();
  return nvml::kSuccess;
}

SimulatedGpus* Gpus() {
  State& state = Global();
  const MutexLock lock(state.mutex);
  return state.gpus.get();
}

nvml::Device HandleOf(int gpu) { return &Handles()[static_cast<std::size_t>(gpu)]; }

int IndexOf(nvml::Device device) {
  const auto first = reinterpret_cast<std::uintptr_t>(Handles().data());
  const auto at = reinterpret_cast<std::uintptr_t>(device);
  return at >= first && at < first + Handles().size() ? static_cast<int>(at - first) : -1;
}

}  // namespace perseus::device::fake_nvml
