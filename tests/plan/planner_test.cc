// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "perseus/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/plan.h"
#include "plan/grouping.h"
#include "plan/pipelines.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::EffectiveEnergy;
using plan_testing::IterationSeconds;
using plan_testing::LeastEffectiveEnergy;
using plan_testing::ProfileShape;
using plan_testing::RandomRows;
using plan_testing::Singles;
using testing::HasSubstr;

constexpr double kLittle = 0.01;  // Effort for tests that only want a valid plan.

Planner Plans(CostedPipeline pipeline, const PlannerOptions& options = {}) {
  auto planner = Planner::Create(std::move(pipeline), options);
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

// Every figure of a plan, recomputed.
void CheckHonest(const Planner& planner, const Plan& plan) {
  const CostedPipeline& pipeline = planner.pipeline();
  ASSERT_EQ(static_cast<int>(plan.options.size()), pipeline.dag.size());
  double energy = pipeline.total_blocking_power_watts * plan.iteration_time_seconds;
  std::set<int> knobs;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const CostOption& option = plan.options[i];
    const CostTable& table = pipeline.TableOf(i);
    const auto measured =
        std::find_if(table.all_options.begin(), table.all_options.end(),
                     [&option](const CostOption& o) { return o.knob == option.knob; });
    ASSERT_NE(measured, table.all_options.end());
    EXPECT_EQ(option.time_seconds, measured->time_seconds);
    EXPECT_EQ(option.energy_joules, measured->energy_joules);
    energy += option.energy_joules - table.blocking_power_watts * option.time_seconds;
    knobs.insert(option.knob);
  }
  EXPECT_EQ(plan.iteration_time_seconds, IterationSeconds(pipeline, plan.options));
  EXPECT_LE(plan.iteration_time_seconds, plan.requested_time_seconds);
  EXPECT_NEAR(plan.energy_joules, energy, 1e-9 * energy);
  const double bound = planner.frontier().EnergyAt(plan.iteration_time_seconds);
  EXPECT_DOUBLE_EQ(plan.lower_bound_joules, bound * (1 - planner.frontier().certified_error));
  EXPECT_NEAR(plan.gap_percent, 100 * (plan.energy_joules / plan.lower_bound_joules - 1), 1e-9);
  EXPECT_GE(plan.gap_percent, -1e-9);
  const double baseline = planner.baseline().energy_joules;
  EXPECT_NEAR(plan.saving_percent, 100 * (1 - plan.energy_joules / baseline), 1e-9);
  EXPECT_DOUBLE_EQ(plan.average_power_watts, plan.energy_joules / plan.iteration_time_seconds);
  EXPECT_EQ(plan.distinct_knobs, static_cast<int>(knobs.size()));
  int changes = 0;
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) {
      if (plan.options[order[k]].knob != plan.options[order[k - 1]].knob) ++changes;
    }
  }
  EXPECT_EQ(plan.knob_changes, changes);
}

struct Shape {
  const char* schedule;
  int stages;
  int virtual_stages;
  int microbatches;
};

TEST(PlannerTest, PlansAreHonestForEveryScheduleAndTarget) {
  std::mt19937 random(21);
  for (const Shape& shape :
       {Shape{"1f1b", 4, 1, 6}, Shape{"gpipe", 3, 1, 4}, Shape{"looped-bfs", 4, 2, 4},
        Shape{"interleaved-1f1b", 4, 2, 4}, Shape{"megatron-interleaved", 4, 2, 4},
        Shape{"interleaved-zero-bubble", 4, 2, 4}, Shape{"zbv-zero-bubble", 4, 2, 4},
        Shape{"dualpipev", 4, 2, 4}}) {
    for (const double noise : {0.0, 0.06}) {
      ProfileShape profile;
      profile.stages = shape.stages;
      profile.clocks = 7;
      profile.noise = noise;
      FixedTimes fixed;
      if (noise > 0) {
        fixed.comm_delay_seconds = {0.03};
        fixed.data_loading_seconds = 0.01;
        fixed.iteration_overhead_seconds = 0.2;
      }
      const Planner planner = Plans(Costed(
          RandomRows(random, profile),
          DagOf(shape.schedule, shape.stages, shape.microbatches, fixed, shape.virtual_stages),
          Blocking(70)));
      const Frontier& frontier = planner.frontier();
      EXPECT_LE(frontier.fastest_seconds, frontier.economic_seconds);
      EXPECT_LE(frontier.economic_seconds, frontier.tstar_seconds);
      CheckHonest(planner, planner.baseline());
      const double first = frontier.fastest_seconds;
      const double span = frontier.tstar_seconds - first;
      for (const double seconds :
           {first, first * (1 + 1e-12), first + 0.01 * span, first + 0.2 * span,
            first + 0.61 * span, frontier.economic_seconds, frontier.tstar_seconds,
            1.5 * frontier.tstar_seconds,
            std::max(first, planner.baseline().iteration_time_seconds)}) {
        const auto plan = planner.PlanFor(seconds, {}, kLittle);
        ASSERT_TRUE(plan) << shape.schedule << ": " << plan.error().message;
        EXPECT_EQ(plan->requested_time_seconds, seconds);
        CheckHonest(planner, *plan);
      }
    }
  }
}

TEST(PlannerTest, SmallPlansAreOptimal) {
  std::mt19937 random(22);
  int constrained = 0;
  for (int round = 0; round < 30; ++round) {
    ProfileShape shape;
    shape.noise = round % 3 == 0 ? 0.08 : 0;
    shape.spread = 0.01;
    shape.labels = round % 4 == 1;
    const Planner planner =
        Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 2, 1 + round % 2), Blocking(60)));
    const CostedPipeline& pipeline = planner.pipeline();
    const Frontier& frontier = planner.frontier();
    const double span = frontier.tstar_seconds - frontier.fastest_seconds;
    const double seconds = frontier.fastest_seconds + span * (0.03 + 0.13 * (round % 8));
    for (const Granularity granularity : {Granularity::kComputation, Granularity::kPhase,
                                          Granularity::kStageType, Granularity::kStage}) {
      PlanConstraints constraints;
      constraints.granularity = granularity;
      if (round % 5 == 4) constraints.time_margin_sigmas = 2;
      const plan::Guard guard = {constraints.time_margin_sigmas, 0};
      const auto groups = plan::GroupComputations(pipeline, constraints);
      const double least = LeastEffectiveEnergy(pipeline, groups, seconds, guard);
      const auto plan = planner.PlanFor(seconds, constraints, 0.1);
      ASSERT_EQ(plan.has_value(), std::isfinite(least)) << round;
      if (!plan) continue;
      if (granularity != Granularity::kComputation) ++constrained;
      EXPECT_NEAR(EffectiveEnergy(pipeline, plan->options), least, 1e-9 * plan->energy_joules)
          << round << " " << GranularityName(granularity);
    }
  }
  EXPECT_GT(constrained, 20);
}

TEST(PlannerTest, TheFrontierIsALowerBoundForEveryChoice) {
  std::mt19937 random(23);
  ProfileShape shape;
  shape.stages = 3;
  shape.clocks = 6;
  shape.noise = 0.1;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 3, 5), Blocking(80)));
  const CostedPipeline& pipeline = planner.pipeline();
  for (int round = 0; round < 2000; ++round) {
    std::vector<CostOption> options;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      const auto& all = pipeline.TableOf(i).all_options;
      options.push_back(all[random() % (round % 2 == 0 ? all.size() : 2)]);
    }
    const double seconds = IterationSeconds(pipeline, options);
    EXPECT_GE(seconds, planner.frontier().fastest_seconds);
    const double bound = planner.frontier().EnergyAt(seconds);
    EXPECT_GE(IterationEnergy(pipeline, options, seconds), bound * (1 - 1e-12));
  }
}

TEST(PlannerTest, ConstraintsAreObeyedAndCost) {
  std::mt19937 random(24);
  ProfileShape shape;
  shape.stages = 4;
  shape.clocks = 10;
  shape.noise = 0.02;
  shape.spread = 0.01;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 4, 8), Blocking(70)));
  const CostedPipeline& pipeline = planner.pipeline();
  const double seconds = 1.05 * planner.baseline().iteration_time_seconds;
  const auto free = planner.PlanFor(seconds, {}, 0.05);
  ASSERT_TRUE(free);
  const auto plan_with = [&](const PlanConstraints& constraints) {
    EXPECT_TRUE(constraints.any());
    auto plan = planner.PlanFor(seconds, constraints, 0.05);
    EXPECT_TRUE(plan) << plan.error().message;
    CheckHonest(planner, *plan);
    EXPECT_GE(EffectiveEnergy(pipeline, plan->options),
              EffectiveEnergy(pipeline, free->options) * (1 - 1e-3));
    return *std::move(plan);
  };

  const std::vector<Phase> phases = ComputationPhases(pipeline.dag);
  for (const Granularity granularity :
       {Granularity::kPhase, Granularity::kStageType, Granularity::kStage}) {
    PlanConstraints constraints;
    constraints.granularity = granularity;
    const Plan plan = plan_with(constraints);
    std::map<std::string, std::set<int>> knobs;
    for (int i = 0; i < pipeline.dag.size(); ++i) {
      const Computation& c = pipeline.dag.computations[i];
      std::string key = std::to_string(c.rank);
      if (granularity != Granularity::kStage) key += ComputationTypeLetter(c.action.type);
      if (granularity == Granularity::kPhase) key += std::to_string(static_cast<int>(phases[i]));
      knobs[key].insert(plan.options[i].knob);
    }
    for (const auto& [key, used] : knobs) EXPECT_EQ(used.size(), 1U) << key;
  }

  for (const double dwell : {2.0, 5.0, 9.0}) {
    PlanConstraints constraints;
    constraints.min_dwell_seconds = dwell;
    const Plan plan = plan_with(constraints);
    for (const std::vector<int>& order : pipeline.dag.rank_order) {
      double run = 0;
      for (std::size_t k = 0; k < order.size(); ++k) {
        run += plan.options[order[k]].time_seconds;
        const bool ends =
            k + 1 == order.size() || plan.options[order[k + 1]].knob != plan.options[order[k]].knob;
        if (!ends) continue;
        EXPECT_GE(run, dwell);
        run = 0;
      }
    }
  }

  for (const int most : {1, 2, 3, 20}) {
    PlanConstraints constraints;
    constraints.max_knobs = most;
    EXPECT_LE(plan_with(constraints).distinct_knobs, most);
  }

  for (const auto& [sigmas, fraction] : {std::pair{3.0, 0.0}, {0.0, 0.04}, {3.0, 0.04}}) {
    PlanConstraints constraints;
    constraints.time_margin_sigmas = sigmas;
    constraints.time_margin_fraction = fraction;
    const Plan plan = plan_with(constraints);
    EXPECT_LE(IterationSeconds(pipeline, plan.options, {sigmas, fraction}), seconds);
    EXPECT_LT(plan.iteration_time_seconds, seconds);
  }
}

TEST(PlannerTest, AMarginLeavesAllMaximumClocksPossible) {
  std::mt19937 random(25);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  PlanConstraints constraints;
  constraints.time_margin_fraction = 0.5;
  const auto plan =
      planner.PlanFor(planner.baseline().iteration_time_seconds, constraints, kLittle);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_LE(IterationSeconds(planner.pipeline(), plan->options, {0, 0.5}),
            plan->requested_time_seconds);
}

TEST(PlannerTest, SaysWhatIsInfeasible) {
  std::mt19937 random(26);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const double fastest = planner.frontier().fastest_seconds;
  for (const double seconds : {0.0, -1.0, 0.999999 * fastest}) {
    const auto plan = planner.PlanFor(seconds);
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kInfeasible);
    EXPECT_THAT(plan.error().message, HasSubstr("the fastest possible iteration takes"));
    const auto target = planner.TargetSeconds({PlanTarget::Kind::kSeconds, seconds});
    ASSERT_FALSE(target);
    EXPECT_EQ(target.error().message, plan.error().message);
  }
  const auto factor = planner.TargetSeconds({PlanTarget::Kind::kBaselineFactor, 0.5});
  ASSERT_FALSE(factor);
  EXPECT_EQ(factor.error().code, ErrorCode::kInfeasible);
}

TEST(PlannerTest, TargetsMeanPointsOfTheFrontier) {
  std::mt19937 random(27);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const Frontier& frontier = planner.frontier();
  using Kind = PlanTarget::Kind;
  EXPECT_EQ(*planner.TargetSeconds({Kind::kFastest, 0}), frontier.fastest_seconds);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kEconomic, 0}), frontier.economic_seconds);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kTStar, 0}), frontier.tstar_seconds);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kSeconds, 99}), 99);
  EXPECT_EQ(*planner.TargetSeconds({Kind::kBaselineFactor, 1.5}),
            1.5 * planner.baseline().iteration_time_seconds);

  EXPECT_EQ(frontier.points.front().iteration_time_seconds, frontier.fastest_seconds);
  EXPECT_EQ(frontier.points.back().iteration_time_seconds, frontier.tstar_seconds);
  EXPECT_EQ(frontier.points.back().slope_watts, 0);
  EXPECT_EQ(frontier.certified_error, 0);
  const double watts = planner.pipeline().total_blocking_power_watts;
  const auto economic = std::min_element(
      frontier.points.begin(), frontier.points.end(),
      [](const auto& a, const auto& b) { return a.energy_joules < b.energy_joules; });
  EXPECT_EQ(frontier.economic_seconds, economic->iteration_time_seconds);
  for (std::size_t k = 0; k + 1 < frontier.points.size(); ++k) {
    const auto& a = frontier.points[k];
    const auto& b = frontier.points[k + 1];
    const double seconds = b.iteration_time_seconds - a.iteration_time_seconds;
    EXPECT_GT(seconds, 0);
    EXPECT_GT(a.slope_watts, b.slope_watts);
    EXPECT_NEAR((b.energy_joules - a.energy_joules) / seconds, watts - a.slope_watts,
                1e-6 * a.slope_watts);
    const double middle = a.iteration_time_seconds + seconds / 2;
    EXPECT_NEAR(frontier.EnergyAt(middle), (a.energy_joules + b.energy_joules) / 2,
                1e-9 * a.energy_joules);
  }
  EXPECT_NEAR(frontier.EnergyAt(frontier.tstar_seconds + 2),
              frontier.points.back().energy_joules + 2 * watts, 1e-9);
}

TEST(PlannerTest, BeyondTStarThePlanIsTheOneForTStar) {
  std::mt19937 random(28);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const double tstar = planner.frontier().tstar_seconds;
  const auto at = planner.PlanFor(tstar, {}, kLittle);
  const auto beyond = planner.PlanFor(3 * tstar, {}, kLittle);
  ASSERT_TRUE(at && beyond);
  EXPECT_EQ(at->energy_joules, beyond->energy_joules);
  EXPECT_EQ(at->iteration_time_seconds, tstar);
  EXPECT_NEAR(at->gap_percent, 0, 1e-9);
  EXPECT_EQ(beyond->requested_time_seconds, 3 * tstar);
}

TEST(PlannerTest, AnyAmountOfTimeIsEnough) {
  std::mt19937 random(32);
  const Planner planner = Plans(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)));
  const double tstar = planner.frontier().tstar_seconds;
  for (const Granularity granularity : {Granularity::kComputation, Granularity::kStage}) {
    PlanConstraints constraints;
    constraints.granularity = granularity;
    const auto twice = planner.PlanFor(2 * tstar, constraints, kLittle);
    ASSERT_TRUE(twice);
    for (const double seconds :
         {40 * tstar, 1e6 * tstar, 1e300, std::numeric_limits<double>::infinity()}) {
      const auto plan = planner.PlanFor(seconds, constraints, kLittle);
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->energy_joules, twice->energy_joules) << seconds;
    }
  }
  const auto never = planner.PlanFor(std::numeric_limits<double>::quiet_NaN());
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code, ErrorCode::kInfeasible);
}

TEST(PlannerTest, SharedKnobsMayNeedMoreThanTStar) {
  // T* is 2 s, each at its own best knob; at one knob for both it takes 3 s.
  const Planner planner =
      Plans(Costed("0,forward,a,1,10\n0,forward,b,2,30\n0,backward,a,2,30\n0,backward,b,1,10\n",
                   DagOf("1f1b", 1, 1), Blocking(0)));
  EXPECT_EQ(planner.frontier().tstar_seconds, 2);
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  EXPECT_FALSE(planner.PlanFor(2.9, constraints, kLittle));
  for (const double seconds : {3.0, 100.0}) {
    const auto plan = planner.PlanFor(seconds, constraints, kLittle);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->iteration_time_seconds, 3);
    EXPECT_EQ(plan->energy_joules, 40);
  }
}

TEST(PlannerTest, DominatedOptionsMayBeAbsurd) {
  PlanConstraints constraints;
  constraints.granularity = Granularity::kStage;
  for (const char* dominated : {"2,8200", "2,1e12", "1e9,31", "1e9,1e12"}) {
    const Planner planner = Plans(
        Costed(std::string("0,forward,a,1,10\n0,forward,b,1,10\n0,backward,a,2,30\n0,backward,b,") +
                   dominated + "\n",
               DagOf("1f1b", 1, 2), Blocking(0)));
    for (const double seconds : {6.0, 7.0, 1e12}) {
      const auto plan = planner.PlanFor(seconds, constraints, kLittle);
      ASSERT_TRUE(plan) << dominated << ": " << plan.error().message;
      EXPECT_EQ(plan->energy_joules, 80) << dominated;
    }
  }
}

TEST(PlannerTest, NothingToChoose) {
  const Planner planner = Plans(
      Costed("0,forward,1400,1,100\n0,backward,1400,2,200\n", DagOf("1f1b", 1, 1), Blocking(50)));
  EXPECT_EQ(planner.frontier().points.size(), 1U);
  EXPECT_EQ(planner.frontier().fastest_seconds, 3);
  EXPECT_EQ(planner.frontier().tstar_seconds, 3);
  const auto plan = planner.PlanFor(3);
  ASSERT_TRUE(plan);
  CheckHonest(planner, *plan);
  EXPECT_EQ(plan->energy_joules, 300);
  EXPECT_EQ(plan->saving_percent, 0);
  EXPECT_EQ(plan->gap_percent, 0);
}

TEST(PlannerTest, EqualTimesZeroEnergiesAndTinyOrLargeUnits) {
  for (const auto& rows :
       {"0,forward,2,1,100\n0,forward,1,1,90\n0,backward,2,2,5\n0,backward,1,2,5\n",
        "0,forward,2,1,0\n0,forward,1,2,0\n0,backward,2,2,0\n0,backward,1,3,0\n",
        "0,forward,2,1e-6,2e-6\n0,forward,1,2e-6,1e-6\n0,backward,2,1e-6,3e-6\n"
        "0,backward,1,3e-6,1e-6\n",
        "0,forward,2,500,2e6\n0,forward,1,1000,1e6\n0,backward,2,700,3e6\n"
        "0,backward,1,900,1e6\n"}) {
    const Planner planner = Plans(Costed(rows, DagOf("1f1b", 1, 3), Blocking(0)));
    const Frontier& frontier = planner.frontier();
    for (const double share : {0.0, 0.4, 1.0}) {
      const double seconds =
          frontier.fastest_seconds + share * (frontier.tstar_seconds - frontier.fastest_seconds);
      const auto plan = planner.PlanFor(seconds);
      ASSERT_TRUE(plan) << rows << plan.error().message;
      EXPECT_LE(plan->iteration_time_seconds, seconds);
      EXPECT_NEAR(EffectiveEnergy(planner.pipeline(), plan->options),
                  LeastEffectiveEnergy(planner.pipeline(), Singles(planner.pipeline()), seconds),
                  1e-9 * plan->energy_joules);
    }
  }
}

TEST(PlannerTest, IsDeterministic) {
  const auto plan_once = [](double effort) {
    std::mt19937 random(29);
    ProfileShape shape;
    shape.stages = 4;
    shape.clocks = 8;
    const Planner planner =
        Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 4, 8), Blocking(70)));
    std::vector<int> knobs;
    auto plan = planner.PlanFor(planner.baseline().iteration_time_seconds, {}, effort);
    // A second question to the same planner has the same answer.
    const auto again = planner.PlanFor(planner.baseline().iteration_time_seconds, {}, effort);
    EXPECT_EQ(plan->energy_joules, again->energy_joules);
    for (const CostOption& option : plan->options) knobs.push_back(option.knob);
    return knobs;
  };
  EXPECT_EQ(plan_once(0.05), plan_once(0.05));
}

TEST(PlannerTest, TheCoarseModeIsCertified) {
  std::mt19937 random(30);
  ProfileShape shape;
  shape.stages = 4;
  shape.clocks = 12;
  const CostedPipeline pipeline =
      Costed(RandomRows(random, shape), DagOf("1f1b", 4, 10), Blocking(70));
  const Planner exact = Plans(pipeline);
  PlannerOptions options;
  options.slope_quantum_watts = 10;
  const Planner coarse = Plans(pipeline, options);
  EXPECT_EQ(exact.frontier().slope_quantum_watts, 0);
  EXPECT_EQ(coarse.frontier().slope_quantum_watts, 10);
  EXPECT_GT(coarse.frontier().certified_error, 0);
  EXPECT_LT(coarse.frontier().certified_error, 0.01);
  EXPECT_LT(coarse.frontier().points.size(), exact.frontier().points.size());
  EXPECT_EQ(coarse.frontier().fastest_seconds, exact.frontier().fastest_seconds);
  const double first = exact.frontier().fastest_seconds;
  for (int k = 0; k <= 40; ++k) {
    const double seconds = first + (exact.frontier().tstar_seconds - first) * k / 40;
    const double truth = exact.frontier().EnergyAt(seconds);
    EXPECT_NEAR(coarse.frontier().EnergyAt(seconds) / truth, 1,
                coarse.frontier().certified_error * (1 + 1e-9));
  }
  const auto plan = coarse.PlanFor(coarse.baseline().iteration_time_seconds, {}, kLittle);
  ASSERT_TRUE(plan);
  CheckHonest(coarse, *plan);
  EXPECT_LE(plan->lower_bound_joules, exact.frontier().EnergyAt(plan->iteration_time_seconds));
}

// Random pipelines: small ones that are branched, and larger ones.
Planner RandomPlanner(std::mt19937& random, int round) {
  ProfileShape shape;
  shape.stages = 3 + round % 2;
  shape.clocks = 6 + round % 7;
  shape.noise = round % 3 == 0 ? 0.05 : 0;
  shape.spread = 0.01;
  const int microbatches = round % 4 == 0 ? 4 : 9 + 5 * (round % 4);
  return Plans(
      Costed(RandomRows(random, shape), DagOf("1f1b", shape.stages, microbatches), Blocking(70)));
}

TEST(PlannerTest, MoreEffortIsNeverWorse) {
  std::mt19937 random(31);
  for (int round = 0; round < 12; ++round) {
    const Planner planner = RandomPlanner(random, round);
    const Frontier& frontier = planner.frontier();
    const double seconds =
        frontier.fastest_seconds +
        (frontier.tstar_seconds - frontier.fastest_seconds) * 0.09 * (round % 10);
    PlanConstraints constraints;
    if (round % 5 == 4) constraints.time_margin_fraction = 0.01;
    if (round % 5 == 3) constraints.max_knobs = 3;
    double last = std::numeric_limits<double>::infinity();
    for (const double effort : {1e-6, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1}) {
      const auto plan = planner.PlanFor(seconds, constraints, effort);
      if (!plan && round % 5 > 2) break;  // Too little time for the constraint.
      ASSERT_TRUE(plan) << plan.error().message;
      CheckHonest(planner, *plan);
      const double joules = EffectiveEnergy(planner.pipeline(), plan->options);
      EXPECT_LE(joules, last) << round << ' ' << effort;
      last = joules;
    }
  }
}

TEST(PlannerTest, EffortBoundsTheWork) {
  std::mt19937 random(35);
  const Planner planner = RandomPlanner(random, 3);
  const double seconds = planner.baseline().iteration_time_seconds;
  for (const double effort : {0.001, 0.01, 0.1}) {
    int calls = 0;
    double share = 0;
    ASSERT_TRUE(planner.PlanFor(seconds, {}, effort, [&](const PlanProgress& progress) {
      ++calls;
      EXPECT_GE(progress.share, share);
      EXPECT_LE(progress.share, 1);
      share = progress.share;
      return true;
    }));
    EXPECT_GT(calls, 0);
  }
}

TEST(PlannerTest, TellsOfBetterPlansAndStopsWhenTold) {
  std::mt19937 random(36);
  for (int round = 0; round < 4; ++round) {
    const Planner planner = RandomPlanner(random, round);
    const double seconds = 1.02 * planner.baseline().iteration_time_seconds;
    std::vector<Plan> told;
    bool first_is_early = false;
    const auto plan = planner.PlanFor(seconds, {}, 0.1, [&](const PlanProgress& progress) {
      if (progress.better == nullptr) return true;
      if (told.empty()) first_is_early = progress.share < 0.05;
      told.push_back(*progress.better);
      return true;
    });
    ASSERT_TRUE(plan);
    ASSERT_GT(told.size(), 1U);
    EXPECT_TRUE(first_is_early);
    double last = std::numeric_limits<double>::infinity();
    for (const Plan& better : told) {
      CheckHonest(planner, better);
      EXPECT_EQ(better.requested_time_seconds, seconds);
      const double joules = EffectiveEnergy(planner.pipeline(), better.options);
      EXPECT_LT(joules, last);
      last = joules;
    }
    EXPECT_EQ(plan->energy_joules, told.back().energy_joules);
    // What is there when the caller has enough is the result.
    for (const std::size_t wanted : {std::size_t{1}, told.size() - 1}) {
      std::size_t count = 0;
      const auto stopped = planner.PlanFor(seconds, {}, 1e3, [&](const PlanProgress& progress) {
        return progress.better == nullptr || ++count < wanted;
      });
      ASSERT_TRUE(stopped);
      EXPECT_EQ(stopped->energy_joules, told[wanted - 1].energy_joules);
    }
  }
}

TEST(PlannerTest, GivesUpWhereItIsTold) {
  std::mt19937 random(33);
  PlannerOptions options;
  int asked = 0;
  options.cancelled = [&] { return ++asked > 0; };
  const auto planner = Planner::Create(
      Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)), options);
  ASSERT_FALSE(planner);
  EXPECT_EQ(planner.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(asked, 1);
}

TEST(PlannerTest, AManySteppedLadderNeverGetsWorse) {
  std::mt19937 random(37);
  for (int round = 0; round < 6; ++round) {
    const Planner planner = RandomPlanner(random, round);
    PlanConstraints constraints;
    if (round == 2) constraints.granularity = Granularity::kStage;
    if (round == 4) constraints.min_dwell_seconds = 4;
    int calls = 0;
    const auto plans = planner.Ladder(12, constraints, 0.003, [&](const PlanProgress&) {
      ++calls;
      return true;
    });
    ASSERT_TRUE(plans) << plans.error().message;
    EXPECT_EQ(calls, 12);
    ASSERT_FALSE(plans->empty());
    double last = std::numeric_limits<double>::infinity();
    double requested = 0;
    for (const Plan& plan : *plans) {
      CheckHonest(planner, plan);
      EXPECT_GT(plan.requested_time_seconds, requested);
      requested = plan.requested_time_seconds;
      const double joules = EffectiveEnergy(planner.pipeline(), plan.options);
      EXPECT_LE(joules, last);
      last = joules;
    }
    EXPECT_EQ(requested, planner.frontier().tstar_seconds);
    if (!constraints.any()) {
      EXPECT_EQ(plans->size(), 12U);
      EXPECT_EQ(plans->front().requested_time_seconds, planner.frontier().fastest_seconds);
    }
  }
  const Planner planner = RandomPlanner(random, 0);
  EXPECT_FALSE(planner.Ladder(1));
  const auto stopped = planner.Ladder(5, {}, 0.001, [](const PlanProgress&) { return false; });
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->size(), 1U);
}

TEST(PlannerTest, RefusesWhatWouldNeverEnd) {
  std::mt19937 random(39);
  CostedPipeline pipeline = Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70));
  pipeline.dag.computations.resize(1'000'001);
  const auto planner = Planner::Create(std::move(pipeline), {});
  ASSERT_FALSE(planner);
  EXPECT_EQ(planner.error().code, ErrorCode::kOverflow);
  EXPECT_THAT(planner.error().message, HasSubstr("1000001 computations"));
}

TEST(PlannerTest, SaysWhatTheFrontierIsExpectedToTake) {
  std::mt19937 random(40);
  int told = 0;
  PlannerOptions options;
  options.progress = [&told](double) { EXPECT_EQ(told, 1); };
  options.estimated = [&told](const FrontierEstimate& estimate) {
    EXPECT_GT(estimate.breakpoints, 1);
    ++told;
  };
  EXPECT_TRUE(
      Planner::Create(Costed(RandomRows(random, {}), DagOf("1f1b", 2, 3), Blocking(70)), options));
  EXPECT_EQ(told, 1);
}

TEST(PlannerTest, CopiesShareWhatTheyReferTo) {
  std::mt19937 random(38);
  std::optional<Planner> first = RandomPlanner(random, 0);
  const Planner second = *first;
  const CostedPipeline* const pipeline = &first->pipeline();
  first.reset();
  EXPECT_EQ(&second.pipeline(), pipeline);
  EXPECT_TRUE(second.PlanFor(second.frontier().tstar_seconds, {}, kLittle));
}

TEST(PlannerTest, RefusesConstraintsThatMeanNothing) {
  std::mt19937 random(32);
  ProfileShape shape;
  shape.stages = 2;
  shape.clocks = 4;
  const Planner planner =
      Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 2, 3), Blocking(70)));
  const double seconds = planner.frontier().tstar_seconds;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [&](const PlanConstraints& constraints, double effort) {
    const auto plan = planner.PlanFor(seconds, constraints, effort);
    return !plan && plan.error().code == ErrorCode::kInvalidInput;
  };
  EXPECT_TRUE(refused({.min_dwell_seconds = nan}, 1));
  EXPECT_TRUE(refused({.max_knobs = -1}, 1));
  EXPECT_TRUE(refused({.time_margin_sigmas = -1}, 1));
  EXPECT_TRUE(refused({.time_margin_fraction = -0.5}, 1));
  EXPECT_TRUE(refused({}, 0));
  EXPECT_TRUE(refused({}, nan));
  EXPECT_TRUE(refused({}, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(planner.PlanFor(seconds, {}, 1e30));
}

TEST(PlannerTest, WhatTheInfeasibleErrorAdvisesWorks) {
  std::mt19937 random(33);
  ProfileShape shape;
  shape.stages = 3;
  shape.clocks = 5;
  for (int round = 0; round < 20; ++round) {
    const Planner planner =
        Plans(Costed(RandomRows(random, shape), DagOf("1f1b", 3, 4), Blocking(70)));
    const auto none = planner.TargetSeconds({PlanTarget::Kind::kSeconds, 1e-9});
    ASSERT_FALSE(none);
    const std::string& message = none.error().message;
    const std::string before = "iteration takes ";
    const double advised = std::stod(message.substr(message.find(before) + before.size()));
    EXPECT_TRUE(planner.TargetSeconds({PlanTarget::Kind::kSeconds, advised})) << message;
  }
}

}  // namespace
}  // namespace perseus
