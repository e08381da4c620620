// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/group_branch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "plan/grouping.h"
#include "plan/pipelines.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::IterationSeconds;
using plan_testing::RandomRows;

constexpr std::int64_t kEnough = 1'000'000'000;

CostedPipeline Pipeline(std::mt19937& random, int stages, int clocks, int microbatches) {
  plan_testing::ProfileShape shape;
  shape.stages = stages;
  shape.clocks = clocks;
  shape.noise = 0.02;
  FixedTimes fixed;
  fixed.comm_delay_seconds = {0.05};
  fixed.data_loading_seconds = 0.1;
  fixed.iteration_overhead_seconds = 0.7;
  return Costed(RandomRows(random, shape), DagOf("1f1b", stages, microbatches, fixed),
                Blocking(60));
}

GroupProblem Problem(const CostedPipeline& pipeline, Granularity granularity, double seconds) {
  PlanConstraints constraints;
  constraints.granularity = granularity;
  auto problem = GroupProblem::Make(pipeline, {},
                                    GroupComputations(pipeline, constraints.granularity), seconds);
  EXPECT_TRUE(problem);
  return *std::move(problem);
}

TEST(GroupProblemTest, TimesAreThoseOfTheReplayAndAddUpAlongThePath) {
  std::mt19937 random(1);
  const CostedPipeline pipeline = Pipeline(random, 4, 8, 6);
  for (const Granularity granularity :
       {Granularity::kStage, Granularity::kStageType, Granularity::kPhase}) {
    const GroupProblem problem = Problem(pipeline, granularity, 100);
    for (int round = 0; round < 50; ++round) {
      std::vector<int> choice;
      for (const auto& group : problem.groups()) {
        choice.push_back(static_cast<int>(random() % group.options.size()));
      }
      GroupProblem::Path path;
      const double seconds = problem.LongestPathOf(choice, &path);
      const std::vector<CostOption> plan = problem.PlanOf(choice);
      EXPECT_EQ(seconds, IterationSeconds(pipeline, plan));  // Bit for bit.
      double along = path.delay_seconds;
      for (int g = 0; g < problem.num_groups(); ++g) {
        const GroupProblem::Group& group = problem.groups()[g];
        for (int c = 0; c < group.num_cells(); ++c) {
          along += path.counts[group.first_cell + c] * group.options[choice[g]].cell_seconds[c];
        }
      }
      EXPECT_NEAR(along, seconds, 1e-12 * seconds);
      EXPECT_NEAR(problem.JoulesOf(choice), plan_testing::EffectiveEnergy(pipeline, plan),
                  1e-9 * std::abs(problem.JoulesOf(choice)));
    }
  }
}

TEST(GroupRelaxationTest, BoundsEveryChoice) {
  std::mt19937 random(2);
  for (int round = 0; round < 20; ++round) {
    const CostedPipeline pipeline = Pipeline(random, 3, 6, 5);
    const GroupProblem problem = Problem(pipeline, Granularity::kPhase, 26 + 0.3 * round);
    GroupRelaxation relaxation(problem);
    GroupRelaxation::Domain domain;
    for (const auto& group : problem.groups()) {
      const int last = static_cast<int>(group.options.size()) - 1;
      domain.push_back({last > 1 ? round % 2 : 0, last});
    }
    relaxation.Solve(domain, relaxation.CheapestBasis(domain),
                     std::numeric_limits<double>::infinity());
    for (int trial = 0; trial < 2000; ++trial) {
      std::vector<int> choice;
      for (const auto& range : domain) {
        choice.push_back(range.first + static_cast<int>(random() % (range.last - range.first + 1)));
      }
      if (problem.IsFeasible(choice)) {
        EXPECT_LE(relaxation.bound(), problem.JoulesOf(choice));
      }
    }
  }
}

TEST(SolveGroupsTest, ProvesThatThereIsNone) {
  std::mt19937 random(3);
  const CostedPipeline pipeline = Pipeline(random, 3, 6, 5);
  const GroupProblem problem = Problem(pipeline, Granularity::kStageType, 5);
  const GroupSolution solution = SolveGroups(problem, {}, kEnough);
  EXPECT_TRUE(solution.choice.empty());
  EXPECT_TRUE(solution.proven);
  EXPECT_EQ(solution.bound_joules, std::numeric_limits<double>::infinity());
}

TEST(SolveGroupsTest, ProvesTensOfGroupsOfManyClocks) {
  std::mt19937 random(4);
  for (const double factor : {1.0, 1.02, 1.1}) {
    const CostedPipeline pipeline = Pipeline(random, 8, 14, 24);
    std::vector<CostOption> today;
    for (const int table : pipeline.table_of) today.push_back(pipeline.tables[table].baseline);
    const GroupProblem problem =
        Problem(pipeline, Granularity::kPhase, factor * IterationSeconds(pipeline, today));
    const GroupSolution solution = SolveGroups(problem, {}, 4 * kEnough);
    ASSERT_FALSE(solution.choice.empty());
    EXPECT_TRUE(problem.IsFeasible(solution.choice));
    EXPECT_TRUE(solution.proven) << factor;
  }
}

TEST(SolveGroupsTest, ManyGroupsKeepToTheWorkLimit) {
  std::mt19937 random(6);
  const CostedPipeline pipeline = Pipeline(random, 4, 12, 60);
  const auto groups = plan_testing::Singles(pipeline);
  const auto problem = GroupProblem::Make(pipeline, {}, groups, 400);
  ASSERT_TRUE(problem);
  const std::vector<std::vector<int>> fastest = {std::vector<int>(problem->num_groups(), 0)};
  double joules = std::numeric_limits<double>::infinity();
  for (const std::int64_t limit : {10'000, 100'000, 1'000'000, 4'000'000}) {
    const GroupSolution solution = SolveGroups(*problem, fastest, limit);
    // What was begun is ended: a trial, the sums along a path.
    EXPECT_LE(solution.work, limit + 100 * problem->num_computations());
    EXPECT_TRUE(problem->IsFeasible(solution.choice));
    EXPECT_LT(solution.joules, joules);
    joules = solution.joules;
  }
}

TEST(SolveGroupsTest, MoreWorkIsNeverWorse) {
  std::mt19937 random(5);
  const CostedPipeline pipeline = Pipeline(random, 6, 14, 16);
  std::vector<CostOption> today;
  for (const int table : pipeline.table_of) today.push_back(pipeline.tables[table].baseline);
  const GroupProblem problem =
      Problem(pipeline, Granularity::kPhase, 1.03 * IterationSeconds(pipeline, today));
  const std::vector<std::vector<int>> fastest = {std::vector<int>(problem.num_groups(), 0)};
  double joules = std::numeric_limits<double>::infinity();
  double bound = -joules;
  for (std::int64_t work = 1000; work < kEnough; work = work * 3 / 2) {
    const GroupSolution solution = SolveGroups(problem, fastest, work);
    EXPECT_LE(solution.joules, joules);
    EXPECT_GE(solution.bound_joules, bound - 1e-9 * std::abs(solution.joules));
    EXPECT_LE(solution.bound_joules, solution.joules);
    joules = solution.joules;
    bound = solution.bound_joules;
    if (solution.proven) return;
  }
  FAIL() << "not proven";
}

}  // namespace
}  // namespace perseus::plan
