// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_NVML_NVML_LIBRARY_H_
#define PERSEUS_DEVICE_NVML_NVML_LIBRARY_H_

#include <memory>
#include <string>

#include "device/nvml/nvml_abi.h"
#include "perseus/result.h"

namespace perseus::device {

// NVML's functions, by the names of nvml.h without their suffix: the newest
// version that the library has and whose arguments are these. Null: it has none.
// There is none here that sets memory clocks or power limits.
struct NvmlFunctions {
  nvml::Return (*init)() = nullptr;
  nvml::Return (*shutdown)() = nullptr;
  nvml::Return (*get_driver_version)(char*, unsigned) = nullptr;
  nvml::Return (*device_get_count)(unsigned*) = nullptr;
  nvml::Return (*device_get_handle_by_index)(unsigned, nvml::Device*) = nullptr;
  nvml::Return (*device_get_name)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*device_get_uuid)(nvml::Device, char*, unsigned) = nullptr;

  nvml::Return (*get_memory_clocks)(nvml::Device, unsigned*, unsigned*) = nullptr;
  nvml::Return (*get_graphics_clocks)(nvml::Device, unsigned, unsigned*, unsigned*) = nullptr;
  nvml::Return (*get_max_clock)(nvml::Device, unsigned, unsigned*) = nullptr;
  nvml::Return (*get_clock)(nvml::Device, unsigned, unsigned*) = nullptr;
  nvml::Return (*set_locked_clocks)(nvml::Device, unsigned, unsigned) = nullptr;
  nvml::Return (*reset_locked_clocks)(nvml::Device) = nullptr;

  nvml::Return (*get_energy)(nvml::Device, unsigned long long*) = nullptr;
  nvml::Return (*get_power)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*get_enforced_limit)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*get_default_limit)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*get_temperature)(nvml::Device, unsigned, unsigned*) = nullptr;
  nvml::Return (*get_throttle_reasons)(nvml::Device, unsigned long long*) = nullptr;
  nvml::Return (*get_mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
  nvml::Return (*get_field_values)(nvml::Device, int, nvml::FieldValue*) = nullptr;
  nvml::Return (*get_power_profiles)(nvml::Device, nvml::CurrentPowerProfiles*) = nullptr;
};

// A loaded and initialised library; shut down and unloaded with the object, but
// not in a child that was forked. Immutable.
class NvmlLibrary {
 public:
  // `path` empty: libnvidia-ml.so.1. Errors: kIo, kDenied.
  static Result<std::shared_ptr<const NvmlLibrary>> Load(const std::string& path);

  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();

  const NvmlFunctions& functions() const { return functions_; }
  // 580 of "580.82.07"; 0: it does not tell.
  int driver_branch() const { return driver_branch_; }
  // Whether this is the process that loaded it. NVML's handles are connections to
  // the driver, which a child cannot use.
  bool InOwnProcess() const;

 private:
  explicit NvmlLibrary(void* handle);

  void* handle_;
  NvmlFunctions functions_;
  int process_;
  int driver_branch_ = 0;
  bool initialised_ = false;
};

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_NVML_NVML_LIBRARY_H_
