// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_SIMULATED_SIMULATED_CONFIG_H_
#define PERSEUS_DEVICE_SIMULATED_SIMULATED_CONFIG_H_

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "device/nvml/nvml.h"
#include "device/simulated/simulated_model.h"
#include "perseus/result.h"

namespace perseus::device {

inline constexpr int kMaxSimulatedGpus = 256;
// Below the highest clock a busy GPU draws idle + (busy - idle) x (clock / highest)^2.2:
// about what the published curves of A100 and H100 do. Above it, where it boosts, the same.
inline constexpr double kPowerExponent = 2.2;
inline constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Calls in which an error can be injected.
enum class SimulatedCall : std::uint8_t {
  kSetClock,
  kResetClock,
  kClock,
  kEnergy,
  kPower,
  kConditions,
};
inline constexpr int kSimulatedCalls = 6;

// Every nth call of a kind fails.
struct InjectedError {
  std::int32_t every = 0;  // 0: never.
  nvml::Return code = nvml::kSuccess;
};

// One GPU as configured, in plain bytes.
struct SimulatedGpuConfig {
  ModelGpu model;
  std::array<char, 64> uuid = {};  // Ends with a NUL, as `name` does.
  std::array<char, 96> name = {};
  double power_limit_watts = 400;  // At first.
  double default_power_limit_watts = 400;
  double temperature_celsius = 45;
  double power_floor_watts = kNoValue;  // NaN: no power smoothing.
  std::uint64_t throttle_reasons = 0;
  std::int32_t capped = 0;  // Kernels run slower where they would draw more than the power limit.
  nvml::Mask255 power_profiles;
  std::int32_t mig = 0;
  // As it begins; can change.
  std::int32_t refuse_sets = 0;
  std::int32_t lost = 0;
  double slowdown = 1;
  std::array<InjectedError, kSimulatedCalls> errors = {};
};

struct SimulatedConfig {
  double time_scale = 1;
  bool serial_calls = false;  // Calls that set a clock wait for those of other GPUs.
  std::vector<SimulatedGpuConfig> gpus;
};

// Reads a configuration (docs/how-to/simulated-gpus.md). `uuid_stem` goes into the uuids
// that it does not give. Errors: kInvalidInput, with the place.
Result<SimulatedConfig> ParseSimulatedConfig(std::string_view text, const std::string& name,
                                             std::string_view uuid_stem);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_SIMULATED_SIMULATED_CONFIG_H_
