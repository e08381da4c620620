// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/nearest_name.h"
#include "device/nvml/nvml.h"
#include "device/simulated/simulated_gpu.h"
#include "device/zeusd/zeusd_driver.h"

namespace perseus::device {
namespace {

// A way to reach GPUs, by the name before the colon.
struct DriverKind {
  std::string_view name;
  bool needs_path;
  Result<std::unique_ptr<Driver>> (*open)(const std::string& path);
};
constexpr DriverKind kDriverKinds[] = {
    {"nvml", false, OpenNvmlDriver},
    {"zeusd", false, [](const std::string& path) { return OpenZeusdDriver(path); }},
    {"simulated", true, OpenSimulatedDriver},
};

struct DriverSpec {
  const DriverKind* kind = nullptr;
  std::string path;  // Empty: the kind's own place.
};

Result<DriverSpec> ParseDriverSpec(const std::string& text) {
  const std::size_t colon = text.find(':');
  const bool has_path = colon != std::string::npos;
  const std::string name = text.substr(0, colon);
  const auto* const kind = std::find_if(std::begin(kDriverKinds), std::end(kDriverKinds),
                                        [&](const DriverKind& each) { return each.name == name; });
  if (kind == std::end(kDriverKinds)) {
    return InvalidInput(fmt::format(
        "there is no GPU driver {}{}; give nvml, nvml:LIBRARY, zeusd:SOCKET or simulated:FILE",
        Shown(text), NearestHint(name, {"nvml", "zeusd", "simulated"})));
  }
  DriverSpec spec = {kind, has_path ? text.substr(colon + 1) : ""};
  if (has_path && spec.path.empty()) {
    return InvalidInput(
        fmt::format("the GPU driver {} names no file after the colon", Shown(text)));
  }
  if (kind->needs_path && !has_path) {
    return InvalidInput(
        "the GPU driver 'simulated' needs the file of its GPUs, as in simulated:/tmp/gpus");
  }
  return spec;
}

}  // namespace

std::vector<std::string> ClockConflicts(const GpuConditions& conditions, bool is_locked) {
  std::vector<std::string> conflicts;
  if (is_locked) {
    for (const std::string& name : ThrottleNames(conditions.throttle_reasons)) {
      conflicts.push_back(
          fmt::format("its clock is locked, but the GPU runs slower ({}): computations take longer "
                      "than planned",
                      name));
    }
  }
  if (!conditions.power_profiles.empty()) {
    conflicts.push_back(
        fmt::format("workload power profiles are enforced ({}), which may change clocks and power; "
                    "clear them for jobs that follow a plan",
                    fmt::join(conditions.power_profiles, ", ")));
  }
  if (conditions.power_floor_watts) {
    conflicts.push_back(fmt::format(
        "power smoothing keeps the GPU at {} W or more, which cancels savings below that",
        *conditions.power_floor_watts));
  }
  if (conditions.power_limit_watts && conditions.default_power_limit_watts &&
      *conditions.power_limit_watts < *conditions.default_power_limit_watts) {
    conflicts.push_back(fmt::format(
        "its power is capped at {} W (default {} W), so that high clocks may not be reached",
        *conditions.power_limit_watts, *conditions.default_power_limit_watts));
  }
  return conflicts;
}

Result<void> CheckClock(const GpuInfo& info, int mhz) {
  const std::vector<int>& clocks = info.clocks_mhz;
  if (std::binary_search(clocks.begin(), clocks.end(), mhz)) return {};
  return InvalidInput(fmt::format("GPU {} has no clock of {} MHz; its clocks go from {} to {} MHz",
                                  info.index, mhz, clocks.front(), clocks.back()));
}

Result<void> CheckDriverSpec(const std::string& spec) {
  const Result<DriverSpec> parsed = ParseDriverSpec(spec);
  if (!parsed) return tl::unexpected(parsed.error());
  return {};
}

Result<std::unique_ptr<Driver>> OpenDriver(const std::string& spec) {
  const Result<DriverSpec> parsed = ParseDriverSpec(spec);
  if (!parsed) return tl::unexpected(parsed.error());
  return parsed->kind->open(parsed->path);
}

}  // namespace perseus::device
