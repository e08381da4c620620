// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any bytes as a configuration of simulated GPUs: an error or GPUs within every
// limit, never a crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "device/simulated/simulated_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using perseus::device::kMaxSimulatedClocks;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = perseus::device::ParseSimulatedConfig(text, "fuzz", "fuzz");
  if (!config) return 0;
  const bool good = !config->gpus.empty() &&
                    config->gpus.size() <= perseus::device::kMaxSimulatedGpus &&
                    config->time_scale > 0;
  if (!good) std::abort();
  for (const auto& gpu : config->gpus) {
    const auto& model = gpu.model;
    if (model.clock_count < 1 || model.clock_count > kMaxSimulatedClocks) std::abort();
    for (std::int32_t i = 1; i < model.clock_count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (model.clocks_mhz[at] <= model.clocks_mhz[at - 1]) std::abort();
    }
    if (gpu.uuid.back() != '\0' || gpu.name.back() != '\0' || !(gpu.slowdown > 0)) std::abort();
  }
  return 0;
}
