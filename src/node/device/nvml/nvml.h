// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_NVML_NVML_H_
#define PERSEUS_DEVICE_NVML_NVML_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.h"
#include "perseus/result.h"

// The part of NVML's C ABI that Perseus uses, declared by itself: building needs
// no CUDA. Numbers and layouts as in NVIDIA's nvml.h (and its Python twin,
// nvidia-ml-py 13.615), which promises to keep them; functions and structures
// that changed have a suffix or a version inside.
namespace perseus::device::nvml {

using Device = void*;
using Return = std::int32_t;

inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kInvalidArgument = 2;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;
inline constexpr Return kInsufficientSize = 7;
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kTimeout = 10;
inline constexpr Return kGpuIsLost = 15;
inline constexpr Return kResetRequired = 16;
inline constexpr Return kOperatingSystem = 17;
inline constexpr Return kVersionMismatch = 18;
inline constexpr Return kInUse = 19;
inline constexpr Return kNoData = 21;
inline constexpr Return kArgumentVersionMismatch = 25;
inline constexpr Return kNotReady = 27;
inline constexpr Return kUnknown = 999;

inline constexpr unsigned kClockSm = 1;  // nvmlClockType_t
inline constexpr unsigned kClockMemory = 2;
inline constexpr unsigned kTemperatureGpu = 0;  // nvmlTemperatureSensors_t

inline constexpr unsigned kNameSize = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE
inline constexpr unsigned kPowerProfiles = 255;

// nvmlFieldValue_t
union Value {
  double d;
  std::uint32_t ui;
  std::uint64_t ull;
  std::int64_t sll;
};
struct FieldValue {
  std::uint32_t field = 0;
  std::uint32_t scope = 0;
  std::int64_t timestamp_us = 0;
  std::int64_t latency_us = 0;
  std::uint32_t value_type = 0;
  Return result = kSuccess;
  Value value = {};
};
static_assert(sizeof(FieldValue) == 40);

inline constexpr unsigned kFieldTotalEnergy = 83;    // NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, mJ
inline constexpr unsigned kFieldPowerAverage = 185;  // NVML_FI_DEV_POWER_AVERAGE, mW
inline constexpr unsigned kFieldPowerInstant = 186;  // NVML_FI_DEV_POWER_INSTANT, mW

// NVML_FI_PWR_SMOOTHING_ENABLED and _APPLIED_TMP_FLOOR (watts). Their numbers
// depend on the driver: NVIDIA moved them in branch 575 and back in 580, and there
// the old numbers mean something else. As in nvidia-ml-py 12.570 to 13.615.
struct SmoothingFields {
  unsigned enabled = 0;  // 0: the branch has none.
  unsigned floor = 0;
};
constexpr SmoothingFields SmoothingFieldsOf(int driver_branch) {
  if (driver_branch == 575) return {256, 260};
  if (driver_branch >= 570) return {251, 255};
  return {};
}

// nvmlValueType_t
inline constexpr unsigned kTypeDouble = 0;
inline constexpr unsigned kTypeUnsigned = 1;
inline constexpr unsigned kTypeUnsignedLongLong = 3;

// A structure's version holds its size: 0x01000064 is version 1 of 100 bytes.
template <typename T>
constexpr std::uint32_t VersionOf(std::uint32_t version) {
  return static_cast<std::uint32_t>(sizeof(T)) | version << 24;
}

// nvmlMask255_t: bit i of word i / 32.
struct Mask255 {
  std::array<std::uint32_t, 8> words = {};
  bool Has(unsigned bit) const { return (words[bit / 32] >> (bit % 32) & 1) != 0; }
  void Add(unsigned bit) { words[bit / 32] |= std::uint32_t{1} << (bit % 32); }
};

// nvmlWorkloadPowerProfileCurrentProfiles_v1_t
struct CurrentPowerProfiles {
  std::uint32_t version = 0;
  Mask255 available;
  Mask255 requested;
  Mask255 enforced;
};
static_assert(VersionOf<CurrentPowerProfiles>(1) == 0x1000064);

}  // namespace perseus::device::nvml

namespace perseus::device {

// "no_permission" for NVML_ERROR_NO_PERMISSION; a name is what a simulated GPU's
// configuration gives.
std::optional<nvml::Return> NvmlErrorByName(std::string_view name);
std::vector<std::string> NvmlErrorNames();

// A sentence for people: what failed ("locking the clock of GPU 3"), why, what
// to do. kDenied where a right is missing, else kIo.
Error NvmlError(nvml::Return code, std::string_view doing);

// "LLM_TRAINING" for NVML_POWER_PROFILE_LLM_TRAINING; "profile 90" where newer.
std::string PowerProfileName(unsigned profile);
std::optional<unsigned> PowerProfileByName(std::string_view name);

// NVIDIA's GPUs through the NVML in `path` (empty: where the loader finds it).
// Errors: kIo (no library, no driver, no GPU), kDenied.
Result<std::unique_ptr<Driver>> OpenNvmlDriver(const std::string& path);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_NVML_NVML_H_
