// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEVICE_CLOCK_LOAN_H_
#define PERSEUS_DEVICE_CLOCK_LOAN_H_

#include <fmt/format.h>

#include <algorithm>
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

inline double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace perseus::device

#endif  // PERSEUS_DEVICE_CLOCK_LOAN_H_
