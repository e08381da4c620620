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

using frontier_testing::CheckConvex;
using frontier_testing::HouseProblem;
using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

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

// The error, for a problem that was right before `breaks`.
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

}  // namespace
}  // namespace perseus::frontier
