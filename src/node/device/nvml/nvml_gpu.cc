// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/nvml/nvml_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "device/nvml/nvml_names.h"

namespace perseus::device {
namespace {

constexpr double kMilli = 1e-3;
constexpr unsigned kMostClocks = 1024;
// Beside NVML's own codes: this process was forked from the one that opened the GPU.
constexpr nvml::Return kForked = -1;

// After these every other call fails, too.
bool IsGone(nvml::Return code) {
  return code == kForked || code == nvml::kUninitialized || code == nvml::kDriverNotLoaded ||
         code == nvml::kGpuIsLost || code == nvml::kResetRequired;
}

double NumberOf(const nvml::FieldValue& field) {
  switch (field.value_type) {
    case nvml::kTypeDouble:
      return field.value.d;
    case nvml::kTypeUnsigned:
      return field.value.ui;
    default:
      return static_cast<double>(field.value.ull);
  }
}

// NVML's way to return lists: first their size.
template <typename Ask>
std::vector<unsigned> ListOf(const Ask& ask) {
  unsigned count = 0;
  const nvml::Return code = ask(&count, nullptr);
  if (code != nvml::kInsufficientSize || count == 0 || count > kMostClocks) return {};
  std::vector<unsigned> list(count);
  if (ask(&count, list.data()) != nvml::kSuccess || count > list.size()) return {};
  list.resize(count);
  return list;
}

}  // namespace

template <typename Function, typename... Arguments>
nvml::Return NvmlGpu::Raw(Function function, Arguments... arguments) const {
  if (!library_->InOwnProcess()) return kForked;
  return function != nullptr ? function(device_, arguments...) : nvml::kNotSupported;
}

template <typename Function, typename... Arguments>
Result<void> NvmlGpu::Call(std::string_view doing, Function function,
                           Arguments... arguments) const {
  const nvml::Return code = Raw(function, arguments...);
  if (code == nvml::kSuccess) return {};
  return tl::unexpected(Explain(code, doing));
}

template <typename Function, typename... Arguments>
Result<bool> NvmlGpu::Ask(Function function, Arguments... arguments) const {
  const nvml::Return code = Raw(function, arguments...);
  if (IsGone(code)) return tl::unexpected(Explain(code, "reading limits"));
  return code == nvml::kSuccess;
}

Error NvmlGpu::Explain(nvml::Return code, std::string_view doing) const {
  if (code == kForked) {
    return {ErrorCode::kIo, fmt::format("{} of GPU {} failed: this process was forked from the one "
                                        "that opened the GPUs; open them again in the child",
                                        doing, info_.index)};
  }
  return NvmlError(code, fmt::format("{} of GPU {}", doing, info_.index));
}

NvmlGpu::NvmlGpu(std::shared_ptr<const NvmlLibrary> library, nvml::Device device, unsigned index)
    : library_(std::move(library)), device_(device) {
  info_.index = static_cast<int>(index);
}

Result<std::unique_ptr<NvmlGpu>> NvmlGpu::Open(std::shared_ptr<const NvmlLibrary> library,
                                               unsigned index) {
  nvml::Device device = nullptr;
  const nvml::Return code = library->functions().device_get_handle_by_index(index, &device);
  if (code != nvml::kSuccess) {
    return tl::unexpected(NvmlError(code, fmt::format("opening GPU {}", index)));
  }
  std::unique_ptr<NvmlGpu> gpu(new NvmlGpu(std::move(library), device, index));
  const Result<void> read = gpu->ReadInfo();
  if (!read) return tl::unexpected(read.error());
  return gpu;
}

Result<void> NvmlGpu::ReadInfo() {
  std::array<char, nvml::kNameSize> text = {};
  constexpr auto kSize = static_cast<unsigned>(text.size() - 1);
  Result<void> read = Call("reading the name", nvml().device_get_name, text.data(), kSize);
  if (!read) return read;
  info_.name = text.data();
  text.fill('\0');
  read = Call("reading the uuid", nvml().device_get_uuid, text.data(), kSize);
  if (!read) return read;
  info_.uuid = text.data();
  return ReadClocks();
}

// The graphics clocks at the highest memory clock, which is the one in use under
// load. Locks apply to graphics and SM clocks alike.
Result<void> NvmlGpu::ReadClocks() {
  const std::vector<unsigned> memory = ListOf(
      [&](unsigned* count, unsigned* list) { return Raw(nvml().get_memory_clocks, count, list); });
  std::vector<unsigned> clocks;
  if (!memory.empty()) {
    const unsigned highest = *std::max_element(memory.begin(), memory.end());
    clocks = ListOf([&](unsigned* count, unsigned* list) {
      return Raw(nvml().get_graphics_clocks, highest, count, list);
    });
  }
  if (clocks.empty()) {
    // The card does not tell (a MIG slice, a virtual GPU): the one that is sure.
    unsigned mhz = 0;
    Result<void> read =
        Call("reading the highest clock", nvml().get_max_clock, nvml::kClockSm, &mhz);
    if (!read) return read;
    clocks.push_back(mhz);
  }
  info_.clocks_mhz.assign(clocks.begin(), clocks.end());
  std::sort(info_.clocks_mhz.begin(), info_.clocks_mhz.end());
  info_.clocks_mhz.erase(std::unique(info_.clocks_mhz.begin(), info_.clocks_mhz.end()),
                         info_.clocks_mhz.end());
  return {};
}

Result<void> NvmlGpu::LockClock(int mhz) {
  const std::vector<int>& clocks = info_.clocks_mhz;
  if (!std::binary_search(clocks.begin(), clocks.end(), mhz)) {
    return InvalidInput(
        fmt::format("GPU {} has no clock of {} MHz; its clocks go from {} to {} MHz", info_.index,
                    mhz, clocks.front(), clocks.back()));
  }
  const auto clock = static_cast<unsigned>(mhz);
  const MutexLock lock(set_mutex_);
  Result<void> set = Call("locking the clock", nvml().set_locked_clocks, clock, clock);
  LearnRight(set);
  return set;
}

Result<void> NvmlGpu::ReleaseClock() {
  const MutexLock lock(set_mutex_);
  Result<void> reset = Call("releasing the clock", nvml().reset_locked_clocks);
  LearnRight(reset);
  return reset;
}

void NvmlGpu::LearnRight(const Result<void>& result) {
  if (result) {
    set_right_ = SetRight::kGranted;
  } else if (result.error().code == ErrorCode::kDenied) {
    set_right_ = SetRight::kDenied;
  }
}

Result<int> NvmlGpu::ClockMhz() {
  unsigned mhz = 0;
  const Result<void> read = Call("reading the clock", nvml().get_clock, nvml::kClockSm, &mhz);
  if (!read) return tl::unexpected(read.error());
  return static_cast<int>(mhz);
}

Result<double> NvmlGpu::EnergyJoules() {
  unsigned long long millijoules = 0;
  const Result<void> read = Call("reading the energy counter", nvml().get_energy, &millijoules);
  if (!read) return tl::unexpected(read.error());
  return static_cast<double>(millijoules) * kMilli;
}

Result<double> NvmlGpu::PowerWatts() {
  // Where the card has it, the power now: the older function averages over up to a second.
  if (has_instant_power_) {
    const Result<std::optional<double>> now = ReadField(nvml::kFieldPowerInstant);
    if (!now) return tl::unexpected(now.error());
    if (*now) return **now * kMilli;
    has_instant_power_ = false;
  }
  unsigned milliwatts = 0;
  const Result<void> read = Call("reading the power", nvml().get_power, &milliwatts);
  if (!read) return tl::unexpected(read.error());
  return milliwatts * kMilli;
}

Result<std::optional<double>> NvmlGpu::ReadField(unsigned field) const {
  if (field == 0) return std::optional<double>();
  nvml::FieldValue value;
  value.field = field;
  const Result<bool> read = Ask(nvml().get_field_values, 1, &value);
  if (!read) return tl::unexpected(read.error());
  if (!*read || value.result != nvml::kSuccess) return std::optional<double>();
  return std::optional<double>(NumberOf(value));
}

Result<std::optional<double>> NvmlGpu::ReadMilliwatts(nvml::Return (*function)(nvml::Device,
                                                                               unsigned*)) const {
  unsigned milliwatts = 0;
  const Result<bool> read = Ask(function, &milliwatts);
  if (!read) return tl::unexpected(read.error());
  if (!*read) return std::optional<double>();
  return std::optional<double>(milliwatts * kMilli);
}

Result<void> NvmlGpu::ReadPowerProfiles(GpuConditions* conditions) const {
  nvml::CurrentPowerProfiles profiles;
  profiles.version = nvml::VersionOf<nvml::CurrentPowerProfiles>(1);
  const Result<bool> read = Ask(nvml().get_power_profiles, &profiles);
  if (!read) return tl::unexpected(read.error());
  for (unsigned profile = 0; *read && profile < nvml::kPowerProfiles; ++profile) {
    if (profiles.enforced.Has(profile)) {
      conditions->power_profiles.push_back(PowerProfileName(profile));
    }
  }
  return {};
}

Result<GpuConditions> NvmlGpu::Conditions() {
  GpuConditions conditions;
  const Result<std::optional<double>> limit = ReadMilliwatts(nvml().get_enforced_limit);
  if (!limit) return tl::unexpected(limit.error());
  conditions.power_limit_watts = *limit;
  const Result<std::optional<double>> default_limit = ReadMilliwatts(nvml().get_default_limit);
  if (!default_limit) return tl::unexpected(default_limit.error());
  conditions.default_power_limit_watts = *default_limit;

  unsigned celsius = 0;
  const Result<bool> warm = Ask(nvml().get_temperature, nvml::kTemperatureGpu, &celsius);
  if (!warm) return tl::unexpected(warm.error());
  if (*warm) conditions.temperature_celsius = celsius;

  unsigned long long reasons = 0;
  const Result<bool> throttled = Ask(nvml().get_throttle_reasons, &reasons);
  if (!throttled) return tl::unexpected(throttled.error());
  if (*throttled) conditions.throttle_reasons = reasons;

  unsigned mode = 0;
  unsigned pending = 0;
  const Result<bool> mig = Ask(nvml().get_mig_mode, &mode, &pending);
  if (!mig) return tl::unexpected(mig.error());
  conditions.mig = *mig && mode != 0;

  const Result<void> profiles = ReadPowerProfiles(&conditions);
  if (!profiles) return tl::unexpected(profiles.error());

  const nvml::SmoothingFields smoothing = nvml::SmoothingFieldsOf(library_->driver_branch());
  const Result<std::optional<double>> smooths = ReadField(smoothing.enabled);
  if (!smooths) return tl::unexpected(smooths.error());
  if (smooths->value_or(0) != 0) {
    const Result<std::optional<double>> floor = ReadField(smoothing.floor);
    if (!floor) return tl::unexpected(floor.error());
    conditions.power_floor_watts = *floor;
  }
  return conditions;
}

}  // namespace perseus::device
