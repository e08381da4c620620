// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Cost of perseus_instruction_begin() to the thread that trains, one call at a
// time: median, 99th and 99.9th percentile and the worst of some millions, less
// the cost of reading the clock. Beside it, in the same run, perseus_step_begin(),
// which may wake the background thread with a system call.
//
//   build/release/bench/client_hot_path [CALLS]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "client/hot_page.h"
#include "perseus/client.h"

namespace {

using perseus::MonotonicNs;
using perseus::client::TickSource;

double NanosecondsPerTick(const TickSource& ticks) {
  const std::int64_t begin_ns = MonotonicNs();
  const std::uint64_t begin = ticks.Now();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  return static_cast<double>(MonotonicNs() - begin_ns) / static_cast<double>(ticks.Now() - begin);
}

template <typename Call>
std::vector<double> Measure(const TickSource& ticks, double ns_per_tick, int calls, Call call) {
  std::vector<double> took(static_cast<std::size_t>(calls));
  for (int i = 0; i < calls; ++i) {
    const std::uint64_t begin = ticks.Now();
    call(i);
    took[static_cast<std::size_t>(i)] = static_cast<double>(ticks.Now() - begin) * ns_per_tick;
  }
  std::sort(took.begin(), took.end());
  return took;
}

void Print(const char* what, const std::vector<double>& took, double empty) {
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(took.size() - 1));
    return std::max(0.0, took[index] - empty);
  };
  fmt::print("{:<34} {:>9.0f} {:>9.0f} {:>9.0f} {:>12.0f}\n", what, at(0.5), at(0.99), at(0.999),
             at(1));
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::max(1000, std::atoi(argv[1])) : 2'000'000;
  const TickSource ticks;
  const double ns_per_tick = NanosecondsPerTick(ticks);
  perseus_client_options options;
  perseus_client_options_init(&options, sizeof(options));
  perseus_client* client = nullptr;
  if (perseus_client_open(&options, &client, nullptr) != PERSEUS_OK) return 1;
  const std::vector<double> empty = Measure(ticks, ns_per_tick, calls, [](int) {});
  const double floor = empty[empty.size() / 2];
  fmt::print(
      "{} calls each, nanoseconds, less {:.0f} ns for reading the clock\n\n{:<34} {:>9} {:>9} "
      "{:>9} {:>12}\n",
      calls, floor, "", "median", "99 %", "99.9 %", "worst");
  Print("nothing", empty, floor);
  perseus_step_begin(client, 0);
  Print("perseus_instruction_begin",
        Measure(ticks, ns_per_tick, calls,
                [&](int i) { perseus_instruction_begin(client, PERSEUS_FORWARD, 0, i & 0xFFFF); }),
        floor);
  perseus_step_end(client, 0);
  Print("perseus_step_begin",
        Measure(ticks, ns_per_tick, calls / 100, [&](int i) { perseus_step_begin(client, i); }),
        floor);
  perseus_client_close(client);
  return 0;
}
