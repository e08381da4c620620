// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/step_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <thread>
#include <utility>
#include <vector>

#include "device/clock_loan.h"
#include "device/stopwatch.h"

namespace perseus::device {
namespace {

constexpr double kStepReadSeconds = 0.002;
constexpr int kLoads = 8;
constexpr double kLoadSeconds = 0.6;
constexpr double kPeriods = 8;  // Of the counter, that a load and the pause after it last at least.
constexpr int kBursts = 32;
constexpr double kBurstShare = 0.2;           // Of the counter's period.
constexpr double kLeastBurstSeconds = 0.002;  // Longer than a launch.
constexpr double kMostBurstsSeconds = 20;
constexpr double kLeastWatts = 5;  // By which a load must stand out.
constexpr double kLagResolution = 0.001;
constexpr double kDutyResolution = 0.05;

// What the counter showed when it had just changed: then, its value is of one moment.
std::vector<CounterRead> ChangesOf(const std::vector<CounterRead>& reads) {
  std::vector<CounterRead> changes;
  for (std::size_t i = 1; i < reads.size(); ++i) {
    if (reads[i].joules == reads[i - 1].joules) continue;
    // It changed between two reads.
    changes.push_back({(reads[i - 1].seconds + reads[i].seconds) / 2, reads[i].joules});
  }
  return changes;
}

// The last change until then.
std::optional<CounterRead> LastBefore(const std::vector<CounterRead>& changes, double seconds) {
  const auto after = std::upper_bound(
      changes.begin(), changes.end(), seconds,
      [](double time, const CounterRead& change) { return time < change.seconds; });
  if (after == changes.begin()) return std::nullopt;
  return *(after - 1);
}

// The mean power between two times, from change to change.
std::optional<double> WattsBetween(const std::vector<CounterRead>& changes, double from,
                                   double to) {
  const auto first = LastBefore(changes, from);
  const auto last = LastBefore(changes, to);
  if (!first || !last || last->seconds <= first->seconds) return std::nullopt;
  return (last->joules - first->joules) / (last->seconds - first->seconds);
}

double PeriodOf(const std::vector<CounterRead>& changes) {
  std::vector<double> gaps;
  for (std::size_t i = 1; i < changes.size(); ++i) {
    gaps.push_back(changes[i].seconds - changes[i - 1].seconds);
  }
  return gaps.empty() ? 0 : UpperMedianOf(gaps);
}

// What a burst of `burst` periods adds to a counter that looks `duty` of each period: the mean of
// its square over all phases, in units of the square of its mean. 1: always the same.
double SquareOf(double duty, double burst) {
  constexpr int kPhases = 400;
  double sum = 0;
  for (int i = 0; i < kPhases; ++i) {
    const double begin = (i + 0.5) / kPhases;
    const double end = begin + burst;
    // The counter looks at the end of each period.
    const auto looked = [duty](double until) {
      const double whole = std::floor(until);
      return whole * duty + std::max(0.0, until - whole - (1 - duty));
    };
    const double share = (looked(end) - looked(begin)) / (duty * burst);
    sum += share * share;
  }
  return sum / kPhases;
}

double DutyFrom(double square, double burst) {
  double least = 0.01;
  double most = 1;
  if (square <= SquareOf(most, burst)) return most;
  for (int i = 0; i < 40; ++i) {
    const double middle = (least + most) / 2;
    (SquareOf(middle, burst) > square ? least : most) = middle;
  }
  return (least + most) / 2;
}

// The mean of the square of these over the square of their mean, without one of them.
double SquareWithout(const std::vector<double>& joules, std::size_t left_out) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (std::size_t i = 0; i < joules.size(); ++i) {
    if (i == left_out) continue;
    sum += joules[i];
    squares += joules[i] * joules[i];
    ++count;
  }
  return squares / count / (sum / count * sum / count);
}

class StepExaminer {
 public:
  StepExaminer(Gpu* gpu, TimedKernel* kernel, const StopFunction& stop)
      : gpu_(gpu), kernel_(kernel), stop_(stop) {}

  Result<StepProbe> Run() {
    ClockLoan loan(gpu_);
    Result<StepProbe> probe = Examine();
    if (auto back = loan.GiveBack(); !back) return tl::unexpected(back.error());
    return probe;
  }

 private:
  Result<StepProbe> Examine() {
    if (auto locked = gpu_->LockClock(gpu_->info().clocks_mhz.back()); !locked) {
      return tl::unexpected(locked.error());
    }
    Pause(kLoadSeconds);
    const auto first = RunLoads({Times{.load = kLoadSeconds, .pause = kLoadSeconds}});
    if (!first) return tl::unexpected(first.error());
    const double period = PeriodOf(ChangesOf(first->reads));
    const double load = std::max(kLoadSeconds, kPeriods * period);
    const auto loads = RunLoads(TimesOf(kLoads, load, load, period));
    if (!loads) return tl::unexpected(loads.error());
    std::optional<StepProbe> probe = LagOf(loads->reads, loads->loads);
    if (!probe) {
      return MakeError(ErrorCode::kInfeasible,
                       "the energy counter did not show when the GPU was busy, so that its lag is "
                       "not known");
    }
    const double burst = kBurstShare * period;
    if (burst < kLeastBurstSeconds) return *probe;
    const double lag = std::max(0.0, probe->lag_seconds.value) + period;
    const double pause = lag + 2 * period;
    const int count =
        static_cast<int>(std::min<double>(kBursts, kMostBurstsSeconds / (pause + period + burst)));
    const auto bursts = RunLoads(TimesOf(count, burst, pause, period));
    if (!bursts) return tl::unexpected(bursts.error());
    probe->duty = DutyOf(bursts->reads, bursts->loads, probe->idle_watts, period, lag);
    return *probe;
  }

  struct Times {
    double load = 0;
    double pause = 0;  // After it.
  };
  struct Watched {
    std::vector<CounterRead> reads;
    std::vector<Load> loads;
  };

  // Loads with pauses of this length at least. They begin at times that are spread evenly over the
  // counter's period: each by a golden ratio of it later than the one before.
  static std::vector<Times> TimesOf(int count, double load, double least_pause, double period) {
    if (period <= 0)
      return std::vector<Times>(static_cast<std::size_t>(count), {load, least_pause});
    const double whole = std::ceil((load + least_pause) / period) * period;
    const double pause = whole + period / std::numbers::phi - load;
    return std::vector<Times>(static_cast<std::size_t>(count), {load, pause});
  }

  void Pause(double seconds) const {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }

  // Runs the loads, each after the pause of the one before, while the counter is read.
  Result<Watched> RunLoads(const std::vector<Times>& times) {
    Watched watched;
    Result<void> ran = kernel_->Fit(times.front().load);
    if (!ran) return tl::unexpected(ran.error());
    Pause(times.front().pause);
    std::atomic<bool> is_over = false;
    std::optional<Error> unread;
    std::thread reader([&] {
      while (!is_over && !unread) {
        const Result<double> joules = gpu_->EnergyJoules();
        if (joules) {
          watched.reads.push_back({watch_.Seconds(), *joules});
        } else {
          unread = joules.error();
        }
        Pause(kStepReadSeconds);
      }
    });
    Pause(times.front().pause);
    for (const Times& each : times) {
      if (stop_()) ran = MakeError(ErrorCode::kCancelled, "asked to stop");
      if (!ran) break;
      const Result<KernelTime> run = kernel_->Run();
      if (!run) ran = tl::unexpected(run.error());
      if (run) {
        const double begin = watch_.SecondsAt(run->begin);
        watched.loads.push_back({begin, begin + run->seconds});
      }
      Pause(each.pause);
    }
    is_over = true;
    reader.join();
    if (!ran) return tl::unexpected(ran.error());
    if (unread) return tl::unexpected(*std::move(unread));
    return watched;
  }

  Gpu* const gpu_;
  TimedKernel* const kernel_;
  const StopFunction& stop_;
  const Stopwatch watch_;
};

}  // namespace

std::optional<StepProbe> LagOf(const std::vector<CounterRead>& reads,
                               const std::vector<Load>& loads) {
  const std::vector<CounterRead> changes = ChangesOf(reads);
  std::vector<double> idle;
  std::vector<double> busy;
  // The counter comes late by less than half of a load, and of the pause after it.
  for (const Load& load : loads) {
    const double half = (load.end - load.begin) / 2;
    const auto before = WattsBetween(changes, load.begin - half, load.begin);
    const auto late = WattsBetween(changes, load.begin + half, load.end);
    if (before) idle.push_back(*before);
    if (late) busy.push_back(*late);
  }
  if (idle.empty() || busy.empty()) return std::nullopt;
  StepProbe probe;
  probe.idle_watts = UpperMedianOf(idle);
  probe.load_watts = UpperMedianOf(busy);
  if (probe.load_watts - probe.idle_watts < kLeastWatts) return std::nullopt;
  std::vector<double> lags;
  for (const Load& load : loads) {
    const auto first = LastBefore(changes, load.begin);
    const auto last = LastBefore(changes, load.end);
    if (!first || !last || last->seconds <= first->seconds) continue;
    // Of the energy between the two, so much was drawn at idle power; the load began then.
    const double joules = last->joules - first->joules;
    const double loaded = (joules - probe.idle_watts * (last->seconds - first->seconds)) /
                          (probe.load_watts - probe.idle_watts);
    lags.push_back(last->seconds - loaded - load.begin);
  }
  if (lags.empty()) return std::nullopt;
  probe.lag_seconds = FigureOf(lags, kLagResolution);
  return probe;
}

std::optional<Figure> DutyOf(const std::vector<CounterRead>& reads, const std::vector<Load>& bursts,
                             double idle_watts, double period, double lag) {
  const std::vector<CounterRead> changes = ChangesOf(reads);
  std::vector<double> joules;
  double burst = 0;
  for (const Load& each : bursts) {
    const auto first = LastBefore(changes, each.begin);
    const auto last = LastBefore(changes, each.end + lag + period);
    if (!first || !last || last->seconds <= first->seconds) continue;
    burst += each.end - each.begin;
    // Times of changes are less sure than that there is one each period.
    const double passed = std::round((last->seconds - first->seconds) / period) * period;
    joules.push_back(last->joules - first->joules - idle_watts * passed);
  }
  const auto count = static_cast<double>(joules.size());
  if (count < 8) return std::nullopt;
  burst /= count * period;
  const double all = DutyFrom(SquareWithout(joules, joules.size()), burst);
  // By leaving out one after the other.
  double sum = 0;
  for (std::size_t i = 0; i < joules.size(); ++i) {
    const double off = DutyFrom(SquareWithout(joules, i), burst) - all;
    sum += off * off;
  }
  const double error = std::sqrt(sum * (count - 1) / count);
  return Figure{.value = all,
                .error = std::max(error, kDutyResolution),
                .spread = 0,
                .samples = static_cast<int>(count)};
}

Result<StepProbe> ProbeStep(Gpu& gpu, TimedKernel& kernel, const StopFunction& stop) {
  return StepExaminer(&gpu, &kernel, stop).Run();
}

}  // namespace perseus::device
