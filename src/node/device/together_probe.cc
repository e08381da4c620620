// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/together_probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <latch>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "device/clock_loan.h"
#include "device/stopwatch.h"

namespace perseus::device {
namespace {

constexpr double kWakeSeconds = 2e-4;  // To wake a thread.
// The agent changes the clock of a GPU no more often.
constexpr std::chrono::milliseconds kTogetherPause(20);

// Two clocks in turn: a driver may do nothing for a clock that is set.
int ClockOf(const Gpu& gpu, int round) {
  const auto [low, high] = ProbedClocks(gpu.info());
  return round % 2 == 0 ? low : high;
}

Result<double> CallAlone(Gpu* gpu, int round) {
  const Stopwatch watch;
  const Result<void> locked = gpu->LockClock(ClockOf(*gpu, round));
  if (!locked) return tl::unexpected(locked.error());
  return watch.Seconds();
}

// From the first call's begin to the last one's end.
Result<double> CallAll(const std::vector<Gpu*>& gpus, int round) {
  struct Call {
    Stopwatch::Clock::time_point begin;
    Stopwatch::Clock::time_point end;
    Result<void> result;
  };
  std::vector<Call> calls(gpus.size());
  std::latch ready(static_cast<std::ptrdiff_t>(gpus.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      calls[i].begin = Stopwatch::Clock::now();
      calls[i].result = gpus[i]->LockClock(ClockOf(*gpus[i], round));
      calls[i].end = Stopwatch::Clock::now();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Call& call : calls) {
    if (!call.result) return tl::unexpected(call.result.error());
  }
  const auto by_begin = [](const Call& a, const Call& b) { return a.begin < b.begin; };
  const auto by_end = [](const Call& a, const Call& b) { return a.end < b.end; };
  const std::chrono::duration<double> took =
      std::max_element(calls.begin(), calls.end(), by_end)->end -
      std::min_element(calls.begin(), calls.end(), by_begin)->begin;
  return took.count();
}

Result<TogetherProbe> ExamineTogether(const std::vector<Gpu*>& gpus, int rounds,
                                      const StopFunction& stop) {
  std::vector<double> alone;
  std::vector<double> together;
  for (int round = 0; round < rounds; ++round) {
    for (Gpu* const gpu : gpus) {
      if (stop()) return MakeError(ErrorCode::kCancelled, "asked to stop");
      const Result<double> took = CallAlone(gpu, 2 * round);
      if (!took) return tl::unexpected(took.error());
      alone.push_back(*took);
    }
    std::this_thread::sleep_for(kTogetherPause);
    const Result<double> took = CallAll(gpus, 2 * round + 1);
    if (!took) return tl::unexpected(took.error());
    together.push_back(*took);
    std::this_thread::sleep_for(kTogetherPause);
  }
  return TogetherProbe{.gpus = static_cast<int>(gpus.size()),
                       .alone_seconds = FigureOf(alone, kWakeSeconds),
                       .together_seconds = FigureOf(together, kWakeSeconds)};
}

}  // namespace

Result<TogetherProbe> ProbeTogether(const std::vector<Gpu*>& gpus, int rounds,
                                    const StopFunction& stop) {
  std::vector<std::unique_ptr<ClockLoan>> loans;
  loans.reserve(gpus.size());
  for (Gpu* const gpu : gpus) loans.push_back(std::make_unique<ClockLoan>(gpu));
  Result<TogetherProbe> probe = ExamineTogether(gpus, rounds, stop);
  std::optional<Error> stuck;
  for (const auto& loan : loans) {
    if (auto back = loan->GiveBack(); !back && !stuck) stuck = back.error();
  }
  if (stuck) return tl::unexpected(*std::move(stuck));
  return probe;
}

}  // namespace perseus::device
