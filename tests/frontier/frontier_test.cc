// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/frontier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "frontier/problems.h"

namespace perseus {
namespace {

using frontier_testing::Chain;
using frontier_testing::CheckConvex;
using frontier_testing::CheckOptimal;
using frontier_testing::CostAt;
using frontier_testing::EnumerateCosts;
using frontier_testing::HouseProblem;
using frontier_testing::ProblemShape;
using frontier_testing::RandomProblem;
using frontier_testing::StopAtSlope;
using frontier_testing::StopAtTime;
using frontier_testing::UnevenPipeline;
using frontier_testing::WithQuantum;
using frontier_testing::WithSchedules;

MATCHER_P3(IsPoint, time, cost, slope, "") {
  return arg.time == time && arg.cost == cost && arg.slope == slope;
}

TEST(FrontierTest, SolvesTheExampleOfTheHeader) {
  // 5 -> 4 days of the first activity costs 10 a day; then the other two, in
  // parallel, 10 + 10; then 4 -> 2 days of the first, 25.
  const auto frontier = SolveFrontier(HouseProblem(), {});
  ASSERT_TRUE(frontier) << frontier.error().message;
  EXPECT_THAT(frontier->breakpoints, testing::ElementsAre(IsPoint(5, 190, 25), IsPoint(7, 140, 20),
                                                          IsPoint(10, 80, 10), IsPoint(11, 70, 0)));
  EXPECT_TRUE(frontier->complete);
  EXPECT_EQ(frontier->cost_error, 0);
}

TEST(FrontierTest, DelaysAndReleasesAreFixedTime) {
  TimeCostProblem problem = Chain({{1, 10}, {3, 0}}, 2);
  problem.precedences[0].delay = 0.5;
  problem.earliest_start = {0.25, 0};
  problem.end_delay = 1;
  const auto frontier = SolveFrontier(problem, {});
  ASSERT_TRUE(frontier);
  EXPECT_THAT(frontier->breakpoints,
              testing::ElementsAre(IsPoint(3.75, 20, 5), IsPoint(7.75, 0, 0)));

  // A release that is late enough hides what comes before it.
  problem.earliest_start = {0, 10};
  const auto late = SolveFrontier(problem, {});
  ASSERT_TRUE(late);
  EXPECT_THAT(late->breakpoints, testing::ElementsAre(IsPoint(12, 10, 5), IsPoint(14, 0, 0)));
}

TEST(FrontierTest, WithNothingToChooseTheFrontierIsAPoint) {
  for (const std::vector<TimeCost>& curve : std::vector<std::vector<TimeCost>>{
           {{2, 7}}, {{2, 7}, {2, 7}}, {{2, 9}, {2, 7}}, {{2, 7}, {3, 7}}, {{2, 7}, {3, 8}}}) {
    const auto frontier = SolveFrontier(Chain(curve, 2), {});
    ASSERT_TRUE(frontier);
    EXPECT_THAT(frontier->breakpoints, testing::ElementsAre(IsPoint(4, 14, 0)));
    EXPECT_TRUE(frontier->complete);
  }
  const auto nothing = SolveFrontier(Chain({{0, 0}}, 3), WithSchedules({0, 1}));
  ASSERT_TRUE(nothing);
  EXPECT_THAT(nothing->breakpoints, testing::ElementsAre(IsPoint(0, 0, 0)));
  EXPECT_EQ(nothing->schedules[1].time, 0);
}

TEST(FrontierTest, ZeroDurationsAreOrdinary) {
  const auto frontier = SolveFrontier(Chain({{0, 5}, {2, 1}}, 2), {});
  ASSERT_TRUE(frontier);
  EXPECT_THAT(frontier->breakpoints, testing::ElementsAre(IsPoint(0, 10, 2), IsPoint(4, 2, 0)));
}

TEST(FrontierTest, StopsAtATimeOrASlope) {
  const TimeCostProblem house = HouseProblem();
  const auto at_time = SolveFrontier(house, StopAtTime(8));
  ASSERT_TRUE(at_time);
  EXPECT_FALSE(at_time->complete);
  EXPECT_THAT(at_time->breakpoints,
              testing::ElementsAre(IsPoint(7, 140, 20), IsPoint(10, 80, 10), IsPoint(11, 70, 0)));
  const auto at_corner = SolveFrontier(house, StopAtTime(10));
  ASSERT_TRUE(at_corner);
  EXPECT_THAT(at_corner->breakpoints,
              testing::ElementsAre(IsPoint(10, 80, 10), IsPoint(11, 70, 0)));
  const auto at_slope = SolveFrontier(house, StopAtSlope(15));
  ASSERT_TRUE(at_slope);
  EXPECT_FALSE(at_slope->complete);
  EXPECT_THAT(at_slope->breakpoints, testing::ElementsAre(IsPoint(10, 80, 10), IsPoint(11, 70, 0)));
  FrontierOptions both = StopAtTime(1);
  both.stop_slope = 1000;
  const auto beyond = SolveFrontier(house, both);
  ASSERT_TRUE(beyond);
  EXPECT_TRUE(beyond->complete);
  EXPECT_EQ(beyond->breakpoints.size(), 4U);
}

TEST(FrontierTest, SchedulesComeInTheOrderAskedForAndAreClampedToTheFrontier) {
  FrontierOptions options;
  options.schedule_times = {7, 100, 8.5, 0, 10, -3};
  options.stop_time = 9;  // Does not cut wanted schedules off.
  const auto frontier = SolveFrontier(HouseProblem(), options);
  ASSERT_TRUE(frontier);
  const auto& schedules = frontier->schedules;
  ASSERT_EQ(schedules.size(), 6U);
  const std::vector<double> times = {7, 11, 8.5, 5, 10, 5};
  const std::vector<double> costs = {140, 70, 110, 190, 80, 190};
  // At a corner any price between the slopes on both sides.
  const std::vector<double> least_prices = {20, 0, 20, 25, 10, 25};
  const std::vector<double> largest_prices = {25, 10, 20, 25, 20, 25};
  for (std::size_t k = 0; k < times.size(); ++k) {
    EXPECT_EQ(schedules[k].time, times[k]) << k;
    EXPECT_EQ(schedules[k].cost, costs[k]) << k;
    EXPECT_GE(schedules[k].price_of_time, least_prices[k]) << k;
    EXPECT_LE(schedules[k].price_of_time, largest_prices[k]) << k;
  }
  EXPECT_THAT(schedules[2].start, testing::ElementsAre(0, 4, 4));
  EXPECT_THAT(schedules[2].duration, testing::ElementsAre(4, 4.5, 4.5));
  EXPECT_THAT(schedules[2].price, testing::ElementsAre(20, 10, 10));
  EXPECT_THAT(schedules[2].precedence_price, testing::ElementsAre(10, 10));
  EXPECT_EQ(schedules[2].delay_value, 0);
}

TEST(FrontierTest, ProgressOnlyGrows) {
  // Independent activities of many lengths make many breakpoints.
  TimeCostProblem problem;
  for (int k = 1; k <= 400; ++k) {
    problem.curves.push_back({{1, 1.0 * k}, {2.0 + k, 0}});
    problem.curve_of.push_back(k - 1);
  }
  std::vector<double> shares;
  FrontierOptions options;
  options.progress = [&shares](const Progress& now) {
    shares.push_back(now.share);
    return true;
  };
  ASSERT_TRUE(SolveFrontier(problem, options));
  ASSERT_GE(shares.size(), 2U);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_GE(shares.front(), 0);
  EXPECT_LE(shares.back(), 1);
}

TEST(FrontierTest, CanBeCancelled) {
  int asked = 0;
  FrontierOptions options;
  options.progress = [&asked](const Progress&) { return ++asked < 2; };
  const auto frontier = SolveFrontier(UnevenPipeline(4, 40), options);
  ASSERT_FALSE(frontier);
  EXPECT_EQ(frontier.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(asked, 2);
  // Even where there is next to nothing to do.
  options.progress = [](const Progress&) { return false; };
  EXPECT_FALSE(SolveFrontier(HouseProblem(), options));
  options.progress = [](const Progress&) { return true; };
  EXPECT_TRUE(SolveFrontier(HouseProblem(), options));
}

// Numbers that do not depend on the machine. Breakpoints are a property of the
// problem; pivots and work may only change with the algorithm, and on purpose.
TEST(FrontierTest, CountsStayAsTheyAre) {
  struct Case {
    int stages;
    int microbatches;
    double slope_quantum;
    std::size_t breakpoints;
    long long pivots;
    long long work;
  };
  for (const Case& c : {Case{4, 64, 0, 289, 4280, 220680},
                        {8, 32, 0, 1242, 4463, 588610},
                        {8, 32, 0.25, 210, 4116, 248920},
                        {16, 48, 0.25, 441, 14450, 1540270}}) {
    const auto frontier =
        SolveFrontier(UnevenPipeline(c.stages, c.microbatches), WithQuantum(c.slope_quantum));
    ASSERT_TRUE(frontier);
    SCOPED_TRACE(testing::Message() << c.stages << " x " << c.microbatches);
    EXPECT_EQ(frontier->breakpoints.size(), c.breakpoints);
    EXPECT_EQ(frontier->pivots, c.pivots);
    EXPECT_EQ(frontier->work, c.work);
  }
}

// Rounded slopes are multiples of one whole number of units: sums that should
// be equal are, and make no breakpoints of their own.
TEST(FrontierTest, CoarseSlopesAddUpToCoarseSlopes) {
  constexpr double kQuantum = 0.3;
  const auto frontier = SolveFrontier(UnevenPipeline(8, 48), WithQuantum(kQuantum));
  ASSERT_TRUE(frontier);
  const double steepest = frontier->breakpoints.front().slope;
  EXPECT_LE(static_cast<double>(frontier->breakpoints.size()), steepest / kQuantum + 2);
}

// The whole frontier against trying every combination of durations.
RC_GTEST_PROP(FrontierProperty, EqualsEnumeration, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const TimeCostProblem problem = RandomProblem(random, {});
  const std::vector<double> costs = EnumerateCosts(problem);
  const auto frontier = SolveFrontier(problem, {});
  RC_ASSERT(frontier.has_value());
  const std::string shape = CheckConvex(*frontier, 1e-12);
  RC_LOG(shape);
  RC_ASSERT(shape.empty());
  std::size_t fastest = 0;
  while (!std::isfinite(costs[fastest])) ++fastest;
  const double least = costs.back();
  std::size_t slowest = fastest;
  while (costs[slowest] > least + 1e-9) ++slowest;
  RC_ASSERT(frontier->breakpoints.front().time == static_cast<double>(fastest));
  RC_ASSERT(frontier->breakpoints.back().time == static_cast<double>(slowest));
  for (std::size_t k = fastest; k < costs.size(); ++k) {
    const double cost = CostAt(*frontier, static_cast<double>(k));
    RC_ASSERT(std::abs(cost - costs[k]) <= 1e-11 * (1 + std::abs(costs[k])));
  }
  for (const FrontierBreakpoint& point : frontier->breakpoints) {
    RC_ASSERT(point.time == std::round(point.time));
  }
}

// With whole numbers throughout there is nothing to round: every condition of
// optimality holds to the last bit.
RC_GTEST_PROP(FrontierProperty, WholeNumbersAreProvedOptimalWithoutTolerance,
              (std::uint32_t seed)) {
  std::mt19937 random(seed);
  ProblemShape shape;
  shape.most_activities = 40;
  shape.most_options = 6;
  shape.longest = 12;
  shape.whole_slopes = true;
  const TimeCostProblem problem = RandomProblem(random, shape);
  const auto whole = SolveFrontier(problem, {});
  RC_ASSERT(whole.has_value());
  RC_ASSERT(whole->cost_error == 0);
  RC_ASSERT(CheckConvex(*whole, 0).empty());
  const auto curves = QuantisedCurves(problem, {});
  RC_ASSERT(curves.has_value());
  FrontierOptions options;
  const double first = whole->breakpoints.front().time;
  const double last = whole->breakpoints.back().time;
  for (double time = first - 1; time <= last + 1; time += 0.5) {
    options.schedule_times.push_back(time);
  }
  std::shuffle(options.schedule_times.begin(), options.schedule_times.end(), random);
  const auto frontier = SolveFrontier(problem, options);
  RC_ASSERT(frontier.has_value());
  for (std::size_t k = 0; k < options.schedule_times.size(); ++k) {
    const TimeCostSchedule& schedule = frontier->schedules[k];
    const double time = std::clamp(options.schedule_times[k], first, last);
    RC_ASSERT(schedule.time == time);
    RC_ASSERT(schedule.cost == CostAt(*whole, time));
    const std::string error = CheckOptimal(problem, *curves, schedule, 0);
    RC_LOG(error);
    RC_ASSERT(error.empty());
  }
}

// Fractions round to the grid, and the same conditions hold to 1e-12.
RC_GTEST_PROP(FrontierProperty, FractionsAreProvedOptimal, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  ProblemShape shape;
  shape.most_activities = 30;
  shape.most_options = 8;
  shape.longest = 9;
  TimeCostProblem problem = RandomProblem(random, shape);
  const double time_unit = std::pow(10.0, static_cast<double>(random() % 10) - 6);
  const double cost_unit = std::pow(10.0, static_cast<double>(random() % 13) - 6);
  const auto jitter = [&random]() { return 1 + static_cast<double>(random()) / 0x1p34; };
  for (auto& curve : problem.curves) {
    for (TimeCost& option : curve) {
      option.time *= time_unit * jitter();
      option.cost *= cost_unit * jitter();
    }
  }
  for (TimeCostPrecedence& p : problem.precedences) p.delay *= time_unit * jitter();
  for (double& start : problem.earliest_start) start *= time_unit * jitter();
  problem.end_delay *= time_unit * jitter();
  const auto curves = QuantisedCurves(problem, {});
  RC_ASSERT(curves.has_value());
  const auto ends = SolveFrontier(problem, {});
  RC_ASSERT(ends.has_value());
  const double first = ends->breakpoints.front().time;
  const double last = ends->breakpoints.back().time;
  FrontierOptions options;
  for (int k = 0; k <= 12; ++k) options.schedule_times.push_back(first + (last - first) * k / 12);
  const auto frontier = SolveFrontier(problem, options);
  RC_ASSERT(frontier.has_value());
  for (const TimeCostSchedule& schedule : frontier->schedules) {
    const std::string error = CheckOptimal(problem, *curves, schedule, 1e-12);
    RC_LOG(error);
    RC_ASSERT(error.empty());
  }
}

// Scaling by powers of two changes no digit.
RC_GTEST_PROP(FrontierProperty, ScalesExactlyWithPowersOfTwo, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  ProblemShape shape;
  shape.most_activities = 20;
  const TimeCostProblem problem = RandomProblem(random, shape);
  const double time_scale = std::ldexp(1.0, static_cast<int>(random() % 81) - 40);
  const double cost_scale = std::ldexp(1.0, static_cast<int>(random() % 81) - 40);
  TimeCostProblem scaled = problem;
  for (auto& curve : scaled.curves) {
    for (TimeCost& option : curve) {
      option.time *= time_scale;
      option.cost *= cost_scale;
    }
  }
  for (TimeCostPrecedence& p : scaled.precedences) p.delay *= time_scale;
  for (double& start : scaled.earliest_start) start *= time_scale;
  scaled.end_delay *= time_scale;
  const auto a = SolveFrontier(problem, {});
  const auto b = SolveFrontier(scaled, {});
  RC_ASSERT(a.has_value() && b.has_value());
  RC_ASSERT(a->pivots == b->pivots);
  RC_ASSERT(a->cost_error * cost_scale == b->cost_error);
  RC_ASSERT(a->breakpoints.size() == b->breakpoints.size());
  for (std::size_t k = 0; k < a->breakpoints.size(); ++k) {
    RC_ASSERT(a->breakpoints[k].time * time_scale == b->breakpoints[k].time);
    RC_ASSERT(a->breakpoints[k].cost * cost_scale == b->breakpoints[k].cost);
    RC_ASSERT(a->breakpoints[k].slope * (cost_scale / time_scale) == b->breakpoints[k].slope);
  }
}

// The coarse mode's curve stays within its own bound of the exact one.
RC_GTEST_PROP(FrontierProperty, CoarseErrorIsWithinItsBound, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  ProblemShape shape;
  shape.most_activities = 30;
  shape.most_options = 8;
  shape.longest = 12;
  const TimeCostProblem problem = RandomProblem(random, shape);
  const auto exact = SolveFrontier(problem, {});
  const double quantum = 0.1 * static_cast<double>(1 + random() % 40);
  const auto coarse = SolveFrontier(problem, WithQuantum(quantum));
  RC_ASSERT(exact.has_value() && coarse.has_value());
  RC_ASSERT(coarse->breakpoints.front().time == exact->breakpoints.front().time);
  for (const FrontierBreakpoint& point : coarse->breakpoints) {
    const double multiple = point.slope / quantum;
    RC_ASSERT(std::abs(multiple - std::round(multiple)) < 1e-6);
  }
  const double first = exact->breakpoints.front().time;
  const double last = exact->breakpoints.back().time;
  for (int k = 0; k <= 50; ++k) {
    const double time = first + (last - first) * k / 50;
    const double difference = std::abs(CostAt(*exact, time) - CostAt(*coarse, time));
    RC_ASSERT(difference <= coarse->cost_error + 1e-9);
  }
}

TEST(FrontierTest, QuantisedCurvesAreTheHullsThemselvesWhereTheyFitTheGrid) {
  TimeCostProblem problem = Chain({{4, 3}, {1, 10}, {2, 9}, {3, 2}, {5, 1}}, 1);
  problem.curves.push_back({{2, 8}});
  problem.curve_of.push_back(1);
  const auto curves = QuantisedCurves(problem, {});
  ASSERT_TRUE(curves);
  ASSERT_EQ(curves->size(), 2U);
  ASSERT_EQ((*curves)[0].size(), 3U);
  EXPECT_EQ((*curves)[0][0].time, 1);
  EXPECT_EQ((*curves)[0][0].cost, 10);
  EXPECT_EQ((*curves)[0][1].time, 3);
  EXPECT_EQ((*curves)[0][2].cost, 1);
  ASSERT_EQ((*curves)[1].size(), 1U);
}

TEST(FrontierTest, IsDeterministic) {
  std::mt19937 random(7);
  ProblemShape shape;
  shape.most_activities = 200;
  shape.most_options = 8;
  shape.longest = 30;
  for (int round = 0; round < 10; ++round) {
    const TimeCostProblem problem = RandomProblem(random, shape);
    const FrontierOptions options = WithSchedules({20, 30, 40});
    const auto a = SolveFrontier(problem, options);
    const auto b = SolveFrontier(problem, options);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(a->pivots, b->pivots);
    ASSERT_EQ(a->breakpoints.size(), b->breakpoints.size());
    for (std::size_t k = 0; k < a->schedules.size(); ++k) {
      EXPECT_EQ(a->schedules[k].start, b->schedules[k].start);
      EXPECT_EQ(a->schedules[k].duration, b->schedules[k].duration);
      EXPECT_EQ(a->schedules[k].price, b->schedules[k].price);
    }
  }
}

// A wide segment whose slope is rounded to nothing next to a very narrow one.
TEST(FrontierTest, CoarseErrorsDoNotPileUpOnNarrowSegments) {
  for (const double gap : {2e-2, 3e-6, 3e-9}) {
    TimeCostProblem problem;
    problem.curves = {{{1, 104.1}, {1 + gap, 104}, {2, 100}}};
    problem.curve_of.assign(16, 0);
    const auto exact = SolveFrontier(problem, {});
    const auto coarse = SolveFrontier(problem, {.slope_quantum = 10});
    ASSERT_TRUE(exact && coarse) << gap;
    for (const FrontierBreakpoint& point : coarse->breakpoints) EXPECT_GE(point.slope, 0);
    EXPECT_LE(std::abs(coarse->breakpoints.back().cost - exact->breakpoints.back().cost),
              coarse->cost_error + 1e-6);
    EXPECT_LE(std::abs(coarse->breakpoints.front().cost - exact->breakpoints.front().cost),
              coarse->cost_error + 1e-6);
  }
}

TEST(FrontierTest, HullsOfExtremeNumbersKeepTheirVertices) {
  for (const double scale : {9e300, 1e-190}) {
    TimeCostProblem problem;
    problem.curves = {{{1e10, scale}, {2e10, scale / 9}, {4e10, 0}}};
    problem.curve_of = {0};
    const auto curves = QuantisedCurves(problem, {});
    ASSERT_TRUE(curves) << curves.error().message;
    ASSERT_EQ((*curves)[0].size(), 3U) << scale;
    EXPECT_NEAR((*curves)[0][1].cost / (scale / 9), 1, 1e-12);
  }
}

TEST(FrontierTest, RefusesOptionsThatMeanNothing) {
  TimeCostProblem problem;
  problem.curves = {{{1, 3}, {2, 1}}};
  problem.curve_of = {0};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(SolveFrontier(problem, {.slope_quantum = -1}).error().message,
            "the slope quantum is -1; expected a number >= 0");
  EXPECT_FALSE(SolveFrontier(problem, {.slope_quantum = nan}));
  EXPECT_FALSE(SolveFrontier(problem, {.stop_time = nan}));
  EXPECT_FALSE(SolveFrontier(problem, {.stop_slope = nan}));
  EXPECT_FALSE(SolveFrontier(problem, WithSchedules({1, nan})));
  EXPECT_FALSE(QuantisedCurves(problem, {.slope_quantum = nan}));
}

}  // namespace
}  // namespace perseus
