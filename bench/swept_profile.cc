// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The profile that a sweep makes of GPUs whose truth is known, for bench/goal_run.py:
//
//   swept_profile TRUTH.csv BLOCKING_WATTS TIME_NOISE HEAT SEED
//
// The ranks of a 1F1B pipeline sweep while they train, with heavy tails in what computations take,
// GPUs that become warm, and a counter that steps. The profile goes to standard output, the
// blocking power of a rank (the median) to its first line: "# blocking 85.1".

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "measure/simulated_sweep.h"
#include "perseus/profile.h"
#include "sweep_plans.h"

namespace perseus::measure {
namespace {

int Main(char** arguments) {
  Result<Profile> truth = ReadProfile(arguments[1]);
  if (!truth) {
    fmt::print(stderr, "swept_profile: {}\n", truth.error().message);
    return 2;
  }
  SimulatedPipeline pipeline;
  pipeline.truth = *std::move(truth);
  pipeline.blocking_watts = std::atof(arguments[2]);
  pipeline.time_noise = std::atof(arguments[3]);
  pipeline.heat = std::atof(arguments[4]);
  pipeline.heavy_tails = true;
  pipeline.counter_seconds = 0.05;
  pipeline.seed = std::strtoull(arguments[5], nullptr, 10);
  const Result<SimulatedResult> swept = SimulateSweep(pipeline);
  if (!swept) {
    fmt::print(stderr, "swept_profile: {}\n", swept.error().message);
    return 2;
  }
  std::vector<double> blocking = SweptBlocking(*swept);
  std::sort(blocking.begin(), blocking.end());
  fmt::print("# blocking {}\n{}", blocking[blocking.size() / 2], SweptCsv(*swept));
  return 0;
}

}  // namespace
}  // namespace perseus::measure

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  return perseus::measure::Main(argv);
}
