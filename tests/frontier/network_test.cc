// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "frontier/problems.h"
#include "support/mentions.h"

namespace perseus::frontier {
namespace {

using frontier_testing::Chain;
using frontier_testing::CheckConvex;
using frontier_testing::HouseProblem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

Curve CurveOf(const std::vector<TimeCost>& options, double slope_quantum = 0) {
  auto network = Network::Build(Chain(options, 1), slope_quantum);
  EXPECT_TRUE(network) << network.error().message;
  return network->curves.at(0);
}

// In units of the problem, slowest first.
std::vector<std::pair<double, double>> Vertices(const std::vector<TimeCost>& options) {
  auto network = Network::Build(Chain(options, 1), 0);
  EXPECT_TRUE(network) << network.error().message;
  const Curve& curve = network->curves.at(0);
  std::vector<std::pair<double, double>> vertices;
  for (std::size_t k = 0; k < curve.lengths.size(); ++k) {
    vertices.emplace_back(network->scale.Time(curve.lengths[k]),
                          curve.slowest_cost + network->scale.Cost(curve.costs[k]));
  }
  return vertices;
}

TEST(NetworkTest, TakesTheLowerHull) {
  using P = std::pair<double, double>;
  EXPECT_THAT(Vertices({{3, 5}}), ElementsAre(P(3, 5)));
  EXPECT_THAT(Vertices({{3, 5}, {1, 9}}), ElementsAre(P(3, 5), P(1, 9)));
  // On a chord, above it, dominated, equal, slower and as cheap.
  EXPECT_THAT(Vertices({{3, 5}, {1, 9}, {2, 7}}), ElementsAre(P(3, 5), P(1, 9)));
  EXPECT_THAT(Vertices({{3, 5}, {1, 9}, {2, 8}}), ElementsAre(P(3, 5), P(1, 9)));
  EXPECT_THAT(Vertices({{3, 5}, {1, 9}, {2, 6}}), ElementsAre(P(3, 5), P(2, 6), P(1, 9)));
  EXPECT_THAT(Vertices({{3, 5}, {1, 9}, {2, 10}}), ElementsAre(P(3, 5), P(1, 9)));
  EXPECT_THAT(Vertices({{3, 5}, {1, 9}, {1, 12}, {3, 6}}), ElementsAre(P(3, 5), P(1, 9)));
  EXPECT_THAT(Vertices({{3, 5}, {4, 5}, {5, 6}}), ElementsAre(P(3, 5)));
  // A vertex that the next one takes back, twice.
  EXPECT_THAT(Vertices({{1, 10}, {2, 9}, {3, 7}, {4, 0}}), ElementsAre(P(4, 0), P(1, 10)));
}

TEST(NetworkTest, TakesOptionsAsFastToNineDigitsForOne) {
  using P = std::pair<double, double>;
  // As fast as the faster, as cheap as the cheaper: never above the truth.
  EXPECT_THAT(Vertices({{2, 9}, {2 + 1e-9, 8}}), ElementsAre(P(2, 8)));
  EXPECT_THAT(Vertices({{2, 9}, {2 + 3e-9, 8}}), ElementsAre(testing::_, P(2, 9)));
}

TEST(NetworkTest, LevelsHaveRisingPrices) {
  const Curve curve = CurveOf({{1, 16}, {2, 8}, {4, 4}, {8, 2}});
  EXPECT_EQ(curve.lengths.size(), 4U);
  EXPECT_EQ(curve.capacities.size(), 4U);
  EXPECT_EQ(curve.capacities.back(), kInfinite);
  for (std::size_t k = 1; k < curve.lengths.size(); ++k) {
    EXPECT_GT(curve.lengths[k - 1], curve.lengths[k]);
    EXPECT_LT(curve.capacities[k - 1], curve.capacities[k]);
    EXPECT_EQ(curve.costs[k] - curve.costs[k - 1], static_cast<Int128>(curve.capacities[k - 1]) *
                                                       (curve.lengths[k - 1] - curve.lengths[k]));
  }
  EXPECT_EQ(curve.costs.front(), 0);
  EXPECT_EQ(curve.slowest_cost, 2);
  EXPECT_EQ(std::max(curve.cost_above, curve.cost_below), 0);
}

TEST(NetworkTest, AQuantumMergesSlopesAndDropsTheLeast) {
  // Slopes 0.2, 1.4, 2.2 become 0, 2, 2 (the errors so far are made up for).
  const Curve curve = CurveOf({{1, 3.8}, {2, 1.6}, {3, 0.2}, {4, 0}}, 2);
  ASSERT_EQ(curve.lengths.size(), 2U);
  EXPECT_EQ(curve.lengths[0], 3 * curve.lengths[1]);
  EXPECT_NEAR(std::max(curve.cost_above, curve.cost_below), 0.4, 1e-12);
}

TEST(NetworkTest, UsesTheGridFully) {
  for (const double unit : {1e-6, 1.0, 1e3, 1e9}) {
    const auto network =
        Network::Build(Chain({{1 * unit, 7e5 * unit}, {2 * unit, 1e5 * unit}}, 100), 0);
    ASSERT_TRUE(network);
    const std::int64_t longest = network->LongestToSink(true)[Network::kSource];
    EXPECT_GE(longest, std::int64_t{1} << 57);
    EXPECT_LE(longest, std::int64_t{1} << 58);
    const std::int64_t steepest = network->curves[0].capacities[0];
    EXPECT_GE(100 * steepest, std::int64_t{1} << 59);
    EXPECT_LE(100 * steepest, (std::int64_t{1} << 60) + 100);
    EXPECT_EQ(network->LongestToSink(false)[Network::kSource], 100 * network->curves[0].lengths[1]);
  }
}

TEST(NetworkTest, HoldsMicrosecondsBesideHoursAndMicrojoulesBesideMegajoules) {
  TimeCostProblem problem;
  problem.curves = {{{1e-6, 3e-6}, {2e-6, 1e-6}}, {{500, 2e6}, {1000, 1e6}}};
  problem.curve_of = {0, 1, 0};
  problem.precedences = {{0, 1, 0}, {1, 2, 0}};
  const auto frontier = SolveFrontier(problem, {});
  ASSERT_TRUE(frontier);
  EXPECT_EQ(CheckConvex(*frontier, 1e-14), "");
  ASSERT_EQ(frontier->breakpoints.size(), 3U);
  EXPECT_DOUBLE_EQ(frontier->breakpoints[0].time, 500.000002);
  EXPECT_DOUBLE_EQ(frontier->breakpoints[1].time, 1000.000002);
  EXPECT_DOUBLE_EQ(frontier->breakpoints[2].time, 1000.000004);
  EXPECT_NEAR(frontier->breakpoints[0].slope, 2000, 1e-9);
  EXPECT_NEAR(frontier->breakpoints[1].slope, 2, 1e-7);  // A tick is 4e-15 here.
}

// What is wrong, for a problem that was right before `breaks`.
std::string ErrorOf(const std::function<void(TimeCostProblem*)>& breaks,
                    ErrorCode code = ErrorCode::kInvalidInput) {
  TimeCostProblem problem = HouseProblem();
  problem.earliest_start = {0, 0, 0};
  EXPECT_TRUE(SolveFrontier(problem, {}));
  breaks(&problem);
  const auto frontier = SolveFrontier(problem, {});
  if (frontier) return "no error";
  EXPECT_EQ(frontier.error().code, code);
  const auto curves = QuantisedCurves(problem, {});
  EXPECT_FALSE(curves);
  return frontier.error().message;
}

TEST(NetworkTest, SaysWhatIsWrong) {
  using Problem = TimeCostProblem;
  EXPECT_THAT(ErrorOf([](Problem* p) { p->curve_of.clear(); }), Mentions("activity"));
  EXPECT_THAT(ErrorOf([](Problem* p) { p->curves[1].clear(); }), Mentions("curve", "1"));
  for (const double bad : {-1.0, kNan, kInf}) {
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->curves[1][0].time = bad; }), Mentions("curve", "1"));
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->precedences[1].delay = bad; }),
                Mentions("precedence", "0", "2"));
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->earliest_start[2] = bad; }), Mentions("earliest"));
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->end_delay = bad; }), Mentions("end", "delay"));
  }
  for (const double bad : {kNan, kInf, -kInf}) {
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->curves[0][2].cost = bad; }), Mentions("0", "5"));
  }
  for (const int bad : {-1, 2}) {
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->curve_of[1] = bad; }), Mentions("activity", "1"));
  }
  for (const int bad : {-1, 3}) {
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->precedences[0].from = bad; }),
                Mentions("precedence", "exist"));
    EXPECT_THAT(ErrorOf([bad](Problem* p) { p->precedences[0].to = bad; }),
                Mentions("precedence", "exist"));
  }
  EXPECT_THAT(ErrorOf([](Problem* p) { p->earliest_start.pop_back(); }),
              Mentions("earliest_start", "2", "3"));
}

TEST(NetworkTest, FindsCycles) {
  EXPECT_THAT(ErrorOf([](TimeCostProblem* p) {
                p->precedences.push_back({2, 0, 0});
              }),
              Mentions("activity", "0"));
  EXPECT_THAT(ErrorOf([](TimeCostProblem* p) {
                p->precedences.push_back({1, 1, 0});
              }),
              Mentions("activity", "1"));
}

TEST(NetworkTest, SaysWhenNumbersDoNotAddUp) {
  EXPECT_THAT(ErrorOf(
                  [](TimeCostProblem* p) {
                    p->curves[0].back().time = 1e308;
                    p->curves[1].back().time = 1e308;
                  },
                  ErrorCode::kOverflow),
              Mentions("large"));
  EXPECT_THAT(ErrorOf(
                  [](TimeCostProblem* p) {
                    p->curves[0][0].cost = 1e308;
                    p->curves[0][1].cost = -1e308;
                    p->curves[0][2].cost = -1.1e308;
                  },
                  ErrorCode::kOverflow),
              Mentions("large"));
}

TEST(NetworkTest, RepeatedPrecedencesAreHarmless) {
  TimeCostProblem house = HouseProblem();
  house.precedences.push_back({0, 1, 0.0});
  house.precedences.push_back({0, 1, 0.0});
  const auto frontier = SolveFrontier(house, {});
  ASSERT_TRUE(frontier);
  ASSERT_EQ(frontier->breakpoints.size(), 4U);
  EXPECT_EQ(frontier->breakpoints.front().cost, 190);
}

TEST(NetworkTest, UnusedCurvesDoNotMatter) {
  TimeCostProblem house = HouseProblem();
  house.curves.push_back({{1e30, 1e40}, {2e30, 3}});
  const auto frontier = SolveFrontier(house, {});
  ASSERT_TRUE(frontier);
  ASSERT_EQ(frontier->breakpoints.size(), 4U);
  EXPECT_EQ(frontier->breakpoints.front().cost, 190);
  EXPECT_EQ(frontier->cost_error, 0);
}

}  // namespace
}  // namespace perseus::frontier
