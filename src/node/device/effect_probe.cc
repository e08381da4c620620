// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/effect_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <thread>
#include <vector>

#include "device/clock_loan.h"

namespace perseus::device {
namespace {

using Clock = std::chrono::steady_clock;

// Short against any switch that was published (milliseconds to a tenth of a second).
constexpr double kKernelSeconds = 0.001;
// By when a clock must be in effect.
constexpr double kSettleSeconds = 0.3;
constexpr double kPatienceSeconds = 1;
// Kernels in a row on the new side of the middle: one alone may be a hiccup.
constexpr std::size_t kInARow = 3;
// Relative; kernels at both clocks must differ by more than they vary.
constexpr double kLeastDifference = 0.05;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class EffectExaminer {
 public:
  EffectExaminer(Gpu* gpu, TimedKernel* kernel, const StopFunction& stop)
      : gpu_(gpu), kernel_(kernel), stop_(stop) {}

  Result<EffectProbe> Run(int switches) {
    const auto [low, high] = ProbedClocks(gpu_->info());
    ClockLoan loan(gpu_);
    Result<EffectProbe> examined = Examine(low, high, switches);
    if (auto back = loan.GiveBack(); !back) return tl::unexpected(back.error());
    return examined;
  }

 private:
  Result<EffectProbe> Examine(int low, int high, int switches) {
    if (auto locked = gpu_->LockClock(high); !locked) return tl::unexpected(locked.error());
    if (auto warm = Settle(); !warm) return tl::unexpected(warm.error());
    if (auto fit = kernel_->Fit(kKernelSeconds); !fit) return tl::unexpected(fit.error());
    const Result<double> at_high = Settle();
    if (!at_high) return tl::unexpected(at_high.error());
    if (auto locked = gpu_->LockClock(low); !locked) return tl::unexpected(locked.error());
    const Result<double> at_low = Settle();
    if (!at_low) return tl::unexpected(at_low.error());
    if (*at_low < *at_high * (1 + kLeastDifference)) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("a kernel takes as long at {} MHz as at {} MHz, so that nobody "
                                   "can see when a clock is in effect (does a limit hold it back?)",
                                   low, high));
    }
    const double middle = (*at_low + *at_high) / 2;
    std::vector<double> seconds;
    for (int i = 0; i < switches; ++i) {
      const bool up = i % 2 == 0;
      const auto seen = Switch(up ? high : low, middle, up);
      if (!seen) return tl::unexpected(seen.error());
      if (*seen) seconds.push_back(**seen);
      if (auto settled = Settle(); !settled) return tl::unexpected(settled.error());
    }
    if (seconds.empty()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("no clock was in effect within {} s", kPatienceSeconds));
    }
    return EffectProbe{.switches = static_cast<int>(seconds.size()),
                       .median_seconds = MedianOf(seconds),
                       .longest_seconds = *std::max_element(seconds.begin(), seconds.end()),
                       .kernel_seconds = *at_high};
  }

  // Runs kernels until a clock that was set is in effect; what one takes then.
  Result<double> Settle() {
    std::vector<double> kernels;
    const Clock::time_point start = Clock::now();
    while (Since(start) < kSettleSeconds) {
      Result<double> took = RunOnce();
      if (!took) return took;
      if (Since(start) > kSettleSeconds / 2) kernels.push_back(*took);
    }
    if (kernels.empty()) return RunOnce();
    return MedianOf(kernels);
  }

  Result<double> RunOnce() {
    if (stop_()) return MakeError(ErrorCode::kCancelled, "asked to stop");
    return kernel_->Run();
  }

  // Sets a clock from another thread, as the call may last as long as the switch. Absent: no
  // kernel was seen at the new clock.
  Result<std::optional<double>> Switch(int mhz, double middle, bool up) {
    Result<void> locked;
    const Clock::time_point start = Clock::now();
    std::thread caller([&] { locked = gpu_->LockClock(mhz); });
    Result<std::optional<double>> seen = AwaitKernels(start, middle, up);
    caller.join();
    if (!locked) return tl::unexpected(locked.error());
    return seen;
  }

  Result<std::optional<double>> AwaitKernels(Clock::time_point start, double middle, bool up) {
    double begun_at = 0;  // Of the first kernel in the row.
    std::size_t in_a_row = 0;
    while (Since(start) < kPatienceSeconds) {
      const double begin = Since(start);
      const Result<double> took = RunOnce();
      if (!took) return tl::unexpected(took.error());
      if ((*took < middle) != up) {
        in_a_row = 0;
        continue;
      }
      if (in_a_row++ == 0) begun_at = begin;
      if (in_a_row == kInARow) return std::optional<double>(begun_at);
    }
    return std::optional<double>();
  }

  Gpu* const gpu_;
  TimedKernel* const kernel_;
  const StopFunction& stop_;
};

}  // namespace

Result<EffectProbe> ProbeEffect(Gpu& gpu, TimedKernel& kernel, int switches,
                                const StopFunction& stop) {
  return EffectExaminer(&gpu, &kernel, stop).Run(switches);
}

}  // namespace perseus::device
