// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <thread>

#include "device/clock_loan.h"
#include "device/figure.h"
#include "device/stopwatch.h"

namespace perseus::device {
namespace {

// One counter while it is read.
class CounterWatch {
 public:
  CounterWatch(Gpu* gpu, const Stopwatch* watch) : gpu_(gpu), watch_(watch) {}

  void Read() {
    if (error_) return;
    const Result<double> joules = gpu_->EnergyJoules();
    if (!joules) {
      error_ = joules.error();
      return;
    }
    reads_.push_back({watch_->Seconds(), *joules});
    if (reads_.size() % 10 != 1 || watts_.size() == 10) return;
    const Result<double> watts = gpu_->PowerWatts();
    if (watts) watts_.push_back(*watts);
  }

  CounterProbe Finish(double read_every_seconds) const {
    CounterProbe probe = SummarizeCounter(reads_, read_every_seconds);
    probe.error = error_;
    if (!watts_.empty()) {
      const double sum = std::accumulate(watts_.begin(), watts_.end(), 0.0);
      probe.reading_watts = sum / static_cast<double>(watts_.size());
    }
    return probe;
  }

 private:
  Gpu* gpu_;
  const Stopwatch* watch_;
  std::vector<CounterRead> reads_;
  std::vector<double> watts_;
  std::optional<Error> error_;
};

// Seconds from the start of `watch` until the driver reads back `mhz`; not before: absent.
std::optional<double> WaitForReading(Gpu& gpu, int mhz, const Stopwatch& watch) {
  constexpr double kPatienceSeconds = 0.2;
  constexpr auto kPause = std::chrono::milliseconds(1);
  while (watch.Seconds() < kPatienceSeconds) {
    const Result<int> now = gpu.ClockMhz();
    if (!now) return std::nullopt;
    if (*now == mhz) return watch.Seconds();
    std::this_thread::sleep_for(kPause);
  }
  return std::nullopt;
}

}  // namespace

CounterProbe SummarizeCounter(const std::vector<CounterRead>& reads, double read_every_seconds) {
  CounterProbe probe;
  probe.read_every_seconds = read_every_seconds;
  probe.reads = static_cast<int>(reads.size());
  CounterRead first;
  CounterRead last;
  for (std::size_t i = 1; i < reads.size(); ++i) {
    if (reads[i].joules == reads[i - 1].joules) continue;
    if (probe.changes++ == 0) first = reads[i];
    last = reads[i];
  }
  const double passed = last.seconds - first.seconds;
  if (probe.changes >= 2 && passed > 0) {
    probe.period_seconds = passed / (probe.changes - 1);
    probe.period_is_upper_bound = probe.changes == probe.reads - 1;
    probe.counter_watts = (last.joules - first.joules) / passed;
  }
  return probe;
}

std::vector<CounterProbe> ProbeCounters(const std::vector<Gpu*>& gpus, double seconds,
                                        double read_every_seconds, const StopFunction& stop) {
  const auto pause = std::chrono::duration<double>(read_every_seconds);
  const Stopwatch watch;
  std::vector<CounterWatch> watches;
  watches.reserve(gpus.size());
  for (Gpu* gpu : gpus) watches.emplace_back(gpu, &watch);
  while (watch.Seconds() <= seconds && !stop()) {
    for (CounterWatch& each : watches) each.Read();
    std::this_thread::sleep_for(pause);
  }
  std::vector<CounterProbe> probes;
  probes.reserve(watches.size());
  for (const CounterWatch& each : watches) probes.push_back(each.Finish(read_every_seconds));
  return probes;
}

Result<ClockProbe> ProbeClock(Gpu& gpu, int calls, const StopFunction& stop) {
  const auto [low, high] = ProbedClocks(gpu.info());
  std::vector<double> call_seconds;
  std::vector<double> seen_seconds;
  ClockLoan loan(&gpu);
  for (int call = 0; call < calls && !stop(); ++call) {
    const int mhz = call % 2 == 0 ? low : high;
    const Stopwatch watch;
    const Result<void> locked = gpu.LockClock(mhz);
    call_seconds.push_back(watch.Seconds());
    if (!locked) return tl::unexpected(locked.error());
    const std::optional<double> seen = WaitForReading(gpu, mhz, watch);
    if (seen) seen_seconds.push_back(*seen);
  }
  if (auto back = loan.GiveBack(); !back) return tl::unexpected(back.error());
  if (call_seconds.empty()) return MakeError(ErrorCode::kCancelled, "asked to stop");
  ClockProbe probe;
  probe.calls = static_cast<int>(call_seconds.size());
  probe.longest_call_seconds = *std::max_element(call_seconds.begin(), call_seconds.end());
  probe.median_call_seconds = UpperMedianOf(call_seconds);
  if (!seen_seconds.empty()) probe.median_seen_seconds = UpperMedianOf(seen_seconds);
  return probe;
}

}  // namespace perseus::device
