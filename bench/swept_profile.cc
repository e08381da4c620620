// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The profile that a sweep makes of GPUs whose truth is known, for bench/goal_run.py:
//
//   swept_profile TRUTH.csv BLOCKING_WATTS TIME_NOISE HEAT SEED
//
// Watts are above 0; noise and heat are shares, from 0 to below 1.
//
// The ranks of a 1F1B pipeline sweep while they train, with heavy tails in what computations take,
// GPUs that become warm, and a counter that steps. The profile goes to standard output, the
// blocking power of a rank (the median) to its first line: "# blocking 85.1".

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/numbers.h"
#include "measure/simulated_sweep.h"
#include "perseus/profile.h"
#include "perseus/result.h"
#include "sweep_plans.h"

namespace perseus::measure {
namespace {

constexpr std::string_view kUsage =
    "expected TRUTH.csv BLOCKING_WATTS TIME_NOISE HEAT SEED: watts above 0, shares from 0 to "
    "below 1, a whole number from 0";

// The error is a sentence.
Result<SimulatedPipeline> Read(std::span<char*> arguments) {
  if (arguments.size() != 6) return MakeError(ErrorCode::kInvalidInput, std::string(kUsage));
  const std::optional<double> watts = ParseFinite(arguments[2]);
  const std::optional<double> noise = ParseFinite(arguments[3]);
  const std::optional<double> heat = ParseFinite(arguments[4]);
  const std::optional<std::uint64_t> seed = ParseInteger<std::uint64_t>(arguments[5]);
  const auto is_share = [](const std::optional<double>& x) { return x && *x >= 0 && *x < 1; };
  const std::pair<bool, int> checks[] = {
      {watts && *watts > 0, 2}, {is_share(noise), 3}, {is_share(heat), 4}, {seed.has_value(), 5}};
  for (const auto& [is_good, i] : checks) {
    if (is_good) continue;
    return MakeError(ErrorCode::kInvalidInput,
                     fmt::format("argument {}, '{}', is wrong: {}", i,
                                 arguments[static_cast<std::size_t>(i)], kUsage));
  }
  Result<Profile> truth = ReadProfile(arguments[1]);
  if (!truth) return tl::unexpected(truth.error());
  SimulatedPipeline pipeline;
  pipeline.truth = *std::move(truth);
  pipeline.blocking_watts = *watts;
  pipeline.time_noise = *noise;
  pipeline.heat = *heat;
  pipeline.heavy_tails = true;
  pipeline.counter_seconds = 0.05;
  pipeline.seed = *seed;
  return pipeline;
}

int Main(std::span<char*> arguments) {
  const Result<SimulatedPipeline> pipeline = Read(arguments);
  const Result<SimulatedResult> swept =
      pipeline ? SimulateSweep(*pipeline)
               : Result<SimulatedResult>(tl::unexpected(pipeline.error()));
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
  return perseus::measure::Main({argv, static_cast<std::size_t>(argc)});
}
