// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_CLOCK_LOAN_H_
#define PERSEUS_DEVICE_CLOCK_LOAN_H_

#include <fmt/format.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "device/device.h"
#include "perseus/result.h"

// What probes that set clocks share.
namespace perseus::device {

// Gives the clock of a GPU back, at the latest when it is destroyed.
class ClockLoan {
 public:
  explicit ClockLoan(Gpu* gpu) : gpu_(gpu) {}
  ClockLoan(const ClockLoan&) = delete;
  ClockLoan& operator=(const ClockLoan&) = delete;
  ~ClockLoan() { static_cast<void>(GiveBack()); }

  // If this fails, the GPU's clock stays locked, and the error says so.
  Result<void> GiveBack() {
    if (gpu_ == nullptr) return {};
    Gpu* const gpu = std::exchange(gpu_, nullptr);
    Result<void> released = gpu->ReleaseClock();
    // Try once more: the driver may have failed only for a moment.
    if (!released && released.error().code != ErrorCode::kDenied) released = gpu->ReleaseClock();
    if (released) return {};
    return MakeError(released.error().code,
                     fmt::format("GPU {} stays locked at a clock, as {}; run 'nvidia-smi "
                                 "--reset-gpu-clocks' as root",
                                 gpu->info().index, released.error().message));
  }

 private:
  Gpu* gpu_;
};

// Two clocks, the lower first: far enough apart to be distinguished, and close enough not to
// disturb other processes on the GPU.
inline std::pair<int, int> ProbedClocks(const GpuInfo& info) {
  const std::vector<int>& clocks = info.clocks_mhz;
  const std::size_t low = clocks.size() * 3 / 4;
  return {clocks[low < clocks.size() - 1 ? low : 0], clocks.back()};
}

// Clocks below the highest, ascending: at a quarter, a half and three quarters of the list. Never
// empty.
inline std::vector<int> ProbedTargets(const GpuInfo& info) {
  const std::vector<int>& clocks = info.clocks_mhz;
  std::vector<int> targets;
  for (const std::size_t quarters : {1, 2, 3}) {
    const std::size_t at = clocks.size() * quarters / 4;
    const bool is_new = targets.empty() || clocks[at] != targets.back();
    if (is_new && (at < clocks.size() - 1 || clocks.size() == 1)) targets.push_back(clocks[at]);
  }
  return targets.empty() ? std::vector<int>{clocks.front()} : targets;
}

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_CLOCK_LOAN_H_
