// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/device.h"

namespace perseus::device {
namespace {

// nvmlClocksEventReason*: the bits keep their meaning over all versions of nvml.h.
struct ThrottleName {
  std::uint64_t bit;
  const char* name;
};
constexpr ThrottleName kThrottleNames[] = {
    {0x4, "power cap"},
    {0x8, "hardware slowdown"},
    {0x10, "sync boost"},
    {0x20, "software thermal slowdown"},
    {0x40, "hardware thermal slowdown"},
    {0x80, "hardware power brake"},
};

// Idle, application or locked clocks (0x2), display clocks: somebody's wish.
constexpr std::uint64_t kHarmless = 0x1 | 0x2 | 0x100;

}  // namespace

std::vector<std::string> ThrottleNames(std::uint64_t throttle_reasons) {
  std::vector<std::string> names;
  std::uint64_t unknown = throttle_reasons & ~kHarmless;
  for (const auto& [bit, name] : kThrottleNames) {
    if ((throttle_reasons & bit) != 0) names.emplace_back(name);
    unknown &= ~bit;
  }
  if (unknown != 0) names.emplace_back("a reason that this version does not know");
  return names;
}

}  // namespace perseus::device
