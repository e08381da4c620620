// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "frontier/deadline_program.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "frontier/network.h"
#include "frontier/problems.h"
#include "frontier/walk.h"

namespace perseus::frontier {
namespace {

using frontier_testing::HouseProblem;
using frontier_testing::LongestPath;
using frontier_testing::ProblemShape;
using frontier_testing::RandomProblem;
using frontier_testing::WithSchedules;
using Outcome = DeadlineProgram::Outcome;

constexpr Int128 kNoLimit = static_cast<Int128>(1) << 126;

DeadlineProgram ProgramAt(const Network& network, std::int64_t deadline) {
  Walk walk(network);
  while (!walk.at_fastest() && walk.next_time() > deadline) walk.Advance();
  return DeadlineProgram(network, walk, deadline);
}

// The same question, put to a fresh frontier: every fixed activity gets a curve
// of its own with the one option. Nullopt: infeasible.
std::optional<double> SolveAfresh(TimeCostProblem problem, const std::map<int, TimeCost>& fixed,
                                  double deadline) {
  for (const auto& [activity, option] : fixed) {
    problem.curve_of[activity] = static_cast<int>(problem.curves.size());
    problem.curves.push_back({option});
  }
  const auto frontier = SolveFrontier(problem, WithSchedules({deadline}));
  if (!frontier || frontier->breakpoints.front().time > deadline) return std::nullopt;
  return frontier->schedules[0].cost;
}

class DeadlineProgramTest : public testing::Test {
 protected:
  std::int64_t Ticks(double time) const { return network_.scale.TicksDown(time); }
  Int128 CostUnits(double cost) const {
    return static_cast<Int128>(
        std::ldexp(cost, network_.scale.time_bits + network_.scale.slope_bits));
  }
  double Objective(const DeadlineProgram& program) const {
    return network_.scale.Cost(program.objective());
  }

  Network network_ = *Network::Build(HouseProblem(), 0);
};

TEST_F(DeadlineProgramTest, NoticesWhatDoesNotFitAndRecovers) {
  DeadlineProgram program = ProgramAt(network_, Ticks(8));
  program.Fix(0, Ticks(5), 0);
  program.Fix(2, Ticks(6), 0);
  EXPECT_EQ(program.Optimise(kNoLimit), Outcome::kInfeasible);
  EXPECT_EQ(program.Optimise(kNoLimit), Outcome::kInfeasible);
  program.Release(2);
  ASSERT_EQ(program.Optimise(kNoLimit), Outcome::kOptimal);
  EXPECT_EQ(Objective(program), 60);
  program.Release(0);
  ASSERT_EQ(program.Optimise(kNoLimit), Outcome::kOptimal);
  EXPECT_EQ(Objective(program), 50);
}

TEST_F(DeadlineProgramTest, StopsAboveItsLimit) {
  DeadlineProgram program = ProgramAt(network_, Ticks(8));
  program.Fix(1, Ticks(6), CostUnits(0));
  EXPECT_EQ(program.Optimise(CostUnits(59)), Outcome::kAboveLimit);
  EXPECT_EQ(program.Optimise(CostUnits(60)), Outcome::kOptimal);
  EXPECT_EQ(program.Optimise(CostUnits(59)), Outcome::kAboveLimit);
}

// Whole numbers: no tolerance.
ProblemShape SmallWholeShape() {
  ProblemShape shape;
  shape.most_activities = 12;
  shape.most_options = 6;
  shape.longest = 9;
  shape.whole_slopes = true;
  return shape;
}

// From any flow of the network: those of other deadlines, with activities fixed. What was in a
// tree is a hint only.
RC_GTEST_PROP(DeadlineProgramProperty, BeginsFromAnyFlow, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const auto network = Network::Build(RandomProblem(random, SmallWholeShape()), 0);
  RC_ASSERT(network.has_value());
  const std::int64_t fastest = network->LongestToSink(false)[Network::kSource];
  const std::int64_t slowest = network->LongestToSink(true)[Network::kSource];
  const auto between = [&] {
    return fastest + (slowest - fastest) * static_cast<std::int64_t>(random() % 9) / 8;
  };
  const auto n = static_cast<std::uint32_t>(network->num_activities);
  const auto fix_one = [&](DeadlineProgram* a, DeadlineProgram* b) {
    const auto activity = static_cast<int>(random() % n);
    const std::int64_t length = network->scale.TicksDown(static_cast<double>(random() % 9));
    const auto cost = static_cast<Int128>(random() % 1000);
    const bool releases = random() % 3 == 0;
    for (DeadlineProgram* program : {a, b}) {
      if (program == nullptr) continue;
      if (releases) program->Release(activity);
      if (!releases) program->Fix(activity, length, cost);
    }
  };
  // The sum of two: more of it than fits a tree.
  std::vector<DeadlineProgram::ArcStart> starts(network->arcs.size());
  for (std::uint32_t flows = random() % 3; flows > 0; --flows) {
    DeadlineProgram other = ProgramAt(*network, between());
    for (std::uint32_t fixes = random() % 4; fixes > 0; --fixes) {
      fix_one(&other, nullptr);
      other.Optimise(kNoLimit);  // Or is left where it is not feasible.
    }
    for (std::size_t a = 0; a < starts.size(); ++a) {
      starts[a].flow += other.StartOf(static_cast<int>(a)).flow;
      starts[a].in_tree = random() % 4 == 0 || other.StartOf(static_cast<int>(a)).in_tree;
    }
  }
  const std::int64_t deadline = between();
  RC_ASSERT(!DeadlineProgram::FromFlow(*network, starts, fastest - 1));
  std::optional<DeadlineProgram> program = DeadlineProgram::FromFlow(*network, starts, deadline);
  RC_ASSERT(program.has_value());
  DeadlineProgram fresh = ProgramAt(*network, deadline);
  RC_ASSERT(program->objective() == fresh.objective());
  for (int step = 0; step < 20; ++step) {
    fix_one(&*program, &fresh);
    const Outcome outcome = program->Optimise(kNoLimit);
    RC_ASSERT(outcome == fresh.Optimise(kNoLimit));
    if (outcome == Outcome::kOptimal) RC_ASSERT(program->objective() == fresh.objective());
  }
}

// Random fixes and releases, with and without limits, against a fresh solution
// each time. Whole numbers: no tolerance.
RC_GTEST_PROP(DeadlineProgramProperty, EqualsAFreshSolution, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const TimeCostProblem problem = RandomProblem(random, SmallWholeShape());
  const auto network = Network::Build(problem, 0);
  RC_ASSERT(network.has_value());
  const bool has_choice = std::any_of(network->curves.begin(), network->curves.end(),
                                      [](const Curve& c) { return c.lengths.size() > 1; });
  RC_PRE(has_choice);
  const Scale& scale = network->scale;
  const double fastest = scale.Time(network->LongestToSink(false)[Network::kSource]);
  const double slowest = scale.Time(network->LongestToSink(true)[Network::kSource]);
  const double deadline =
      fastest + std::floor((slowest - fastest) * static_cast<double>(random() % 5) / 4);
  double least = 0;
  for (const int c : network->curve_of) least += network->curves[c].slowest_cost;

  DeadlineProgram program = ProgramAt(*network, scale.TicksDown(deadline));
  std::map<int, TimeCost> fixed;
  const int n = network->num_activities;
  for (int step = 0; step < 40; ++step) {
    for (std::uint32_t changes = 1 + random() % 3; changes > 0; --changes) {
      const int activity = static_cast<int>(random() % static_cast<std::uint32_t>(n));
      const Curve& curve = network->CurveOf(activity);
      if (random() % 3 == 0) {
        program.Release(activity);
        fixed.erase(activity);
        continue;
      }
      // On the hull, above it, faster or slower than anything on it; at most a
      // little longer than the deadline.
      const auto time =
          static_cast<double>(random() % 12 % static_cast<std::uint32_t>(deadline + 2));
      const double cost = static_cast<double>(random() % 20) - 2;
      fixed[activity] = {time, curve.slowest_cost + cost};
      program.Fix(activity, scale.TicksDown(time),
                  static_cast<Int128>(std::ldexp(cost, scale.time_bits + scale.slope_bits)));
    }
    const std::optional<double> expected = SolveAfresh(problem, fixed, deadline);
    const bool limited = random() % 2 == 0;
    const double limit = static_cast<double>(random() % 200) - 20;
    if (limited) {
      const Outcome outcome = program.Optimise(
          static_cast<Int128>(std::ldexp(limit, scale.time_bits + scale.slope_bits)));
      if (outcome == Outcome::kAboveLimit) {
        RC_ASSERT((!expected || *expected - least > limit));
        continue;
      }
      RC_ASSERT((outcome == Outcome::kInfeasible) == !expected);
      RC_ASSERT((!expected || *expected - least <= limit));
    } else {
      const Outcome outcome = program.Optimise(kNoLimit);
      RC_ASSERT(outcome != Outcome::kAboveLimit);
      RC_ASSERT((outcome == Outcome::kInfeasible) == !expected);
    }
    if (!expected) continue;
    RC_ASSERT(least + scale.Cost(program.objective()) == *expected);
    // The times of its activities are feasible.
    std::vector<double> durations(n);
    for (int i = 0; i < n; ++i) durations[i] = scale.Time(program.Duration(i));
    for (const auto& [activity, option] : fixed) {
      RC_ASSERT(durations[activity] >= option.time);
      durations[activity] = option.time;
    }
    RC_ASSERT(LongestPath(problem, durations) <= deadline);
  }
}

}  // namespace
}  // namespace perseus::frontier
