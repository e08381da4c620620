// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/window_search.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "frontier/solver.h"
#include "plan/option_search.h"

namespace perseus::plan {
namespace {

// A chain of activities with one option each: all windows take the same work, so what else comes
// between two offers of the first construction is that of the offer, which goes over what is left.
TEST(WindowSearchTest, OffersOfTheFirstConstructionAreCountedAndFew) {
  constexpr int kSize = 65'536;
  TimeCostProblem problem;
  problem.curves = {{{1, 1}}};
  problem.curve_of.assign(kSize, 0);
  SearchSpace space;
  for (int i = 0; i < kSize; ++i) {
    const bool is_last = i + 1 == kSize;
    if (!is_last) problem.precedences.push_back({i, i + 1, 0});
    space.knobs.push_back({0});
    space.next.push_back(is_last ? -1 : i + 1);
  }
  const auto network = frontier::Network::Build(problem, 0);
  ASSERT_TRUE(network) << network.error().message;
  space.options = {{{.length = network->scale.TicksDown(1), .cost = 0}}};
  const frontier::WalkLadder ladder(*network);
  const std::int64_t deadline = ladder.slowest_time();

  // Two offers come before the construction, and passes over the same windows after it, which take
  // less: they do not dive.
  constexpr std::size_t kBefore = 2;
  std::vector<std::int64_t> works;
  const auto gap = [&](std::size_t k) { return works[k] - works[k - 1]; };
  SearchWindows(*network, ladder.ProgramAt(deadline), deadline, space,
                {.usual = 80'000'000, .limit = 1'000'000'000},
                [&](const std::vector<int>* /*better*/, std::int64_t work) {
                  works.push_back(work);
                  return works.size() <= kBefore + 1 || gap(works.size() - 1) >= gap(kBefore) / 2;
                });
  ASSERT_GT(works.size(), kBefore + 1);
  // The first offer of the construction goes over nearly all.
  EXPECT_GE(gap(kBefore + 1), gap(kBefore) + kSize / 2);
  const std::size_t offers = works.size() - kBefore;
  EXPECT_GE(offers, 16U);
  EXPECT_LE(offers, 70U);  // Of 256 places where one may come.
}

}  // namespace
}  // namespace perseus::plan
