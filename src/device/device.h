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

// Who else acts on this GPU's clocks or power. Read-only facts.
struct GpuConditions {
  std::optional<double> power_limit_watts;  // In force now.
  std::optional<double> default_power_limit_watts;
  std::optional<double> temperature_celsius;
  std::uint64_t throttle_reasons = 0;       // NVML bits; ThrottleNames(bits) gives words.
  std::vector<std::string> power_profiles;  // Enforced workload power profiles.
  std::optional<double> power_floor_watts;  // Power smoothing.
  bool mig = false;
};

// One GPU. Calls may block for as long as the driver takes (10-20 ms for clocks). Calls on one Gpu
// from several threads are safe (serialised inside); no call takes a lock while another GPU's call
// is in the driver.
class Gpu {
 public:
  virtual ~Gpu() = default;
  virtual const GpuInfo& info() const = 0;
  virtual Result<void> LockClock(int mhz) = 0;  // Lowest and highest both `mhz`.
  virtual Result<void> ReleaseClock() = 0;      // Gives the clock back to the driver.
  virtual Result<int> ClockMhz() = 0;           // SM clock now.
  virtual Result<double>
  EnergyJoules() = 0;  // Counter since the driver was loaded; steps at the card's period.
  virtual Result<double> PowerWatts() = 0;
  virtual Result<GpuConditions> Conditions() = 0;
};

// A way to reach GPUs.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual std::string_view kind() const = 0;  // "nvml", "zeusd", "simulated", "agent"
  virtual const std::vector<std::unique_ptr<Gpu>>& gpus() const = 0;
  virtual Result<bool> MaySetClocks() = 0;  // False: lacks the right.
};

// "nvml" (libnvidia-ml.so.1), "nvml:/path/to/lib.so", "zeusd:/run/zeusd/zeusd.sock",
// "simulated:/path/state". (The client adds "agent:/run/perseus/agent.sock" in its own room,
// src/client/agent_device.h, over src/agent/protocol.h.)
Result<std::unique_ptr<Driver>> OpenDriver(const std::string& spec);
}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_DEVICE_H_
