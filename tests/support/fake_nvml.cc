// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A libnvidia-ml.so.1 over simulated GPUs, for LD_LIBRARY_PATH or dlopen. Names, arguments and
// return codes are those of NVIDIA's nvml.h. C has no object that could own the GPUs: NVML's own
// ABI is one state per process.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/mutex.h"
#include "device/nvml/nvml.h"
#include "device/simulated/simulated_gpu.h"

#define PERSEUS_FAKE_NVML_API extern "C" __attribute__((visibility("default")))

namespace perseus::device {
namespace {

using nvml::CurrentPowerProfiles;
using nvml::Device;
using nvml::FieldValue;
using nvml::Return;

// The environment variable that names the file of the simulated GPUs.
constexpr const char* kFileVariable = "PERSEUS_FAKE_NVML";

struct State {
  Mutex mutex;
  int starts PERSEUS_GUARDED_BY(mutex) = 0;
  std::unique_ptr<SimulatedGpus> gpus PERSEUS_GUARDED_BY(mutex);
};

State& Global() {
  static State state;
  return state;
}

// A handle is the address of one of these.
std::array<char, kMaxSimulatedGpus>& Handles() {
  static std::array<char, kMaxSimulatedGpus> handles;
  return handles;
}

// nvmlInit and nvmlShutdown count.
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

// The GPUs; null before Start and after the last Stop. Not to be called while another thread is in
// Stop, as with NVML.
SimulatedGpus* Gpus() {
  State& state = Global();
  const MutexLock lock(state.mutex);
  return state.gpus.get();
}

nvml::Device HandleOf(int gpu) { return &Handles()[static_cast<std::size_t>(gpu)]; }

// -1: no handle of ours.
int IndexOf(nvml::Device device) {
  const auto first = reinterpret_cast<std::uintptr_t>(Handles().data());
  const auto at = reinterpret_cast<std::uintptr_t>(device);
  return at >= first && at < first + Handles().size() ? static_cast<int>(at - first) : -1;
}

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

nvml::Return CopyText(std::string_view text, char* target, unsigned size) {
  if (target == nullptr) return nvml::kInvalidArgument;
  if (text.size() + 1 > size) return nvml::kInsufficientSize;
  std::copy(text.begin(), text.end(), target);
  target[text.size()] = '\0';
  return nvml::kSuccess;
}

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

PERSEUS_FAKE_NVML_API Return nvmlInit_v2() { return Start(); }
PERSEUS_FAKE_NVML_API Return nvmlInit() { return nvmlInit_v2(); }
PERSEUS_FAKE_NVML_API Return nvmlInitWithFlags(unsigned /*flags*/) { return nvmlInit_v2(); }
PERSEUS_FAKE_NVML_API Return nvmlShutdown() { return Stop(); }

PERSEUS_FAKE_NVML_API const char* nvmlErrorString(Return code) {
  // Kept for as long as the library: the caller owns nothing.
  static thread_local std::string text;
  text = code == nvml::kSuccess ? "Success" : fmt::format("Error {}", code);
  for (const std::string& name : NvmlErrorNames()) {
    if (NvmlErrorByName(name) == code) text = name;
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
    WithGpu(device, [&](SimulatedGpus& gpus, int gpu) {
      *reasons |= gpus.config(gpu).throttle_reasons;
      return nvml::kSuccess;
    });
  });
}
PERSEUS_FAKE_NVML_API Return
nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* reasons) {
  return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}

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

}  // namespace perseus::device
