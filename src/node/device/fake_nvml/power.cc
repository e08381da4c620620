// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Power, energy, limits and state of the fake NVML.

#include <cmath>
#include <cstdint>

#include "device/fake_nvml/state.h"
#include "device/simulated/simulated_file.h"

using perseus::device::SimulatedCall;
using perseus::device::SimulatedGpuConfig;
using perseus::device::SimulatedGpus;
using perseus::device::SimulatedSnapshot;
using perseus::device::fake_nvml::WithCall;
using perseus::device::fake_nvml::WithGpu;
using perseus::device::fake_nvml::WithSnapshot;
using perseus::device::nvml::CurrentPowerProfiles;
using perseus::device::nvml::Device;
using perseus::device::nvml::FieldValue;
using perseus::device::nvml::Return;
namespace nvml = perseus::device::nvml;

namespace {

// The range in which a limit can be set, around the default one.
constexpr double kLeastLimit = 0.25;
constexpr double kMostLimit = 1.0;

std::uint32_t Milli(double value) { return static_cast<std::uint32_t>(std::lround(value * 1e3)); }

// nvmlMemory_t
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
// nvmlUtilization_t
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
// nvmlTemperature_v1_t
struct Temperature {
  unsigned version;
  unsigned sensor;
  int celsius;
};

// For calls that fail only where the GPU is lost or an error is injected.
template <typename Body>
Return WithConfig(Device device, const Body& body) {
  return WithCall(device, SimulatedCall::kConditions, [&](SimulatedGpus& gpus, int gpu) {
    body(gpus.config(gpu));
    return nvml::kSuccess;
  });
}

Return FillField(SimulatedGpus& gpus, int gpu, const SimulatedSnapshot& now, FieldValue* field) {
  const nvml::SmoothingFields smoothing = nvml::SmoothingFieldsOf(580);
  const SimulatedGpuConfig& config = gpus.config(gpu);
  const bool smooths = !std::isnan(config.power_floor_watts);
  field->value_type = nvml::kTypeUnsigned;
  field->value = {};
  if (field->scope != 0) return nvml::kNotSupported;
  if (field->field == nvml::kFieldPowerInstant || field->field == nvml::kFieldPowerAverage) {
    field->value.ui = Milli(now.watts);
  } else if (field->field == nvml::kFieldTotalEnergy) {
    field->value_type = nvml::kTypeUnsignedLongLong;
    field->value.ull = static_cast<std::uint64_t>(now.counter_joules * 1e3);
  } else if (field->field == smoothing.enabled) {
    field->value.ui = smooths ? 1 : 0;
  } else if (field->field == smoothing.floor && smooths) {
    field->value.ui = static_cast<std::uint32_t>(std::lround(config.power_floor_watts));
  } else {
    return nvml::kNotSupported;
  }
  return nvml::kSuccess;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): NVML's names.

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetTotalEnergyConsumption(Device device,
                                                                 unsigned long long* millijoules) {
  return WithSnapshot(device, SimulatedCall::kEnergy, [&](const SimulatedSnapshot& now) {
    *millijoules = static_cast<unsigned long long>(now.counter_joules * 1e3);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetPowerUsage(Device device, unsigned* milliwatts) {
  return WithSnapshot(device, SimulatedCall::kPower,
                      [&](const SimulatedSnapshot& now) { *milliwatts = Milli(now.watts); });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetFieldValues(Device device, int count,
                                                      FieldValue* fields) {
  if (count < 0 || fields == nullptr) return nvml::kInvalidArgument;
  return WithCall(device, SimulatedCall::kPower, [&](SimulatedGpus& gpus, int gpu) {
    const auto now = gpus.Snapshot(gpu);
    if (!now) return nvml::kUnknown;
    for (int i = 0; i < count; ++i) fields[i].result = FillField(gpus, gpu, *now, &fields[i]);
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetPowerManagementLimit(Device device,
                                                               unsigned* milliwatts) {
  return WithCall(device, SimulatedCall::kConditions, [&](SimulatedGpus& gpus, int gpu) {
    *milliwatts = gpus.shared(gpu).power_limit_milliwatts;
    return nvml::kSuccess;
  });
}
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned* milliwatts) {
  return nvmlDeviceGetPowerManagementLimit(device, milliwatts);
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetPowerManagementDefaultLimit(Device device,
                                                                      unsigned* milliwatts) {
  return WithConfig(device, [&](const SimulatedGpuConfig& config) {
    *milliwatts = Milli(config.default_power_limit_watts);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetPowerManagementLimitConstraints(Device device,
                                                                          unsigned* least,
                                                                          unsigned* most) {
  return WithConfig(device, [&](const SimulatedGpuConfig& config) {
    *least = Milli(kLeastLimit * config.default_power_limit_watts);
    *most = Milli(kMostLimit * config.default_power_limit_watts);
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceSetPowerManagementLimit(Device device, unsigned milliwatts) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    const double standard = gpus.config(gpu).default_power_limit_watts;
    if (milliwatts < Milli(kLeastLimit * standard) || milliwatts > Milli(kMostLimit * standard)) {
      return nvml::kInvalidArgument;
    }
    if (gpus.refuses_sets(gpu)) return nvml::kNoPermission;
    gpus.shared(gpu).power_limit_milliwatts = milliwatts;
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetPersistenceMode(Device device, unsigned* mode) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    *mode = gpus.shared(gpu).persistence;
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceSetPersistenceMode(Device device, unsigned mode) {
  return WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
    if (mode > 1) return nvml::kInvalidArgument;
    if (gpus.refuses_sets(gpu)) return nvml::kNoPermission;
    gpus.shared(gpu).persistence = mode;
    return nvml::kSuccess;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetTemperature(Device device, unsigned sensor,
                                                      unsigned* celsius) {
  if (sensor != nvml::kTemperatureGpu) return nvml::kInvalidArgument;
  return WithConfig(device, [&](const SimulatedGpuConfig& config) {
    *celsius = static_cast<unsigned>(std::lround(std::fmax(0, config.temperature_celsius)));
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetTemperatureV(Device device, Temperature* temperature) {
  if (temperature->version != nvml::VersionOf<Temperature>(1)) {
    return nvml::kArgumentVersionMismatch;
  }
  return WithConfig(device, [&](const SimulatedGpuConfig& config) {
    temperature->celsius = static_cast<int>(std::lround(config.temperature_celsius));
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetMigMode(Device device, unsigned* current,
                                                  unsigned* pending) {
  return WithConfig(device, [&](const SimulatedGpuConfig& config) {
    *current = *pending = static_cast<unsigned>(config.mig);
  });
}

PERSEUS_FAKE_NVML_API Return
nvmlDeviceWorkloadPowerProfileGetCurrentProfiles(Device device, CurrentPowerProfiles* profiles) {
  if (profiles->version != nvml::VersionOf<CurrentPowerProfiles>(1)) {
    return nvml::kArgumentVersionMismatch;
  }
  return WithConfig(device, [&](const SimulatedGpuConfig& config) {
    profiles->requested = profiles->enforced = config.power_profiles;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  return WithSnapshot(device, SimulatedCall::kConditions, [&](const SimulatedSnapshot& now) {
    rates->gpu = now.busy ? 100 : 0;
    rates->memory = 0;
  });
}

PERSEUS_FAKE_NVML_API Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return WithConfig(device, [&](const SimulatedGpuConfig& /*config*/) {
    constexpr unsigned long long kBytes = 80ULL << 30;
    *memory = {kBytes, kBytes, 0};
  });
}

// No Grace Hopper. Zeus asks.
PERSEUS_FAKE_NVML_API Return nvmlDeviceGetC2cModeInfoV(Device device, void* /*info*/) {
  return WithGpu(device, [](SimulatedGpus& /*gpus*/, int /*gpu*/) { return nvml::kNotSupported; });
}

// NOLINTEND(readability-identifier-naming)
