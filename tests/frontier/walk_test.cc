// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/walk.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

#include "frontier/network.h"
#include "frontier/problems.h"

namespace perseus::frontier {
namespace {

using frontier_testing::ProblemShape;
using frontier_testing::RandomProblem;

// Checks the flow and the event times of the current piece in integers: flow
// conservation, every arc long enough, and flow only where it is optimal.
std::string CheckPiece(const Network& network, const Walk& walk, std::int64_t deadline) {
  const std::vector<std::int64_t> times = walk.EventTimes(deadline);
  if (times[Network::kSource] < 0 || times[Network::kSink] != deadline) return "the ends";
  std::vector<std::int64_t> balance(network.num_nodes(), 0);
  for (int a = 0; a < static_cast<int>(network.arcs.size()); ++a) {
    const Network::Arc& arc = network.arcs[a];
    const std::int64_t flow = walk.ArcFlow(a);
    if (flow < 0) return "a negative flow";
    balance[arc.tail] += flow;
    balance[arc.head] -= flow;
    const std::int64_t apart = times[arc.head] - times[arc.tail];
    if (a >= network.num_activities) {
      if (apart < arc.length) return "a precedence is violated";
      if (flow > 0 && apart != arc.length) return "flow on a slack precedence";
      continue;
    }
    const Curve& curve = network.CurveOf(a);
    // The slowest and fastest durations at which this price is optimal.
    std::size_t slowest = 0;
    while (curve.capacities[slowest] < flow) ++slowest;
    std::size_t fastest = slowest;
    if (curve.capacities[fastest] == flow) ++fastest;
    if (apart < curve.lengths[fastest]) return "an activity is too fast for its price";
    if (apart > curve.lengths[slowest] && flow > 0) return "an activity is too slow for its price";
  }
  for (int v = 0; v < network.num_nodes(); ++v) {
    const std::int64_t expected = v == Network::kSource ? walk.slope()
                                  : v == Network::kSink ? -walk.slope()
                                                        : 0;
    if (balance[v] != expected) return "flow is not conserved";
  }
  return "";
}

RC_GTEST_PROP(WalkProperty, EveryPieceIsOptimalInIntegers, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  ProblemShape shape;
  shape.most_activities = 60;
  shape.most_options = 7;
  shape.longest = static_cast<int>(2 + random() % 40);
  const auto network = Network::Build(RandomProblem(random, shape), 0);
  RC_ASSERT(network.has_value());
  Walk walk(*network);
  RC_ASSERT(walk.time() == network->LongestToSink(true)[Network::kSource]);
  RC_ASSERT(walk.cost() == 0);
  std::int64_t slope = 0;
  while (!walk.at_fastest()) {
    RC_ASSERT(walk.next_time() < walk.time());
    RC_ASSERT(walk.slope() >= slope);
    slope = walk.slope();
    for (const std::int64_t deadline :
         {walk.time(), walk.next_time(), (walk.time() + walk.next_time()) / 2}) {
      const std::string error = CheckPiece(*network, walk, deadline);
      RC_LOG(error);
      RC_ASSERT(error.empty());
    }
    walk.Advance();
  }
  const std::string error = CheckPiece(*network, walk, walk.time());
  RC_LOG(error);
  RC_ASSERT(error.empty());
  RC_ASSERT(walk.time() == network->LongestToSink(false)[Network::kSource]);
}

TEST(WalkTest, TiesDoNotCycle) {
  // A lattice of equal activities: every pivot is degenerate.
  constexpr int kSide = 16;
  TimeCostProblem problem;
  problem.curves = {{{1, 4}, {2, 2}, {3, 1}}};
  problem.curve_of.assign(kSide * kSide, 0);
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const int i = row * kSide + column;
      if (column + 1 < kSide) problem.precedences.push_back({i, i + 1, 0});
      if (row + 1 < kSide) problem.precedences.push_back({i, i + kSide, 0});
    }
  }
  const auto network = Network::Build(problem, 0);
  ASSERT_TRUE(network);
  Walk walk(*network);
  while (!walk.at_fastest()) walk.Advance();
  EXPECT_EQ(network->scale.Time(walk.time()), 2 * kSide - 1);
  EXPECT_LT(walk.pivots(), 20 * kSide * kSide);
}

}  // namespace
}  // namespace perseus::frontier
