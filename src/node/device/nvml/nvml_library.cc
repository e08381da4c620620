// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/nvml/nvml_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <initializer_list>
#include <string_view>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "device/nvml/nvml_names.h"

namespace perseus::device {
namespace {

// The first of `names` that the library has.
template <typename Function>
void Find(void* handle, std::initializer_list<const char*> names, Function* function) {
  for (const char* name : names) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    if (*function != nullptr) return;
  }
}

NvmlFunctions FindAll(void* handle) {
  NvmlFunctions all;
  Find(handle, {"nvmlInit_v2", "nvmlInit"}, &all.init);
  Find(handle, {"nvmlShutdown"}, &all.shutdown);
  Find(handle, {"nvmlSystemGetDriverVersion"}, &all.get_driver_version);
  Find(handle, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}, &all.device_get_count);
  Find(handle, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
       &all.device_get_handle_by_index);
  Find(handle, {"nvmlDeviceGetName"}, &all.device_get_name);
  Find(handle, {"nvmlDeviceGetUUID"}, &all.device_get_uuid);
  Find(handle, {"nvmlDeviceGetSupportedMemoryClocks"}, &all.get_memory_clocks);
  Find(handle, {"nvmlDeviceGetSupportedGraphicsClocks"}, &all.get_graphics_clocks);
  Find(handle, {"nvmlDeviceGetMaxClockInfo"}, &all.get_max_clock);
  Find(handle, {"nvmlDeviceGetClockInfo"}, &all.get_clock);
  Find(handle, {"nvmlDeviceSetGpuLockedClocks"}, &all.set_locked_clocks);
  Find(handle, {"nvmlDeviceResetGpuLockedClocks"}, &all.reset_locked_clocks);
  Find(handle, {"nvmlDeviceGetTotalEnergyConsumption"}, &all.get_energy);
  Find(handle, {"nvmlDeviceGetPowerUsage"}, &all.get_power);
  Find(handle, {"nvmlDeviceGetEnforcedPowerLimit"}, &all.get_enforced_limit);
  Find(handle, {"nvmlDeviceGetPowerManagementDefaultLimit"}, &all.get_default_limit);
  Find(handle, {"nvmlDeviceGetTemperature"}, &all.get_temperature);
  Find(handle,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
       &all.get_throttle_reasons);
  Find(handle, {"nvmlDeviceGetMigMode"}, &all.get_mig_mode);
  Find(handle, {"nvmlDeviceGetFieldValues"}, &all.get_field_values);
  Find(handle, {"nvmlDeviceWorkloadPowerProfileGetCurrentProfiles"}, &all.get_power_profiles);
  return all;
}

bool HasWhatIsNeeded(const NvmlFunctions& all) {
  return all.init != nullptr && all.shutdown != nullptr && all.device_get_count != nullptr &&
         all.device_get_handle_by_index != nullptr && all.device_get_name != nullptr &&
         all.device_get_uuid != nullptr;
}

int DriverBranch(const NvmlFunctions& functions) {
  std::array<char, 80> version = {};
  constexpr auto kSize = static_cast<unsigned>(version.size() - 1);
  if (functions.get_driver_version == nullptr ||
      functions.get_driver_version(version.data(), kSize) != nvml::kSuccess) {
    return 0;
  }
  const std::string_view text = version.data();
  return ParseInteger<int>(text.substr(0, text.find('.'))).value_or(0);
}

}  // namespace

NvmlLibrary::NvmlLibrary(void* handle)
    : handle_(handle), functions_(FindAll(handle)), process_(getpid()) {}

NvmlLibrary::~NvmlLibrary() {
  if (!InOwnProcess()) return;  // The parent's connection: neither ours to close nor to unload.
  if (initialised_) functions_.shutdown();
  dlclose(handle_);
}

bool NvmlLibrary::InOwnProcess() const { return getpid() == process_; }

Result<std::shared_ptr<const NvmlLibrary>> NvmlLibrary::Load(const std::string& path) {
  const std::string name = path.empty() ? "libnvidia-ml.so.1" : path;
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return MakeError(
        ErrorCode::kIo,
        fmt::format("cannot load NVIDIA's library {}: {}. It comes with the NVIDIA driver; a "
                    "container sees it when it is started with its GPUs ('--gpus all')",
                    Shown(name), why != nullptr ? why : "no reason given"));
  }
  std::shared_ptr<NvmlLibrary> library(new NvmlLibrary(handle));
  if (!HasWhatIsNeeded(library->functions_)) {
    return MakeError(ErrorCode::kIo, fmt::format("{} is no NVML: it lacks functions that every "
                                                 "version has",
                                                 Shown(name)));
  }
  const nvml::Return code = library->functions_.init();
  if (code != nvml::kSuccess) return tl::unexpected(NvmlError(code, "starting NVML"));
  library->initialised_ = true;
  library->driver_branch_ = DriverBranch(library->functions_);
  return library;
}

}  // namespace perseus::device
