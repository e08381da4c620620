// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// An NVML as old as can be: no version suffixes, nothing that came later, two
// GPUs of which the second is lost. Loaded by nvml_driver_test.

#include <cstring>

#define OLD_NVML_API extern "C" __attribute__((visibility("default")))

namespace {
int gpu = 0;  // Its address is the handle.
}  // namespace

OLD_NVML_API int nvmlInit() { return 0; }
OLD_NVML_API int nvmlShutdown() { return 0; }
OLD_NVML_API int nvmlDeviceGetCount(unsigned* count) {
  *count = 2;
  return 0;
}
OLD_NVML_API int nvmlDeviceGetHandleByIndex(unsigned index, void** device) {
  *device = &gpu;
  return index == 0 ? 0 : 15;  // NVML_ERROR_GPU_IS_LOST
}
OLD_NVML_API int nvmlDeviceGetName(void* /*device*/, char* name, unsigned /*size*/) {
  std::strcpy(name, "Old GPU");
  return 0;
}
OLD_NVML_API int nvmlDeviceGetUUID(void* /*device*/, char* uuid, unsigned /*size*/) {
  std::strcpy(uuid, "GPU-old");
  return 0;
}
OLD_NVML_API int nvmlDeviceGetMaxClockInfo(void* /*device*/, unsigned /*type*/, unsigned* mhz) {
  *mhz = 1380;
  return 0;
}
OLD_NVML_API int nvmlDeviceGetPowerUsage(void* /*device*/, unsigned* milliwatts) {
  *milliwatts = 41'500;
  return 0;
}
OLD_NVML_API int nvmlDeviceSetGpuLockedClocks(void* /*device*/, unsigned /*least*/,
                                              unsigned /*most*/) {
  return 4;  // NVML_ERROR_NO_PERMISSION
}
