// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "plan/change_branch.h"
#include "plan/pipelines.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::IterationSeconds;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;

constexpr double kNoneJoules = std::numeric_limits<double>::infinity();
constexpr std::int64_t kMuchWork = 1'000'000'000'000;

struct SmallCase {
  CostedPipeline pipeline;
  PlanConstraints constraints;
  Guard guard;
  double seconds = 0;
  double tolerance = 0;
  double waiting_watts = 0;
  std::int64_t most_changes = 0;

  PatternSolution Solve(std::int64_t work, double known_joules = kNoneJoules) const {
    return SolvePatterns(pipeline, guard,
                         {.seconds = seconds,
                          .waiting_watts = waiting_watts,
                          .most_changes = most_changes,
                          .known_joules = known_joules,
                          .tolerance_joules = tolerance},
                         work);
  }
};

SmallCase RandomCase(std::mt19937& random, int stages, int clocks, int microbatches) {
  ProfileShape shape;
  shape.stages = stages;
  shape.clocks = clocks;
  shape.noise = random() % 2 == 0 ? 0.0 : 0.05;
  const char* const schedules[] = {"1f1b", "gpipe"};
  SmallCase made;
  made.pipeline =
      Costed(RandomRows(random, shape), DagOf(schedules[random() % 2], stages, microbatches),
             Blocking(20.0 * static_cast<double>(random() % 5)));
  if (random() % 3 == 0) made.constraints.time_margin_fraction = 0.02;
  made.guard = GuardOf(made.constraints);
  std::vector<CostOption> baseline;
  for (const int t : made.pipeline.table_of) baseline.push_back(made.pipeline.tables[t].baseline);
  for (const CostOption& option : baseline) made.tolerance += 1e-10 * option.energy_joules;
  made.seconds = (1 + 0.01 * static_cast<double>(random() % 20)) *
                 IterationSeconds(made.pipeline, baseline, made.guard);
  made.waiting_watts = random() % 2 == 0 ? 0 : 30.0 * static_cast<double>(random() % 10);
  made.most_changes = static_cast<std::int64_t>(random() % 7);
  return made;
}

// The least energy, waiting included, of all choices with at most so many changes.
double LeastWithChanges(const SmallCase& from) {
  double least = kNoneJoules;
  std::vector<CostOption> options(from.pipeline.dag.size());
  const auto extend = [&](const auto& self, int i) -> void {
    if (i == from.pipeline.dag.size()) {
      if (CountKnobChanges(from.pipeline.dag, options)->all() > from.most_changes) return;
      const double seconds = IterationSeconds(from.pipeline, options, from.guard);
      if (seconds > from.seconds) return;
      least = std::min(least, EffectiveEnergy(from.pipeline, options) +
                                  from.waiting_watts * (seconds - from.seconds));
      return;
    }
    for (const CostOption& option : from.pipeline.TableOf(i).all_options) {
      options[i] = option;
      self(self, i + 1);
    }
  };
  extend(extend, 0);
  return least;
}

void CheckFound(const SmallCase& from, const PatternSolution& found) {
  if (found.options.empty()) return;
  RC_ASSERT(CountKnobChanges(from.pipeline.dag, found.options)->all() <= from.most_changes);
  const double seconds = IterationSeconds(from.pipeline, found.options, from.guard);
  RC_ASSERT(seconds <= from.seconds);
  const double joules =
      EffectiveEnergy(from.pipeline, found.options) + from.waiting_watts * (seconds - from.seconds);
  RC_ASSERT(std::abs(found.joules - joules) <= from.tolerance);
}

RC_GTEST_PROP(PatternBranchTest, FindsTheBestOfAllChoices, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const bool wide = random() % 2 == 0;
  const SmallCase small = RandomCase(random, 2, wide ? 4 : 3, 2);
  const PatternSolution found = small.Solve(kMuchWork);
  CheckFound(small, found);
  const double least = LeastWithChanges(small);
  RC_ASSERT(!found.options.empty());
  RC_ASSERT(found.joules <= least + 2 * small.tolerance);
  RC_ASSERT(found.joules >= least - 2 * small.tolerance);
  RC_ASSERT(found.bound_joules >= found.joules - 2 * small.tolerance);
}

RC_GTEST_PROP(PatternBranchTest, ABoundThatIsNotMetIsBelowTheBest, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const SmallCase small = RandomCase(random, 2, 3, 2);
  const double least = LeastWithChanges(small);
  for (const std::int64_t work : {0, 100, 1000, 10'000, 100'000}) {
    RC_ASSERT(small.Solve(work).bound_joules <= least + 2 * small.tolerance);
  }
}

RC_GTEST_PROP(PatternBranchTest, MoreWorkNeverGivesAWorsePlanOrBound, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  const SmallCase small =
      RandomCase(random, 2 + static_cast<int>(random() % 3), 8, 3 + static_cast<int>(random() % 3));
  double joules = kNoneJoules;
  double bound = -kNoneJoules;
  for (const std::int64_t work : {10'000, 100'000, 1'000'000, 10'000'000}) {
    const PatternSolution found = small.Solve(work);
    CheckFound(small, found);
    RC_ASSERT(found.joules <= joules);
    RC_ASSERT(found.bound_joules >= bound - small.tolerance);
    joules = found.joules;
    bound = found.bound_joules;
  }
}

TEST(PatternBranchTest, StopsAtAPlanThatIsKnownToBeTheBest) {
  std::mt19937 random(5);
  SmallCase small = RandomCase(random, 3, 12, 5);
  const PatternSolution found = small.Solve(kMuchWork);
  const PatternSolution again = small.Solve(kMuchWork, found.joules);
  EXPECT_LE(again.work, found.work);
  EXPECT_GE(again.bound_joules, found.joules - 2 * small.tolerance);
  // A plan that no one has is no reason to claim more than is so.
  const PatternSolution lower = small.Solve(kMuchWork, found.joules - 1);
  EXPECT_EQ(lower.bound_joules, found.joules - 1);
}

TEST(PatternBranchTest, FindsNothingWhereNothingEndsInTime) {
  std::mt19937 random(6);
  SmallCase small = RandomCase(random, 2, 3, 3);
  small.seconds = 0.5;
  const PatternSolution found = small.Solve(kMuchWork);
  EXPECT_TRUE(found.options.empty());
  EXPECT_EQ(found.joules, kNoneJoules);
}

}  // namespace
}  // namespace perseus::plan
