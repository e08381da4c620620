// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/disturbance_probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <thread>
#include <vector>

#include "device/clock_loan.h"
#include "device/stopwatch.h"

namespace perseus::device {
namespace {

constexpr double kDisturbedKernelSeconds = 0.005;
constexpr double kQuietSeconds = 0.15;
constexpr int kCallsOfABlock = 8;
constexpr double kTail = 0.5;  // Intervals after the last call.
// A kernel ran at one clock if it took as long as at that, but for this share of the difference
// between the two, or of its length.
constexpr double kOfDifference = 0.3;
constexpr double kOfLength = 0.005;
constexpr double kCostResolutionSeconds = 2e-5;

// By how much longer these kernels took than without calls. Which clock was in effect under a
// kernel that was disturbed, those around it show.
double ExtraSeconds(const std::vector<double>& kernels, double at_high, double at_low) {
  const double near = std::max(kOfDifference * std::abs(at_low - at_high), kOfLength * at_high);
  const auto quiet_at = [&](double took) {
    if (std::abs(took - at_high) <= std::min(near, std::abs(took - at_low))) return at_high;
    return std::abs(took - at_low) <= near ? at_low : 0;
  };
  double extra = 0;
  double before = at_high;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    double after = quiet_at(kernels[i]);
    for (std::size_t next = i + 1; after == 0 && next < kernels.size(); ++next) {
      after = quiet_at(kernels[next]);
    }
    if (after == 0) after = before;
    const double quiet = quiet_at(kernels[i]);
    extra += kernels[i] - (quiet > 0 ? quiet : (before + after) / 2);
    before = after;
  }
  return extra;
}

class DisturbanceExaminer {
 public:
  DisturbanceExaminer(Gpu* gpu, TimedKernel* kernel, double interval, const StopFunction& stop)
      : gpu_(gpu), kernel_(kernel), interval_(interval), stop_(stop) {}

  Result<DisturbanceProbe> Run(int blocks) {
    ClockLoan loan(gpu_);
    Result<DisturbanceProbe> probe = Examine(blocks);
    if (auto back = loan.GiveBack(); !back) return tl::unexpected(back.error());
    return probe;
  }

 private:
  Result<DisturbanceProbe> Examine(int blocks) {
    const std::vector<int>& clocks = gpu_->info().clocks_mhz;
    high_ = clocks.back();
    low_ = clocks[clocks.size() > 1 ? clocks.size() - 2 : 0];
    if (auto locked = gpu_->LockClock(high_); !locked) return tl::unexpected(locked.error());
    if (auto fit = kernel_->Fit(kDisturbedKernelSeconds); !fit) return tl::unexpected(fit.error());
    const Result<double> at_low = QuietAt(low_);
    if (!at_low) return tl::unexpected(at_low.error());
    const Result<double> at_high = QuietAt(high_);
    if (!at_high) return tl::unexpected(at_high.error());
    DisturbanceProbe probe;
    probe.interval_seconds = interval_;
    std::vector<double> extras;
    for (int block = 0; block < blocks; ++block) {
      int calls = 0;
      const Result<std::vector<double>> kernels = Block(&calls);
      if (!kernels) return tl::unexpected(kernels.error());
      if (calls == 0) continue;
      extras.push_back(ExtraSeconds(*kernels, *at_high, *at_low) / calls);
      probe.calls += calls;
      // Begin each at the same clock.
      if (const auto quiet = QuietAt(high_); !quiet) return tl::unexpected(quiet.error());
    }
    probe.seconds_per_call = FigureOf(extras, kCostResolutionSeconds);
    return probe;
  }

  // What a kernel takes at a clock without calls.
  Result<double> QuietAt(int mhz) {
    if (auto locked = gpu_->LockClock(mhz); !locked) return tl::unexpected(locked.error());
    std::vector<double> kernels;
    const Stopwatch watch;
    while (kernels.empty() || watch.Seconds() < kQuietSeconds) {
      const Result<double> took = RunOnce();
      if (!took) return tl::unexpected(took.error());
      if (watch.Seconds() > kQuietSeconds / 2 || kernels.empty()) kernels.push_back(*took);
    }
    return UpperMedianOf(kernels);
  }

  Result<double> RunOnce() {
    if (stop_()) return MakeError(ErrorCode::kCancelled, "asked to stop");
    const Result<KernelTime> run = kernel_->Run();
    if (!run) return tl::unexpected(run.error());
    return run->seconds;
  }

  // Runs kernels under calls; what each took.
  Result<std::vector<double>> Block(int* calls) {
    Result<void> locked;
    std::atomic<bool> is_over = false;
    std::thread caller([&] {
      const Stopwatch watch;
      for (int call = 0; call < kCallsOfABlock && locked && !is_over; ++call) {
        std::this_thread::sleep_until(
            watch.start() + std::chrono::duration_cast<Stopwatch::Clock::duration>(
                                std::chrono::duration<double>((call + kTail) * interval_)));
        if (is_over) break;
        locked = gpu_->LockClock(call % 2 == 0 ? low_ : high_);
        ++*calls;
      }
    });
    std::vector<double> kernels;
    Result<double> took = 0.0;
    const Stopwatch watch;
    while (took && watch.Seconds() < (kCallsOfABlock + kTail) * interval_) {
      took = RunOnce();
      if (took) kernels.push_back(*took);
    }
    is_over = true;
    caller.join();
    if (!took) return tl::unexpected(took.error());
    if (!locked) return tl::unexpected(locked.error());
    return kernels;
  }

  Gpu* const gpu_;
  TimedKernel* const kernel_;
  const double interval_;
  const StopFunction& stop_;
  int high_ = 0;
  int low_ = 0;
};

}  // namespace

Result<DisturbanceProbe> ProbeDisturbance(Gpu& gpu, TimedKernel& kernel, double interval_seconds,
                                          int blocks, const StopFunction& stop) {
  return DisturbanceExaminer(&gpu, &kernel, interval_seconds, stop).Run(blocks);
}

}  // namespace perseus::device
