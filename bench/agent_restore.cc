// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How long a clock stays locked after its owner, or the agent, has gone: the real
// `perseus agent`, real clients, GPUs of a simulated driver whose calls take
// `--call-ms`. From right before the kill until the highest clock is in effect.
//
//   agent_restore [--rounds N] [--call-ms MS] [--driver simulated|nvml]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/drill.h"

namespace {

using perseus::agent::Drill;
using perseus::agent::DrillOptions;
using perseus::agent::Program;
using Clock = std::chrono::steady_clock;

const std::vector<int> kBoth = {0, 1};
constexpr int kSilenceMs = 200;

[[noreturn]] void Fail(const std::string& why) {
  std::fputs(fmt::format("agent_restore: {}\n", why).c_str(), stderr);
  std::exit(1);
}

double MillisecondsSince(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

class Series {
 public:
  void Add(double milliseconds) { values_.push_back(milliseconds); }
  void Print(const std::string& name) {
    std::sort(values_.begin(), values_.end());
    const auto at = [this](double share) {
      const auto rank =
          static_cast<std::size_t>(std::ceil(share * static_cast<double>(values_.size())));
      return values_[std::max<std::size_t>(rank, 1) - 1];
    };
    std::fputs(fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} |\n", name, values_.size(),
                           at(0.5), at(0.99), values_.back())
                   .c_str(),
               stdout);
    std::fflush(stdout);
  }

 private:
  std::vector<double> values_;
};

double UntilFree(Drill* drill, const std::vector<int>& gpus, Clock::time_point start) {
  const auto end = drill->WaitUntilFree(gpus);
  if (!end) Fail("a clock is still locked after 20 seconds");
  return MillisecondsSince(start, *end);
}

std::unique_ptr<Program> MustStart(Drill* drill, const std::string& mode,
                                   const std::vector<int>& gpus) {
  auto client = drill->StartClient(mode, gpus);
  if (client == nullptr) Fail("a client could not lock its clocks");
  return client;
}

void MustStartAgent(Drill* drill) {
  if (!drill->StartAgent()) Fail("the agent does not answer");
}

// A client with clocks on both GPUs ends: `end` makes it.
void MeasureClient(const std::string& name, const std::string& mode, const DrillOptions& options,
                   int rounds, const std::function<void(Program*)>& end, double less_ms = 0) {
  Drill drill(options);
  MustStartAgent(&drill);
  Series series;
  for (int i = 0; i < rounds; ++i) {
    const auto client = MustStart(&drill, mode, kBoth);
    const Clock::time_point start = Clock::now();
    end(client.get());
    series.Add(UntilFree(&drill, kBoth, start) - less_ms);
    client->Kill(SIGCONT);
  }
  series.Print(name);
}

void MeasureAgentKilled(const DrillOptions& options, int rounds) {
  Drill drill(options);
  Series series;
  for (int i = 0; i < rounds; ++i) {
    MustStartAgent(&drill);
    const auto client = MustStart(&drill, "wait", kBoth);
    drill.agent().Kill(SIGKILL);
    drill.agent().Wait();
    const Clock::time_point start = Clock::now();
    MustStartAgent(&drill);
    series.Add(UntilFree(&drill, kBoth, start));
  }
  series.Print("agent killed; from the start of the next one");
}

void MeasureAgentTerminated(const DrillOptions& options, int rounds) {
  Drill drill(options);
  Series series;
  for (int i = 0; i < rounds; ++i) {
    MustStartAgent(&drill);
    const auto client = MustStart(&drill, "wait", kBoth);
    const Clock::time_point start = Clock::now();
    drill.agent().Kill(SIGTERM);
    series.Add(UntilFree(&drill, kBoth, start));
    if (drill.agent().Wait() != 0) Fail("the agent did not end with 0");
  }
  series.Print("agent gets SIGTERM");
}

// The other GPU's driver hangs for 200 ms in each call, and is in one.
void MeasureSlowNeighbour(DrillOptions options, int rounds) {
  options.call_ms = {200, options.call_ms.back()};
  Drill drill(options);
  MustStartAgent(&drill);
  Series series;
  for (int i = 0; i < rounds; ++i) {
    const auto slow = MustStart(&drill, "wait", {0});
    const auto quick = MustStart(&drill, "wait", {1});
    slow->Kill(SIGKILL);
    const Clock::time_point start = Clock::now();
    quick->Kill(SIGKILL);
    series.Add(UntilFree(&drill, {1}, start));
    UntilFree(&drill, {0}, start);
  }
  series.Print("SIGKILL, while another GPU's driver hangs for 200 ms");
}

void MeasureCalls(const DrillOptions& options, int rounds) {
  Drill drill(options);
  Series series;
  for (int i = 0; i < rounds; ++i) {
    if (!drill.gpus().LockClock(0, Drill::kLowMhz)) Fail("a clock cannot be locked");
    const Clock::time_point start = Clock::now();
    if (!drill.gpus().ReleaseClock(0)) Fail("a clock cannot be given back");
    series.Add(MillisecondsSince(start, Clock::now()));
  }
  series.Print("the driver's call alone");
}

void Measure(const DrillOptions& options, int rounds) {
  std::fputs("| how it ends | rounds | median ms | p99 ms | worst ms |\n|---|---|---|---|---|\n",
             stdout);
  const auto kill = [](Program* client) { client->Kill(SIGKILL); };
  const auto poke = [](Program* client) { client->Poke(); };
  MeasureCalls(options, rounds);
  MeasureClient("client exits", "exit", options, rounds, poke);
  MeasureClient("client throws", "throw", options, rounds, poke);
  MeasureClient("client is killed (SIGKILL)", "wait", options, rounds, kill);
  MeasureClient("client closes its socket, lives on", "close", options, rounds, poke);
  MeasureClient("client is killed, a forked child holds its socket", "fork", options, rounds, kill);
  DrillOptions silent = options;
  silent.agent_arguments.insert(silent.agent_arguments.end(),
                                {"--max-silence", fmt::format("{}ms", kSilenceMs)});
  MeasureClient(
      fmt::format("client is stopped (SIGSTOP), beyond the {} ms of silence allowed", kSilenceMs),
      "wait", silent, std::max(rounds / 4, 1), [](Program* client) { client->Kill(SIGSTOP); },
      kSilenceMs);
  MeasureSlowNeighbour(options, std::max(rounds / 4, 1));
  MeasureAgentTerminated(options, rounds);
  MeasureAgentKilled(options, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 200;
  DrillOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--rounds") {
      rounds = std::max(std::atoi(argv[i + 1]), 1);
    } else if (name == "--call-ms") {
      options.call_ms = {std::atof(argv[i + 1]), std::atof(argv[i + 1])};
    } else if (name == "--driver") {
      options.driver = argv[i + 1];
    } else {
      Fail(fmt::format("unknown option {}", name));
    }
  }
  Measure(options, rounds);
  return 0;
}
