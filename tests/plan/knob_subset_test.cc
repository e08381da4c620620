// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/grouped/knob_subset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perseus/planner.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus::plan {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;

double Fastest(const CostedPipeline& pipeline) {
  std::vector<double> durations;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    durations.push_back(pipeline.TableOf(i).options.front().time_seconds);
  }
  return Replay(pipeline.dag, durations).iteration_time_seconds;
}

std::set<int> KnobsOf(const CostedPipeline& pipeline) {
  std::set<int> knobs;
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) knobs.insert(option.knob);
  }
  return knobs;
}

// The pipelines that are searched, each with fewer knobs than the one before. No search finds a
// plan, so none of them ends it.
std::vector<CostedPipeline> Searched(const CostedPipeline& pipeline, double seconds, int most,
                                     double slope_quantum = 0) {
  std::vector<CostedPipeline> searched;
  const OptionSearch search = [&](const CostedPipeline& costs, const PlanConstraints& with) {
    if (with.max_knobs) searched.push_back(costs);
    return Result<std::vector<CostOption>>(MakeError(ErrorCode::kInfeasible, "none"));
  };
  const PlanConstraints constraints = {.granularity = Granularity::kStage, .max_knobs = most};
  EXPECT_TRUE(
      SearchFewKnobs(pipeline, seconds, constraints, slope_quantum, search, [] { return true; }));
  return searched;
}

// The first set of knobs that is searched; empty: none is.
std::set<int> FirstSearched(const CostedPipeline& pipeline, double seconds, int most,
                            double slope_quantum = 0) {
  const std::vector<CostedPipeline> searched = Searched(pipeline, seconds, most, slope_quantum);
  return searched.empty() ? std::set<int>{} : KnobsOf(searched.front());
}

TEST(KnobSubsetTest, SearchesAmongFewKnobsThatMeetTheDeadline) {
  std::mt19937 random(5);
  plan_testing::ProfileShape shape;
  shape.stages = 3;
  shape.clocks = 8;
  shape.noise = 0.03;
  const CostedPipeline pipeline =
      Costed(plan_testing::RandomRows(random, shape), DagOf("1f1b", 3, 4), Blocking(60));
  const double seconds = 1.05 * Fastest(pipeline);
  for (int most = 2; most <= 9; ++most) {
    const std::vector<CostedPipeline> searched = Searched(pipeline, seconds, most);
    ASSERT_FALSE(searched.empty());
    EXPECT_EQ(static_cast<int>(KnobsOf(searched.front()).size()), std::min(most, 8));
    std::set<int> kept = KnobsOf(pipeline);
    for (const CostedPipeline& few : searched) {
      const std::set<int> knobs = KnobsOf(few);
      EXPECT_TRUE(std::includes(kept.begin(), kept.end(), knobs.begin(), knobs.end()));
      kept = knobs;
      EXPECT_LE(Fastest(few), seconds);
      for (const CostTable& table : few.tables) {
        ASSERT_FALSE(table.options.empty());
        // Still Pareto-optimal.
        for (std::size_t k = 1; k < table.options.size(); ++k) {
          const CostOption& option = table.options[k];
          const CostOption& before = table.options[k - 1];
          const double watts = table.blocking_power_watts;
          EXPECT_GT(option.time_seconds, before.time_seconds);
          EXPECT_LT(option.energy_joules - watts * option.time_seconds,
                    before.energy_joules - watts * before.time_seconds);
        }
      }
    }
  }
}

TEST(KnobSubsetTest, DropsTheKnobThatIsMissedLeast) {
  // Forwards are cheapest at the second knob, backwards at the third.
  const CostedPipeline pipeline = Costed(
      "0,forward,300,1,10\n0,forward,200,2,5\n0,forward,100,3,6\n"
      "0,backward,300,1,10\n0,backward,200,2,6\n0,backward,100,3,5\n",
      DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_EQ(FirstSearched(pipeline, 10, 2), (std::set<int>{1, 2}));
  // In less time one of them has to be at the first.
  EXPECT_EQ(FirstSearched(pipeline, 3, 2), (std::set<int>{0, 1}));
}

TEST(KnobSubsetTest, AtEqualPricesTheUselessKnobGoes) {
  // At the optimum's price both ends of a segment cost the same.
  const CostedPipeline pipeline = Costed(
      "0,forward,300,1,10\n0,forward,200,2,11\n0,forward,100,3,5\n"
      "0,backward,300,1,10\n0,backward,200,2,11\n0,backward,100,3,5\n",
      DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_EQ(FirstSearched(pipeline, 4, 2), (std::set<int>{0, 2}));
}

TEST(KnobSubsetTest, TheCoarseModeRoundsItsPrices) {
  // At the exact price of time the first and the third knob are kept. With slopes
  // rounded to multiples of 100 W time has no price: of all pairs of knobs that
  // meet the deadline the one that costs least is.
  const CostedPipeline pipeline = Costed(
      "0,forward,400,1,10\n0,forward,300,2,8.1\n0,forward,200,3,6\n0,forward,100,4,5.9\n"
      "0,backward,400,1,10\n0,backward,300,2,8.1\n0,backward,200,3,6\n0,backward,100,4,5.9\n",
      DagOf("1f1b", 1, 1), Blocking(0));
  EXPECT_EQ(FirstSearched(pipeline, 4, 2), (std::set<int>{0, 2}));
  EXPECT_EQ(FirstSearched(pipeline, 4, 2, 100), (std::set<int>{1, 3}));
}

TEST(KnobSubsetTest, OneKnobForAllIsTheCheapestInTime) {
  std::mt19937 random(6);
  plan_testing::ProfileShape shape;
  shape.stages = 3;
  shape.clocks = 8;
  shape.noise = 0.03;
  const CostedPipeline pipeline =
      Costed(plan_testing::RandomRows(random, shape), DagOf("1f1b", 3, 4), Blocking(60));
  EXPECT_TRUE(OneKnobForAll(pipeline, Guard{}, 0.5 * Fastest(pipeline)).empty());
  double before = std::numeric_limits<double>::infinity();
  for (const double factor : {1.05, 1.1, 1.3, 2.0}) {
    const double seconds = factor * Fastest(pipeline);
    const std::vector<CostOption> plan = OneKnobForAll(pipeline, Guard{}, seconds);
    ASSERT_FALSE(plan.empty());
    for (const CostOption& option : plan) EXPECT_EQ(option.knob, plan.front().knob);
    EXPECT_LE(plan_testing::IterationSeconds(pipeline, plan), seconds);
    const double joules = plan_testing::EffectiveEnergy(pipeline, plan);
    EXPECT_LE(joules, before);
    before = joules;
    for (int most : {1, 2, 5}) {
      PlanConstraints constraints;
      constraints.max_knobs = most;
      const auto none = [](const CostedPipeline&, const PlanConstraints&) {
        return Result<std::vector<CostOption>>(MakeError(ErrorCode::kInfeasible, "none"));
      };
      const auto found =
          SearchFewKnobs(pipeline, seconds, constraints, 0, none, [] { return true; });
      ASSERT_TRUE(found);
      EXPECT_EQ(plan_testing::EffectiveEnergy(pipeline, *found), joules);
    }
  }
}

RC_GTEST_PROP(KnobSubsetTest, MoreKnobsAreNeverWorseAndALimitThatIsKeptIsFree, ()) {
  std::mt19937 random(*rc::gen::arbitrary<std::uint32_t>());
  plan_testing::ProfileShape shape;
  shape.stages = 2 + static_cast<int>(random() % 2);
  shape.clocks = 3 + static_cast<int>(random() % 6);
  shape.noise = random() % 2 == 0 ? 0.0 : 0.03;
  const auto planner = Planner::Create(
      Costed(plan_testing::RandomRows(random, shape),
             DagOf("1f1b", shape.stages, 2 + static_cast<int>(random() % 3)), Blocking(40)),
      {});
  RC_ASSERT(planner.has_value());
  const double seconds =
      planner->baseline().iteration_time_seconds * (1 + 0.01 * static_cast<double>(random() % 20));
  PlanConstraints constraints;
  if (random() % 3 == 0) constraints.granularity = Granularity::kPhase;
  const auto free = planner->PlanFor(seconds, {.constraints = constraints, .effort = 0.1});
  RC_ASSERT(free.has_value());
  const double free_joules = plan_testing::EffectiveEnergy(planner->pipeline(), free->options);
  double before = std::numeric_limits<double>::infinity();
  for (int most = 1; most <= shape.clocks + 1; ++most) {
    constraints.max_knobs = most;
    const auto plan = planner->PlanFor(seconds, {.constraints = constraints, .effort = 0.1});
    if (!plan && before == std::numeric_limits<double>::infinity()) continue;
    RC_ASSERT(plan.has_value());
    RC_ASSERT(plan->distinct_knobs <= most);
    const double joules = plan_testing::EffectiveEnergy(planner->pipeline(), plan->options);
    RC_ASSERT(joules <= before + 1e-9 * std::abs(joules));
    before = joules;
    if (most < free->distinct_knobs) continue;
    if (joules < free_joules)
      continue;  // Without the limit the effort did not suffice for a proof.
    for (std::size_t i = 0; i < free->options.size(); ++i) {
      RC_ASSERT(plan->options[i].knob == free->options[i].knob);
    }
  }
}

// Asked before each search, once there is a plan.
TEST(KnobSubsetTest, EndsWhereItIsToldTo) {
  std::mt19937 random(3);
  plan_testing::ProfileShape shape;
  shape.stages = 2;
  shape.clocks = 6;
  const CostedPipeline pipeline =
      Costed(plan_testing::RandomRows(random, shape), DagOf("1f1b", 2, 4), Blocking(40));
  const auto planner = Planner::Create(pipeline, {});
  ASSERT_TRUE(planner);
  const double seconds = 1.3 * planner->baseline().iteration_time_seconds;
  PlanConstraints constraints;
  constraints.max_knobs = 2;
  int searches = 0;
  const auto search = [&](const CostedPipeline& costs, const PlanConstraints& /*with*/) {
    ++searches;
    std::vector<CostOption> mixed;  // Of as many knobs as there are.
    for (int i = 0; i < costs.dag.size(); ++i) {
      const std::vector<CostOption>& options = costs.TableOf(i).options;
      mixed.push_back(options[static_cast<std::size_t>(i) % options.size()]);
    }
    return Result<std::vector<CostOption>>(mixed);
  };
  ASSERT_TRUE(SearchFewKnobs(pipeline, seconds, constraints, 0, search, [] { return false; }));
  EXPECT_EQ(searches, 1);
  ASSERT_TRUE(SearchFewKnobs(pipeline, seconds, constraints, 0, search, [] { return true; }));
  EXPECT_GT(searches, 5);
}

// Whether it is so with few knobs, and in some of the cases a dwell, for a random pipeline.
bool FinerIsNeverWorse(std::uint32_t seed) {
  std::mt19937 random(seed);
  plan_testing::ProfileShape shape;
  shape.stages = 2 + static_cast<int>(random() % 2);
  shape.clocks = 4 + static_cast<int>(random() % 3);
  shape.noise = random() % 2 == 0 ? 0.0 : 0.03;
  const int microbatches = 2 + static_cast<int>(random() % 4);
  const std::string rows = plan_testing::RandomRows(random, shape);
  const auto planner =
      Planner::Create(Costed(rows, DagOf("1f1b", shape.stages, microbatches), Blocking(40)), {});
  if (!planner) return false;
  const double seconds = planner->baseline().iteration_time_seconds *
                         (1.01 + 0.01 * static_cast<double>(random() % 10));
  PlanConstraints constraints;
  constraints.max_knobs = 2 + static_cast<int>(random() % 2);
  if (random() % 3 == 0) constraints.min_dwell_seconds = 0.1 * seconds;
  double coarser = std::numeric_limits<double>::infinity();
  for (const Granularity granularity : {Granularity::kStage, Granularity::kStageType,
                                        Granularity::kPhase, Granularity::kComputation}) {
    constraints.granularity = granularity;
    const auto plan = planner->PlanFor(seconds, {.constraints = constraints, .effort = 0.1});
    if (!plan && coarser == std::numeric_limits<double>::infinity()) continue;
    if (!plan) return false;
    const double joules = plan_testing::EffectiveEnergy(planner->pipeline(), plan->options);
    if (joules > coarser + 1e-9 * std::abs(joules)) return false;
    coarser = joules;
  }
  return true;
}

RC_GTEST_PROP(KnobSubsetTest, AFinerGranularityIsNeverWorse, ()) {
  RC_ASSERT(FinerIsNeverWorse(*rc::gen::arbitrary<std::uint32_t>()));
}

// Without the limit the search for a dwell finds a plan of few enough knobs, but with the limit a
// coarser one is better.
TEST(KnobSubsetTest, AFinerGranularityIsNeverWorseWhereTheLimitIsKept) {
  EXPECT_TRUE(FinerIsNeverWorse(2808));
}

TEST(KnobSubsetTest, SaysHowManyAreNeeded) {
  const CostedPipeline pipeline =
      Costed("0,forward,2000,1,10\n0,backward,1000,1,10\n", DagOf("1f1b", 1, 1), Blocking(0));
  const OptionSearch search = [](const CostedPipeline& costs, const PlanConstraints&) {
    return std::vector<CostOption>{costs.TableOf(0).options[0], costs.TableOf(1).options[0]};
  };
  const auto few = SearchFewKnobs(pipeline, 2, {.max_knobs = 1}, 0, search, [] { return true; });
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().code, ErrorCode::kInfeasible);
  EXPECT_THAT(few.error().message, Mentions("1", "distinct", "2"));
}

}  // namespace
}  // namespace perseus::plan
