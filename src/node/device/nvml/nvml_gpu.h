// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_NVML_NVML_GPU_H_
#define PERSEUS_DEVICE_NVML_NVML_GPU_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/mutex.h"
#include "device/device.h"
#include "device/nvml/nvml_abi.h"
#include "device/nvml/nvml_library.h"
#include "perseus/result.h"

namespace perseus::device {

// Whether this process may set clocks, as the last such call showed.
enum class SetRight : std::uint8_t { kUntried, kGranted, kDenied };

// One GPU behind NVML, which is thread-safe itself.
class NvmlGpu : public Gpu {
 public:
  // Errors: what NVML says of this GPU.
  static Result<std::unique_ptr<NvmlGpu>> Open(std::shared_ptr<const NvmlLibrary> library,
                                               unsigned index);

  const GpuInfo& info() const override { return info_; }
  Result<void> LockClock(int mhz) override;
  Result<void> ReleaseClock() override;
  Result<int> ClockMhz() override;
  Result<double> EnergyJoules() override;
  Result<double> PowerWatts() override;
  Result<GpuConditions> Conditions() override;

  SetRight set_right() const { return set_right_; }

 private:
  NvmlGpu(std::shared_ptr<const NvmlLibrary> library, nvml::Device device, unsigned index);

  const NvmlFunctions& nvml() const { return library_->functions(); }
  // Calls a function of NVML, which may be null, if this process may.
  template <typename Function, typename... Arguments>
  nvml::Return Raw(Function function, Arguments... arguments) const;
  // The same with a sentence: "`doing` of GPU 3 failed: ...".
  template <typename Function, typename... Arguments>
  Result<void> Call(std::string_view doing, Function function, Arguments... arguments) const;
  // The same for a function that a card may not support: returns false then. Fails only if the GPU
  // is lost.
  template <typename Function, typename... Arguments>
  Result<bool> Ask(Function function, Arguments... arguments) const;
  Error Explain(nvml::Return code, std::string_view doing) const;
  Result<void> ReadInfo();
  Result<void> ReadClocks();
  Result<std::optional<double>> ReadField(unsigned field) const;
  Result<std::optional<double>> ReadMilliwatts(nvml::Return (*function)(nvml::Device,
                                                                        unsigned*)) const;
  Result<void> ReadPowerProfiles(GpuConditions* conditions) const;
  void LearnRight(const Result<void>& result);

  std::shared_ptr<const NvmlLibrary> library_;
  nvml::Device device_;
  GpuInfo info_;
  Mutex set_mutex_;  // One change of this GPU's clock at a time.
  std::atomic<SetRight> set_right_ = SetRight::kUntried;
  std::atomic<bool> has_instant_power_ = true;  // Until the card says otherwise.
};

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_NVML_NVML_GPU_H_
