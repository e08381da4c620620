// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "perseus/planner_c.h"
#include "planner_c/planner_testing.h"

namespace perseus::planner_c {
namespace {

// A graph that owns its arrays.
struct Graph {
  std::vector<std::int32_t> curve_of;
  std::vector<std::int32_t> first_option = {0};
  std::vector<double> time;
  std::vector<double> cost;
  std::vector<std::int32_t> from;
  std::vector<std::int32_t> to;
  std::vector<double> delay;

  void AddCurve(const std::vector<std::pair<double, double>>& options) {
    for (const auto& [t, c] : options) {
      time.push_back(t);
      cost.push_back(c);
    }
    first_option.push_back(static_cast<std::int32_t>(time.size()));
  }

  perseus_dag Dag() const {
    perseus_dag dag = {};
    dag.struct_size = sizeof(dag);
    dag.num_operations = static_cast<std::int32_t>(curve_of.size());
    dag.num_curves = static_cast<std::int32_t>(first_option.size()) - 1;
    dag.curve_of = curve_of.data();
    dag.first_option = first_option.data();
    dag.option_time = time.data();
    dag.option_cost = cost.data();
    dag.num_precedences = from.size();
    dag.from = from.data();
    dag.to = to.data();
    dag.delay = delay.empty() ? nullptr : delay.data();
    return dag;
  }
};

struct Solved {
  perseus_status status = PERSEUS_OK;
  std::string message;
  DagHandle solution;
};

Solved Solve(const perseus_dag& dag) {
  perseus_dag_solution* solution = nullptr;
  char* message = nullptr;
  Solved solved;
  solved.status = perseus_dag_solve(&dag, nullptr, nullptr, &solution, &message);
  solved.solution.reset(solution);
  solved.message = Take(message);
  return solved;
}

perseus_frontier FrontierOf(const Solved& solved) {
  perseus_frontier frontier = {};
  frontier.struct_size = sizeof(frontier);
  EXPECT_EQ(perseus_dag_frontier(solved.solution.get(), &frontier, nullptr), PERSEUS_OK);
  return frontier;
}

Graph House() {
  Graph graph;
  graph.AddCurve({{2, 90}, {4, 40}});
  graph.AddCurve({{6, 20}, {3, 50}});  // In any order.
  graph.AddCurve({{1, 5}});
  graph.curve_of = {0, 1, 1, 2};
  graph.from = {0, 0, 1, 2};
  graph.to = {1, 2, 3, 3};
  return graph;
}

TEST(DagApi, SolvesByHand) {
  const Solved solved = Solve(House().Dag());
  ASSERT_EQ(solved.status, PERSEUS_OK) << solved.message;
  const perseus_frontier frontier = FrontierOf(solved);
  ASSERT_EQ(frontier.count, 3U);
  EXPECT_DOUBLE_EQ(frontier.time_seconds[0], 6);
  EXPECT_DOUBLE_EQ(frontier.energy_joules[0], 195);
  EXPECT_DOUBLE_EQ(frontier.time_seconds[1], 8);
  EXPECT_DOUBLE_EQ(frontier.energy_joules[1], 145);
  EXPECT_DOUBLE_EQ(frontier.time_seconds[2], 11);
  EXPECT_DOUBLE_EQ(frontier.energy_joules[2], 85);

  std::vector<std::int32_t> options(4, -1);
  perseus_dag_choice choice = {};
  choice.struct_size = sizeof(choice);
  ASSERT_EQ(perseus_dag_choose(solved.solution.get(), 9, 1, nullptr, nullptr, options.data(),
                               &choice, nullptr),
            PERSEUS_OK);
  EXPECT_EQ(options, (std::vector<std::int32_t>{0, 0, 0, 0}));
  EXPECT_DOUBLE_EQ(choice.time, 9);
  EXPECT_DOUBLE_EQ(choice.cost, 135);
  EXPECT_DOUBLE_EQ(choice.lower_bound, 125);
}

TEST(DagApi, RefusesWhatIsNoGraph) {
  const auto refused = [](const perseus_dag& dag) {
    const Solved solved = Solve(dag);
    EXPECT_EQ(solved.status, PERSEUS_INVALID);
    return solved.message;
  };
  Graph graph = House();
  graph.to[0] = 0;
  EXPECT_EQ(
      refused(graph.Dag()),
      "the graph has a cycle: operation 0 waits, in the end, for itself or for one that does");
  graph = House();
  graph.to[1] = 4;
  EXPECT_EQ(refused(graph.Dag()), "edge 1 names operation 4; there are 4");
  graph = House();
  graph.curve_of[2] = 3;
  EXPECT_EQ(refused(graph.Dag()), "operation 2 names option table 3; there are 3");
  graph = House();
  graph.cost[3] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(refused(graph.Dag()),
            "option 1 of table 1 takes 3 and costs inf; expected a time that is not negative, and "
            "finite numbers");
  graph = House();
  graph.delay = {0, -1, 0, 0};
  EXPECT_EQ(refused(graph.Dag()), "edge 1 has a delay of -1; expected a finite number >= 0");
  graph = House();
  graph.first_option[2] = 2;
  EXPECT_EQ(refused(graph.Dag()), "option table 1 is empty");
  perseus_dag dag = House().Dag();
  dag.num_operations = 0;
  EXPECT_NE(refused(dag), "");
  dag = {};
  EXPECT_NE(refused(dag), "");
  EXPECT_EQ(perseus_dag_solve(nullptr, nullptr, nullptr, nullptr, nullptr), PERSEUS_INVALID);
}

TEST(DagApi, RefusesWhatIsNoDeadline) {
  const Solved solved = Solve(House().Dag());
  ASSERT_EQ(solved.status, PERSEUS_OK) << solved.message;
  std::vector<std::int32_t> options(4);
  const auto choose = [&](double deadline, double effort) {
    return perseus_dag_choose(solved.solution.get(), deadline, effort, nullptr, nullptr,
                              options.data(), nullptr, nullptr);
  };
  EXPECT_EQ(choose(5.9, 1), PERSEUS_INFEASIBLE);
  EXPECT_EQ(choose(std::numeric_limits<double>::quiet_NaN(), 1), PERSEUS_INFEASIBLE);
  EXPECT_EQ(choose(9, 0), PERSEUS_INVALID);
  EXPECT_EQ(choose(9, std::numeric_limits<double>::quiet_NaN()), PERSEUS_INVALID);
  EXPECT_EQ(choose(1e300, 1), PERSEUS_OK);
}

TEST(DagApi, TimesMayBeZeroAndCostsNegative) {
  Graph graph;
  graph.AddCurve({{0, 0}});
  graph.AddCurve({{1, -5}, {2, -9}});
  graph.curve_of = {0, 1, 0};
  graph.from = {0, 1};
  graph.to = {1, 2};
  const Solved solved = Solve(graph.Dag());
  ASSERT_EQ(solved.status, PERSEUS_OK) << solved.message;
  const perseus_frontier frontier = FrontierOf(solved);
  EXPECT_DOUBLE_EQ(frontier.energy_joules[0], -5);
  EXPECT_DOUBLE_EQ(frontier.energy_joules[frontier.count - 1], -9);
  graph.curve_of = {0, 0, 0};
  EXPECT_EQ(Solve(graph.Dag()).status, PERSEUS_OK);
}

// The solver's integers are scaled to the options that count. (Found by the fuzzer.)
TEST(DagApi, OptionsThatNobodyHasMayBeAnything) {
  Graph graph;
  graph.AddCurve({{39, 26}, {63, 24}});
  graph.AddCurve({{6e-183, -3e296}});
  graph.curve_of = {0, 0, 0};
  const Solved solved = Solve(graph.Dag());
  ASSERT_EQ(solved.status, PERSEUS_OK) << solved.message;
  std::vector<std::int32_t> options(3);
  EXPECT_EQ(perseus_dag_choose(solved.solution.get(), 63, 1, nullptr, nullptr, options.data(),
                               nullptr, nullptr),
            PERSEUS_OK);
  EXPECT_EQ(options, (std::vector<std::int32_t>{1, 1, 1}));
}

TEST(DagApi, CallbackCancels) {
  const auto cancel = [](void*, double) { return 1; };
  perseus_dag_solution* solution = nullptr;
  const Graph graph = House();
  const perseus_dag dag = graph.Dag();
  EXPECT_EQ(perseus_dag_solve(&dag, cancel, nullptr, &solution, nullptr), PERSEUS_CANCELLED);
  EXPECT_EQ(solution, nullptr);
}

Graph RandomGraph() {
  Graph graph;
  const int operations = *rc::gen::inRange(1, 7);
  for (int i = 0; i < operations; ++i) {
    std::vector<std::pair<double, double>> options;
    const int count = *rc::gen::inRange(1, 4);
    for (int k = 0; k < count; ++k) {
      options.emplace_back(*rc::gen::inRange(0, 12), *rc::gen::inRange(-9, 40));
    }
    graph.AddCurve(options);
    graph.curve_of.push_back(i);
    for (int j = 0; j < i; ++j) {
      if (*rc::gen::inRange(0, 3) != 0) continue;
      graph.from.push_back(j);
      graph.to.push_back(i);
      graph.delay.push_back(*rc::gen::inRange(0, 3));
    }
  }
  return graph;
}

// Time and cost of a choice, by hand: edges are in the order of their ends.
std::pair<double, double> Replayed(const Graph& graph, const std::vector<std::int32_t>& options) {
  std::vector<double> end(graph.curve_of.size(), 0);
  double cost = 0;
  double last = 0;
  for (std::size_t i = 0; i < end.size(); ++i) {
    double start = 0;
    for (std::size_t e = 0; e < graph.from.size(); ++e) {
      if (graph.to[e] != static_cast<int>(i)) continue;
      start = std::max(start, end[graph.from[e]] + graph.delay[e]);
    }
    const int option = graph.first_option[i] + options[i];
    end[i] = start + graph.time[option];
    cost += graph.cost[option];
    last = std::max(last, end[i]);
  }
  return {last, cost};
}

double LeastCost(const Graph& graph, double deadline) {
  std::vector<std::int32_t> options(graph.curve_of.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  while (true) {
    const auto [time, cost] = Replayed(graph, options);
    if (time <= deadline) least = std::min(least, cost);
    std::size_t i = 0;
    for (; i < options.size(); ++i) {
      if (++options[i] < graph.first_option[i + 1] - graph.first_option[i]) break;
      options[i] = 0;
    }
    if (i == options.size()) return least;
  }
}

// Against all choices there are: the options are real, in time, above the bound, and the best.
RC_GTEST_PROP(DagApiRule, ChoosesTheBestOfAll, ()) {
  const Graph graph = RandomGraph();
  const Solved solved = Solve(graph.Dag());
  RC_ASSERT(solved.status == PERSEUS_OK);
  const perseus_frontier frontier = FrontierOf(solved);
  const double deadline = std::floor(frontier.fastest_seconds) + *rc::gen::inRange(0, 15);
  std::vector<std::int32_t> options(graph.curve_of.size(), -1);
  perseus_dag_choice choice = {};
  choice.struct_size = sizeof(choice);
  RC_ASSERT(perseus_dag_choose(solved.solution.get(), deadline, 1, nullptr, nullptr, options.data(),
                               &choice, nullptr) == PERSEUS_OK);
  const auto [time, cost] = Replayed(graph, options);
  RC_ASSERT(time == choice.time);
  RC_ASSERT(std::abs(cost - choice.cost) <= 1e-9);
  RC_ASSERT(time <= deadline);
  RC_ASSERT(choice.lower_bound <= cost + 1e-9);
  RC_ASSERT(std::abs(cost - LeastCost(graph, deadline)) <= 1e-9);
}

}  // namespace
}  // namespace perseus::planner_c
