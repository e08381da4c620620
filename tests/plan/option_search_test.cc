// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/option_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "frontier/solver.h"

namespace perseus::plan {
namespace {

using frontier::DeadlineProgram;
using frontier::Int128;
using frontier::Network;

constexpr std::int64_t kWork = 20'000'000;

// Activities with whole times and costs on a random graph.
struct Case {
  TimeCostProblem problem;
  SearchSpace space;
  double deadline = 0;
};

Case RandomCase(std::mt19937& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<std::uint32_t>(n));
  };
  Case result;
  TimeCostProblem& problem = result.problem;
  constexpr int kKnobs = 3;
  for (int c = 0; c < 3; ++c) {
    auto& curve = problem.curves.emplace_back();
    for (int k = 0; k < kKnobs; ++k) {
      curve.push_back({2.0 + 2 * k + below(2), 30.0 - 9 * k + below(8)});
    }
  }
  const int n = 4 + below(4);
  for (int i = 0; i < n; ++i) problem.curve_of.push_back(below(3));
  for (int i = 0; i < n; ++i) {
    for (int j = i + 1; j < n; ++j) {
      if (below(3) == 0) problem.precedences.push_back({i, j, 0});
    }
  }
  for (int i = 0; i < n; ++i) {
    result.space.knobs.push_back({0, 1, 2});
    result.space.next.push_back(i + 1 < n ? i + 1 : -1);
  }
  return result;
}

double End(const TimeCostProblem& problem, const std::vector<int>& knob_of) {
  std::vector<double> start(problem.curve_of.size(), 0);
  double end = 0;
  for (std::size_t i = 0; i < start.size(); ++i) {  // Precedences go up.
    for (const TimeCostPrecedence& p : problem.precedences) {
      if (p.to != static_cast<int>(i)) continue;
      const auto& curve = problem.curves[problem.curve_of[p.from]];
      start[i] = std::max(start[i], start[p.from] + curve[knob_of[p.from]].time);
    }
    end = std::max(end, start[i] + problem.curves[problem.curve_of[i]][knob_of[i]].time);
  }
  return end;
}

// Cost of a choice of knobs, infinite where it misses the deadline.
double CostOf(const Case& c, const std::vector<int>& knobs) {
  double cost = 0;
  for (std::size_t i = 0; i < knobs.size(); ++i) {
    cost += c.problem.curves[c.problem.curve_of[i]][knobs[i]].cost;
  }
  return End(c.problem, knobs) <= c.deadline ? cost : std::numeric_limits<double>::infinity();
}

double LeastCost(const Case& c) {
  std::vector<int> knobs(c.space.knobs.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    least = std::min(least, CostOf(c, knobs));
    std::size_t g = 0;
    for (; g < knobs.size() && knobs[g] == 2; ++g) knobs[g] = 0;
    if (g == knobs.size()) return least;
    ++knobs[g];
  }
}

// What is reported within `work`, in order.
std::vector<std::vector<int>> Reports(Case* c, std::int64_t work) {
  const auto network = Network::Build(c->problem, 0);
  EXPECT_TRUE(network);
  c->space.options.clear();
  for (std::size_t t = 0; t < c->problem.curves.size(); ++t) {
    auto& row = c->space.options.emplace_back();
    for (const TimeCost& option : c->problem.curves[t]) {
      const double cost = option.cost - network->curves[t].slowest_cost;
      const int bits = network->scale.time_bits + network->scale.slope_bits;
      row.push_back({.length = network->scale.TicksDown(option.time),
                     .cost = static_cast<Int128>(std::ldexp(cost, bits))});
    }
  }
  const std::int64_t deadline = network->scale.TicksDown(c->deadline);
  const frontier::WalkLadder ladder(*network);
  std::vector<std::vector<int>> reports;
  SearchOptions(*network, ladder.ProgramAt(std::min(ladder.slowest_time(), deadline)), c->space,
                {.usual = kWork, .limit = work},
                [&reports](const std::vector<int>* better, std::int64_t /*work*/) {
                  if (better != nullptr) reports.push_back(*better);
                  return true;
                });
  return reports;
}

std::optional<std::vector<int>> Search(Case* c, std::int64_t work) {
  const std::vector<std::vector<int>> reports = Reports(c, work);
  if (reports.empty()) return std::nullopt;
  return reports.back();
}

TEST(OptionSearchTest, SmallProblemsAreSolvedToTheOptimum) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    Case c = RandomCase(random);
    const std::vector<int> fast(c.problem.curve_of.size(), 0);
    const std::vector<int> slow(c.problem.curve_of.size(), 2);
    const double first = End(c.problem, fast);
    const double last = End(c.problem, slow);
    c.deadline = first + std::floor((last - first) * (round % 7) / 6);
    const auto knobs = Search(&c, kWork);
    ASSERT_TRUE(knobs);
    ASSERT_EQ(knobs->size(), c.space.knobs.size());
    EXPECT_NEAR(CostOf(c, *knobs), LeastCost(c), 1e-9) << "round " << round;
  }
}

TEST(OptionSearchTest, LittleWorkStillGivesAPlan) {
  std::mt19937 random(12);
  for (int round = 0; round < 100; ++round) {
    Case c = RandomCase(random);
    const std::vector<int> fast(c.problem.curve_of.size(), 0);
    c.deadline = End(c.problem, fast) + round % 5;
    const auto knobs = Search(&c, 1);
    ASSERT_TRUE(knobs);
    EXPECT_TRUE(std::isfinite(CostOf(c, *knobs)));
  }
}

TEST(OptionSearchTest, ALimitOnlyCutsTheSequence) {
  std::mt19937 random(14);
  int reported = 0;
  for (int round = 0; round < 30; ++round) {
    Case c = RandomCase(random);
    const std::vector<int> fast(c.problem.curve_of.size(), 0);
    c.deadline = End(c.problem, fast) + 1 + round % 4;
    const auto all = Reports(&c, kWork);
    double last = std::numeric_limits<double>::infinity();
    for (const std::vector<int>& knobs : all) {
      EXPECT_LT(CostOf(c, knobs), last);
      last = CostOf(c, knobs);
    }
    reported += static_cast<int>(all.size());
    for (const std::int64_t work : {1, 100, 1000, 10'000}) {
      const auto some = Reports(&c, work);
      ASSERT_LE(some.size(), all.size());
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << round << ' ' << work;
    }
  }
  EXPECT_GT(reported, 30);
}

TEST(OptionSearchTest, IsDeterministic) {
  std::mt19937 random(13);
  for (int round = 0; round < 20; ++round) {
    Case c = RandomCase(random);
    const std::vector<int> fast(c.problem.curve_of.size(), 0);
    c.deadline = End(c.problem, fast) + 2;
    EXPECT_EQ(Search(&c, 100'000), Search(&c, 100'000));
  }
}

}  // namespace
}  // namespace perseus::plan
