// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_DEMO_DEMO_H_
#define PERSEUS_DEMO_DEMO_H_

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/demo/trainer.h"
#include "perseus/client.h"
#include "perseus/result.h"

namespace perseus::demo {

struct DemoSpec {
  DemoPlan plan;
  double switch_latency_seconds = 0.015;  // How long a clock call blocks.
  // The plan holds under clocks that come that late, with at most so many changes in an iteration
  // of a pipeline; none: the plan knows no conditions.
  std::optional<int> max_changes;
  std::string program;      // This binary, which is also server, agent and trainers.
  std::string keep_folder;  // Where its files stay; "": a temporary one that is removed.
};

// One iteration of the whole job: all ranks, from barrier to barrier.
struct DemoRound {
  Part part = Part::kBaseline;
  int number = 0;  // Of its part.
  bool straggler = false;
  double seconds = 0;
  double joules = 0;
  std::int64_t plan_version = -1;  // The newest that a rank follows.
  int ranks_with_plan = 0;         // That have one at its end.
  std::array<int, kRanks> clocks_mhz = {};
};

// A finding of the server's detection, for DemoPlan::detect.
struct DemoFinding {
  std::string kind;   // "straggler", "recovered", ...
  int iteration = 0;  // Of those under the plan.
  std::string sentence;
};

struct DemoResult {
  std::vector<DemoRound> rounds;
  std::array<perseus_client_stats, kRanks> stats = {};
  std::vector<DemoFinding> findings;
};

// Receives events as they happen.
struct DemoWatcher {
  std::function<void(const std::string& sentence)> says;
  std::function<void(const DemoRound& round)> sees;
  // If set: what is called when all iterations are over. The server then stays until `stop`.
  std::function<void(const DemoResult& result)> stays = {};
};

// Runs the demonstration: server, agent and eight trainers as processes of
// their own, on simulated GPUs. Cleans up all of it in any case. `stop` is asked some
// 50 times a second. Errors: kCancelled, kIo (a process failed, and what it said).
Result<DemoResult> RunDemo(const DemoSpec& spec, const DemoWatcher& watcher,
                           const std::function<bool()>& stop);

}  // namespace perseus::demo

#endif  // PERSEUS_DEMO_DEMO_H_
