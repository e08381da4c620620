// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/walk_ladder.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>

#include "frontier/network.h"
#include "frontier/problems.h"
#include "frontier/solver.h"

namespace perseus::frontier {
namespace {

using frontier_testing::ProblemShape;
using frontier_testing::RandomProblem;

// Two walks have the same basis if their flows and event times agree.
bool SameBasis(const Network& network, const Walk& a, const Walk& b) {
  if (a.time() != b.time() || a.next_time() != b.next_time() || a.slope() != b.slope())
    return false;
  if (a.cost() != b.cost() || a.pivots() != b.pivots()) return false;
  for (int arc = 0; arc < static_cast<int>(network.arcs.size()); ++arc) {
    if (a.ArcFlow(arc) != b.ArcFlow(arc)) return false;
  }
  return a.EventTimes(a.time()) == b.EventTimes(b.time());
}

Walk FreshWalk(const Network& network, std::int64_t deadline) {
  Walk walk(network);
  while (!walk.at_fastest() && walk.next_time() > deadline) walk.Advance();
  return walk;
}

RC_GTEST_PROP(WalkLadderProperty, GivesTheBasisOfAFreshWalk, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  ProblemShape shape;
  shape.most_activities = 60;
  shape.most_options = 7;
  shape.longest = static_cast<int>(2 + random() % 40);
  const auto network = Network::Build(RandomProblem(random, shape), 0);
  RC_ASSERT(network.has_value());
  LadderOptions options;
  options.most_bytes = std::size_t{1} << (10 + random() % 10);
  const WalkLadder full(*network);
  const WalkLadder partial(*network, options);
  LadderOptions least = options;
  least.most_bytes = 0;  // One rung, which there always is.
  RC_ASSERT(partial.bytes() <= std::max(options.most_bytes, WalkLadder(*network, least).bytes()));
  for (int k = -1; k <= 9; ++k) {
    const std::int64_t deadline =
        full.fastest_time() + (full.slowest_time() - full.fastest_time()) / 8 * k;
    const Walk fresh = FreshWalk(*network, deadline);
    RC_ASSERT(SameBasis(*network, full.WalkTo(deadline), fresh));
    RC_ASSERT(SameBasis(*network, partial.WalkTo(deadline), fresh));
    const DeadlineProgram program = partial.ProgramAt(deadline);
    if (deadline >= full.slowest_time()) {
      RC_ASSERT(program.objective() <= 0);
      continue;
    }
    const std::int64_t reached = std::max(deadline, full.fastest_time());
    RC_ASSERT(program.objective() ==
              fresh.cost() + static_cast<Int128>(fresh.slope()) * (fresh.time() - reached));
    RC_ASSERT(program.PriceOfTime() == fresh.slope());
  }
}

}  // namespace
}  // namespace perseus::frontier
