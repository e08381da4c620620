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

}  // namespace
}  // namespace perseus::plan
