// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/effect_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device/clock_loan.h"
#include "device/stopwatch.h"

namespace perseus::device {
namespace {

// Long against the pause between two kernels, in which nobody sees the clock. Where in a kernel the
// clock changed, its length tells.
constexpr double kSwitchedKernelSeconds = 0.004;
// By when a clock must be in effect.
constexpr double kSwitchedSeconds = 0.3;
constexpr double kPatienceSeconds = 1;
// Between two switches.
constexpr double kPauseSeconds = 0.05;
// Kernels in a row on the new side of the middle: one alone may be a hiccup.
constexpr std::size_t kInARow = 3;
// Relative; kernels at both clocks must differ by more than they vary.
constexpr double kLeastDifference = 0.05;
// Of a kernel: when in it the clock changed is known as well as this.
constexpr double kKernelResolution = 0.06;
// A thread that was kept waiting has not seen when the clock changed. Such switches do not count;
// so many times the switches that are wanted are tried.
constexpr double kMostBlindSeconds = 0.0005;
constexpr int kMostTries = 3;

// A clock, and what a kernel takes at it.
struct Target {
  int mhz = 0;
  double kernel_seconds = 0;
  std::vector<double> latencies = {};
};

// When the clock changed in a kernel that took so long, counted from its begin: the share of its
// work that was done before took as long as at the old clock, the rest as long as at the new.
double ChangedAfter(double took, double old_seconds, double new_seconds) {
  const double after = (took - new_seconds) / (1 - new_seconds / old_seconds);
  return std::clamp(after, 0.0, old_seconds);
}

class EffectExaminer {
 public:
  EffectExaminer(Gpu* gpu, TimedKernel* kernel, const StopFunction& stop)
      : gpu_(gpu), kernel_(kernel), stop_(stop) {}

  Result<EffectProbe> Run(int switches) {
    ClockLoan loan(gpu_);
    Result<EffectProbe> examined = Examine(switches);
    if (auto back = loan.GiveBack(); !back) return tl::unexpected(back.error());
    return examined;
  }

 private:
  Result<EffectProbe> Examine(int switches) {
    if (auto known = Calibrate(); !known) return tl::unexpected(known.error());
    std::vector<double> seconds;
    for (int i = 0; i < kMostTries * switches; ++i) {
      if (static_cast<int>(seconds.size()) >= switches) break;
      Target& low = lower_[static_cast<std::size_t>(i / 2) % lower_.size()];
      const bool up = i % 2 == 1;
      Target& from = up ? low : top_;
      Target& to = up ? top_ : low;
      const auto seen = Switch(from, to);
      if (!seen) return tl::unexpected(seen.error());
      if (*seen) {
        seconds.push_back(**seen);
        to.latencies.push_back(**seen);
      }
      if (auto settled = Settle(kPauseSeconds); !settled) return tl::unexpected(settled.error());
    }
    if (seconds.empty()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("no clock was in effect within {} s", kPatienceSeconds));
    }
    const double resolution = kKernelResolution * top_.kernel_seconds;
    EffectProbe probe{.switches = static_cast<int>(seconds.size()),
                      .median_seconds = UpperMedianOf(seconds),
                      .longest_seconds = *std::max_element(seconds.begin(), seconds.end()),
                      .kernel_seconds = top_.kernel_seconds,
                      .seconds = FigureOf(seconds, resolution),
                      .targets = {}};
    lower_.push_back(top_);
    for (const Target& target : lower_) {
      if (target.latencies.empty()) continue;
      probe.targets.push_back(
          {.mhz = target.mhz, .seconds = FigureOf(target.latencies, resolution)});
    }
    return probe;
  }

  // Finds what a kernel takes at each target, and ends at the highest clock.
  Result<void> Calibrate() {
    const std::vector<int>& clocks = gpu_->info().clocks_mhz;
    top_.mhz = clocks.back();
    if (auto warm = SettleAt(&top_); !warm) return warm;
    if (auto fit = kernel_->Fit(kSwitchedKernelSeconds); !fit) return fit;
    if (auto known = SettleAt(&top_); !known) return known;
    for (const int mhz : ProbedTargets(gpu_->info())) {
      Target target{.mhz = mhz};
      if (auto known = SettleAt(&target); !known) return known;
      if (target.kernel_seconds >= top_.kernel_seconds * (1 + kLeastDifference)) {
        lower_.push_back(std::move(target));
      }
    }
    if (lower_.empty()) {
      return MakeError(ErrorCode::kInfeasible,
                       fmt::format("a kernel takes as long at {} MHz as at {} MHz, so that nobody "
                                   "can see when a clock is in effect (does a limit hold it back?)",
                                   ProbedTargets(gpu_->info()).front(), top_.mhz));
    }
    return SettleAt(&top_);
  }

  Result<void> SettleAt(Target* target) {
    if (auto locked = gpu_->LockClock(target->mhz); !locked) return locked;
    const Result<double> took = Settle(kSwitchedSeconds);
    if (!took) return tl::unexpected(took.error());
    target->kernel_seconds = *took;
    return {};
  }

  // Runs kernels for some time; what one takes at the end of it.
  Result<double> Settle(double seconds) {
    std::vector<double> kernels;
    const Stopwatch watch;
    while (watch.Seconds() < seconds) {
      const Result<KernelTime> run = RunOnce();
      if (!run) return tl::unexpected(run.error());
      if (watch.Seconds() > seconds / 2 || kernels.empty()) kernels.push_back(run->seconds);
    }
    return UpperMedianOf(kernels);
  }

  Result<KernelTime> RunOnce() {
    if (stop_()) return MakeError(ErrorCode::kCancelled, "asked to stop");
    return kernel_->Run();
  }

  // Sets a clock from another thread, as the call may last as long as the switch. Absent: nobody
  // saw when the clock changed.
  Result<std::optional<double>> Switch(const Target& from, const Target& to) {
    Result<void> locked;
    const Stopwatch watch;
    double called_at = 0;
    std::thread caller([&] {
      called_at = watch.Seconds();
      locked = gpu_->LockClock(to.mhz);
    });
    Result<std::optional<double>> changed =
        AwaitKernels(watch, from.kernel_seconds, to.kernel_seconds);
    caller.join();
    if (!locked) return tl::unexpected(locked.error());
    if (changed && *changed) **changed = std::max(0.0, **changed - called_at);
    return changed;
  }

  // When the clock changed.
  Result<std::optional<double>> AwaitKernels(const Stopwatch& watch, double old_seconds,
                                             double new_seconds) {
    const double middle = (old_seconds + new_seconds) / 2;
    const auto is_new = [&](const KernelTime& kernel) {
      return (kernel.seconds < middle) == (new_seconds < middle);
    };
    std::vector<KernelTime> row;  // The last one at the old clock, and those at the new.
    while (watch.Seconds() < kPatienceSeconds) {
      const Result<KernelTime> kernel = RunOnce();
      if (!kernel) return tl::unexpected(kernel.error());
      if (!is_new(*kernel)) row.clear();
      row.push_back(*kernel);
      const bool has_old = !is_new(row.front());
      if (row.size() < kInARow + (has_old ? 1 : 0)) continue;
      if (!has_old) {
        return std::optional(watch.SecondsAt(row[0].begin) +
                             ChangedAfter(row[0].seconds, old_seconds, new_seconds));
      }
      // In the one, between the two, or in the other.
      const double old_end = watch.SecondsAt(row[0].end());
      const double new_begin = watch.SecondsAt(row[1].begin);
      const double in_old = ChangedAfter(row[0].seconds, old_seconds, new_seconds);
      const double in_new = ChangedAfter(row[1].seconds, old_seconds, new_seconds);
      if (in_old < (1 - kKernelResolution) * old_seconds) {
        return std::optional(watch.SecondsAt(row[0].begin) + in_old);
      }
      if (in_new > kKernelResolution * old_seconds) return std::optional(new_begin + in_new);
      if (new_begin - old_end > kMostBlindSeconds) return std::optional<double>();
      return std::optional((old_end + new_begin) / 2);
    }
    return std::optional<double>();
  }

  Gpu* const gpu_;
  TimedKernel* const kernel_;
  const StopFunction& stop_;
  Target top_;
  std::vector<Target> lower_;
};

}  // namespace

Result<EffectProbe> ProbeEffect(Gpu& gpu, TimedKernel& kernel, int switches,
                                const StopFunction& stop) {
  return EffectExaminer(&gpu, &kernel, stop).Run(switches);
}

}  // namespace perseus::device
