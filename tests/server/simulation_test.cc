// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Servers of one job that follow one another, in random interleavings, each reproducible from its
// seed:
//   PERSEUS_SIMULATION_SEED=N server_test --gtest_filter='Simulation*'
// runs that one alone, PERSEUS_SIMULATION_RUNS=N as many as that.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/simulation/world.h"

namespace perseus::server {
namespace {

constexpr std::uint64_t kRuns = 10'000;
std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void RunSeed(PlanMaker* maker, std::uint64_t seed) {
  const int steps = 50 + static_cast<int>(seed % 400);
  const std::string broken = World(maker, seed).Run(steps);
  ASSERT_EQ(broken, "") << "PERSEUS_SIMULATION_SEED=" << seed;
}

TEST(SimulationTest, NoRuleIsBrokenInAnyInterleaving) {
  PlanMaker maker;
  const std::uint64_t first = Number("PERSEUS_SIMULATION_SEED", 1);
  const std::uint64_t runs =
      Number("PERSEUS_SIMULATION_RUNS", std::getenv("PERSEUS_SIMULATION_SEED") ? 1 : kRuns);
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    ASSERT_NO_FATAL_FAILURE(RunSeed(&maker, seed));
  }
}

}  // namespace
}  // namespace perseus::server
