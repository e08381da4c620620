// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_DEVICE_H_
#define PERSEUS_DEVICE_DEVICE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"

namespace perseus::device {

struct GpuInfo {
  std::string uuid;             // "GPU-..." as NVML says it; simulated ones "GPU-sim-...".
  std::string name;             // "NVIDIA A100-SXM4-80GB"
  int index = 0;                // Within the driver.
  std::vector<int> clocks_mhz;  // SM clocks that can be locked, ascending, never empty.
};

// Conditions that affect this GPU's clocks or power. Values that the card or its library does not
// report are absent.
struct GpuConditions {
  std::optional<double> power_limit_watts;  // In force now.
  std::optional<double> default_power_limit_watts;
  std::optional<double> temperature_celsius;
  std::uint64_t throttle_reasons = 0;       // NVML's bits; see ThrottleNames.
  std::vector<std::string> power_profiles;  // Workload power profiles in force.
  std::optional<double> power_floor_watts;  // Of power smoothing: it cancels savings.
  bool mig = false;
};

// Names of the reasons for throttling ("power cap"). Bits that are no throttling (idle, an
// application's own clock) give no name.
std::vector<std::string> ThrottleNames(std::uint64_t throttle_reasons);

// Sentences about conditions that prevent a GPU from following a plan's clocks, with advice.
// Reasons for throttling are included only while a clock is locked.
std::vector<std::string> ClockConflicts(const GpuConditions& conditions, bool is_locked);

// One GPU. Calls block as long as the driver takes (10 to 20 ms for clocks). Thread-safe: changes
// of one GPU's clock wait for each other; calls for different GPUs do not. Errors: kDenied (no
// right), kIo (the driver refused, the GPU is lost), kInvalidInput (not a clock of `info`). After
// fork(), a child must open its own driver; that of the parent returns kIo there.
class Gpu {
 public:
  Gpu() = default;
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  virtual ~Gpu() = default;

  virtual const GpuInfo& info() const = 0;
  virtual Result<void> LockClock(int mhz) = 0;  // Lowest and highest both `mhz`.
  virtual Result<void> ReleaseClock() = 0;      // Gives the clock back to the driver.
  virtual Result<int> ClockMhz() = 0;           // SM clock now.
  // Energy since the driver was loaded. The counter is updated at the card's own period, so two
  // equal reads do not mean that no power was drawn.
  virtual Result<double> EnergyJoules() = 0;
  virtual Result<double> PowerWatts() = 0;
  virtual Result<GpuConditions> Conditions() = 0;
};

// A way to reach GPUs. It owns its Gpus. Destroying it does not change clocks.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  virtual std::string_view kind() const = 0;  // "nvml", "zeusd", "simulated", "agent"
  virtual const std::vector<std::unique_ptr<Gpu>>& gpus() const = 0;
  // A sentence for each GPU that exists but cannot be used; it is not in gpus().
  virtual std::vector<std::string> faults() const { return {}; }
  // Whether this process has the right to set clocks. Changes nothing on the GPU.
  virtual Result<bool> MaySetClocks() = 0;
};

// A clock of `info`, or a sentence. kInvalidInput.
Result<void> CheckClock(const GpuInfo& info, int mhz);

// Opens what `spec` names:
//   nvml                      libnvidia-ml.so.1 on the loader's path
//   nvml:/path/lib.so         that library
//   zeusd:/run/zeusd/zeusd.sock
//   simulated:/path/state     GPUs of CreateSimulatedGpus (device/simulated/simulated_gpu.h)
// Errors: kInvalidInput (no such spec), kIo (library, socket or file missing), kDenied.
Result<std::unique_ptr<Driver>> OpenDriver(const std::string& spec);
// Whether `spec` can name a driver; nothing is opened. kInvalidInput.
Result<void> CheckDriverSpec(const std::string& spec);

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_DEVICE_H_
