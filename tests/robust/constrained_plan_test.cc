// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "perseus/robust_plan.h"
#include "robust/robust_testing.h"

// Other constraints beside conditions.
namespace perseus {
namespace {

using robust_testing::OptionsAt;
using robust_testing::RandomPlanner;
using robust_testing::ShortestSeconds;

RobustPlanSpec Under(const Planner& planner, double latency_share) {
  RobustPlanSpec spec;
  spec.conditions.switching.latency_seconds = latency_share * ShortestSeconds(planner.pipeline());
  spec.conditions.switching.call_ahead = CallAhead::kPredicted;
  spec.effort = 1.0 / 64;
  spec.with_bound = false;
  return spec;
}

// By the definition of docs/explanation/planning.md, without the planner's own code.
bool SharesKnobs(const CostedPipeline& pipeline, const std::vector<CostOption>& options,
                 Granularity granularity) {
  const std::vector<Phase> phases = ComputationPhases(pipeline.dag);
  std::map<std::tuple<int, int, int>, std::set<int>> used;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    const Computation& computation = pipeline.dag.computations[i];
    const int type = granularity == Granularity::kStage ? 0 : static_cast<int>(computation.id.type);
    const int phase = granularity == Granularity::kPhase ? static_cast<int>(phases[i]) : 0;
    used[{computation.rank, type, phase}].insert(options[i].knob);
  }
  return std::all_of(used.begin(), used.end(),
                     [](const auto& group) { return group.second.size() == 1; });
}

double SecondsWithMargin(const Planner& planner, const std::vector<CostOption>& options,
                         double margin) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const bool fast = options[i].knob == planner.baseline().options[i].knob;
    seconds.push_back(options[i].time_seconds * (fast ? 1 : 1 + margin));
  }
  return Replay(planner.pipeline().dag, seconds).iteration_time_seconds;
}

bool Keeps(const Planner& planner, const std::vector<CostOption>& options,
           const PlanConstraints& constraints, double accepted_seconds) {
  if (constraints.granularity != Granularity::kComputation &&
      !SharesKnobs(planner.pipeline(), options, constraints.granularity)) {
    return false;
  }
  // Without a margin only the time under conditions counts.
  return constraints.time_margin_fraction == 0 ||
         SecondsWithMargin(planner, options, constraints.time_margin_fraction) <=
             accepted_seconds * (1 + 1e-9);
}

PlanConstraints RandomConstraints(std::mt19937& random) {
  PlanConstraints constraints;
  while (!constraints.any()) {
    if (random() % 3 == 0) constraints.time_margin_fraction = 0.02 * (1 + random() % 3);
    if (random() % 3 == 0) constraints.granularity = static_cast<Granularity>(1 + random() % 3);
  }
  return constraints;
}

// What the plan with a clock for each stage saves that is in time, by halving its target.
double SavingOfStages(const Planner& planner, double seconds, const RobustPlanSpec& spec) {
  PlanConstraints constraints = spec.constraints;
  constraints.granularity = Granularity::kStage;
  const double accepted = seconds * (1 + spec.conditions.max_slowdown);
  double low = planner.frontier().fastest_seconds;
  double high = accepted;
  double most = -1e300;
  for (int k = 0; k < 4; ++k) {
    const double middle = (low + high) / 2;
    const auto plan = planner.PlanFor(middle, {.constraints = constraints, .effort = 0.2});
    if (!plan) {
      low = middle;
      continue;
    }
    const auto figures =
        ReplayUnder(planner, *plan, {.conditions = spec.conditions, .iterations = 8});
    const double slowdown = 100 * (accepted / planner.baseline().iteration_time_seconds - 1);
    const bool holds = figures->slowdown_percent <= slowdown + 1e-9;
    if (holds) most = std::max(most, figures->saving_percent);
    (holds ? low : high) = middle;
  }
  return most;
}

TEST(ConstrainedPlanTest, KeepsConstraintsAndIsNeverWorseThanStagesOrMaximumClocks) {
  std::mt19937 random(41);
  int better = 0;
  for (int run = 0; run < 24; ++run) {
    const Planner planner = RandomPlanner(random, 3, 5, 5);
    RobustPlanSpec spec = Under(planner, 0.3 * (run % 4));
    if (run % 2 == 0) spec.conditions.switching.call_ahead = CallAhead::kNone;
    spec.conditions.max_slowdown = 0.01 * (run % 3);
    spec.constraints = RandomConstraints(random);
    const double seconds = planner.baseline().iteration_time_seconds * (1 + 0.02 * (run % 2));
    const auto found = PlanUnder(planner, seconds, spec);
    ASSERT_TRUE(found) << found.error().message;
    const double accepted = seconds * (1 + spec.conditions.max_slowdown);
    EXPECT_TRUE(Keeps(planner, found->plan.options, spec.constraints, accepted)) << run;
    EXPECT_LE(found->expected.iteration_time_seconds, found->accepted_seconds * (1 + 1e-9)) << run;
    EXPECT_GE(found->expected.saving_percent, -1e-9) << run;
    const double stages = SavingOfStages(planner, seconds, spec);
    EXPECT_GE(found->expected.saving_percent, stages - 1e-9) << run;
    better += found->expected.saving_percent > stages + 0.1 ? 1 : 0;
  }
  EXPECT_GE(better, 8);
}

TEST(ConstrainedPlanTest, KeepsConstraintsUnderNoise) {
  std::mt19937 random(43);
  for (int run = 0; run < 8; ++run) {
    const Planner planner = RandomPlanner(random, 3, 5, 5);
    RobustPlanSpec spec = Under(planner, 0.3);
    spec.conditions.noise.per_computation = 0.01;
    spec.conditions.max_slowdown = 0.005;
    spec.conditions.max_changes = run % 2 == 0 ? 12 : 1000;
    spec.constraints = RandomConstraints(random);
    const double seconds = 1.01 * planner.baseline().iteration_time_seconds;
    const auto found = PlanUnder(planner, seconds, spec);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_TRUE(Keeps(planner, found->plan.options, spec.constraints, seconds * 1.005)) << run;
    EXPECT_LE(found->plan.knob_changes, *spec.conditions.max_changes);
    EXPECT_GE(found->price_curve.back().saving_percent, 0);
  }
}

// Against all choices of small pipelines that keep the constraints.
TEST(ConstrainedPlanTest, IsNearTheOptimumOfSmallPipelines) {
  std::mt19937 random(47);
  double found_percent = 0;
  double most_percent = 0;
  for (int run = 0; run < 12; ++run) {
    const Planner planner = RandomPlanner(random, 2, 2, 3);
    RobustPlanSpec spec = Under(planner, 0.5);
    spec.conditions.switching.call_ahead = CallAhead::kNone;
    spec.conditions.max_slowdown = 0.03;
    spec.constraints = RandomConstraints(random);
    const double accepted =
        planner.baseline().iteration_time_seconds * (1 + spec.conditions.max_slowdown);
    double most = 0;
    std::vector<int> knobs(8, 0);
    for (int code = 0; code < 6561; ++code) {  // 3 clocks, 8 computations.
      for (int i = 0, rest = code; i < 8; ++i, rest /= 3) knobs[i] = rest % 3;
      const std::vector<CostOption> options = OptionsAt(planner.pipeline(), knobs);
      if (!Keeps(planner, options, spec.constraints, accepted)) continue;
      const auto figures = ReplayUnder(planner, *planner.Evaluate(options),
                                       {.conditions = spec.conditions, .iterations = 8});
      if (figures->slowdown_percent <= 100 * spec.conditions.max_slowdown) {
        most = std::max(most, figures->saving_percent);
      }
    }
    const auto found = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_LE(found->expected.saving_percent, most + 1e-9) << run;
    found_percent += found->expected.saving_percent;
    most_percent += most;
  }
  EXPECT_GT(found_percent, 0.97 * most_percent);
  EXPECT_GT(most_percent, 12);
}

// What the search finds without constraints it must nearly find with those that hardly bind.
TEST(ConstrainedPlanTest, WhatHardlyBindsCostsLittle) {
  std::mt19937 random(19);
  const Planner planner = RandomPlanner(random, 3, 5, 6);
  RobustPlanSpec spec = Under(planner, 0.7);
  spec.conditions.noise.per_computation = 0.01;
  spec.conditions.max_slowdown = 0.001;
  const double seconds = planner.baseline().iteration_time_seconds;
  const auto saving = [&](const PlanConstraints& constraints) {
    spec.constraints = constraints;
    const auto found = PlanUnder(planner, seconds, spec);
    EXPECT_TRUE(found) << found.error().message;
    return found->price_curve.back().saving_percent;
  };
  const double without = saving({});
  EXPECT_GT(without, 2);
  EXPECT_GT(saving({.time_margin_fraction = 0.001}), 0.9 * without);
}

TEST(ConstrainedPlanTest, MoreEffortIsNeverWorseAndTheSameTwice) {
  std::mt19937 random(53);
  for (int run = 0; run < 3; ++run) {
    const Planner planner = RandomPlanner(random, 3, 4, 4);
    RobustPlanSpec spec = Under(planner, 0.5);
    spec.conditions.noise.per_computation = 0.01 * (run % 2);
    spec.conditions.max_slowdown = 0.01;
    spec.constraints = RandomConstraints(random);
    double before = -1e300;
    for (int k = 0; k < 3; ++k) {
      spec.effort = k < 2 ? 1.0 / 64 : 1.0 / 16;
      const auto plan = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
      ASSERT_TRUE(plan) << plan.error().message;
      const double saving = plan->price_curve.back().saving_percent;
      if (k == 1) {
        EXPECT_EQ(saving, before) << run;
      }
      EXPECT_GE(saving, before) << run;
      before = saving;
    }
  }
}

// The knobs of each better plan that the search tells of; only of those that are there before it
// says that any of its work is done, where it is told to end then.
std::vector<std::vector<int>> ToldOf(const Planner& planner, const RobustPlanSpec& spec,
                                     bool ends_at_work) {
  std::vector<std::vector<int>> told;
  const auto plan = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec,
                              [&](const Progress& progress) {
                                if (ends_at_work && progress.share > 0) return false;
                                if (progress.better == nullptr) return true;
                                std::vector<int>& knobs = told.emplace_back();
                                for (const CostOption& option : progress.better->options) {
                                  knobs.push_back(option.knob);
                                }
                                return true;
                              });
  EXPECT_TRUE(plan) << plan.error().message;
  return told;
}

// More effort tells of the same plans, then of others: the search begins from none that depends on
// the effort. Clocks come at once, so a plan without conditions of any effort would hold.
TEST(ConstrainedPlanTest, MoreEffortGoesOnFromWhereLessEnds) {
  std::mt19937 random(71);
  std::size_t compared = 0;
  for (int run = 0; run < 12; ++run) {
    const Planner planner = RandomPlanner(random, 4, 6, 8);
    RobustPlanSpec spec = Under(planner, 0);
    spec.conditions.max_slowdown = 0.01;
    if (run % 4 < 2) spec.conditions.max_changes = 20;
    // With a margin alone, a second round tries plans without conditions before the work of the
    // first.
    const bool has_margin = run % 2 == 0;
    if (has_margin) {
      spec.constraints.time_margin_fraction = 0.02;
    } else {
      spec.constraints.granularity = run % 3 == 0 ? Granularity::kPhase : Granularity::kStageType;
    }
    std::vector<std::vector<int>> less = ToldOf(planner, spec, has_margin);
    spec.effort = has_margin ? 1.0 : 1.0 / 16;
    const std::vector<std::vector<int>> more = ToldOf(planner, spec, has_margin);
    // After the search comes what PlanFor() makes with the asked effort.
    if (!has_margin && !less.empty()) less.pop_back();
    ASSERT_LE(less.size(), more.size()) << run;
    EXPECT_TRUE(std::equal(less.begin(), less.end(), more.begin())) << run;
    compared += less.size();
  }
  EXPECT_GT(compared, 30U);
}

// With a granularity, too: what is tried for fewer changes is tried for more.
TEST(ConstrainedPlanTest, ALooserLimitOnChangesIsNeverWorse) {
  std::mt19937 random(61);
  bool limits_matter = false;
  for (int run = 0; run < 12; ++run) {
    const Planner planner = RandomPlanner(random, 3, 6, 5);
    RobustPlanSpec spec = Under(planner, 0.3 * (run % 3));
    spec.conditions.noise.per_computation = 0.005 * (run % 2);
    spec.conditions.max_slowdown = 0.01;
    spec.effort = run % 4 == 3 ? 1.0 / 16 : 1.0 / 64;
    spec.constraints.granularity = static_cast<Granularity>(1 + run % 2);
    double before = -1e300;
    for (const int most : {0, 1, 3, 5, 8, 12, 20, 36}) {
      spec.conditions.max_changes = most;
      const auto plan = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec);
      ASSERT_TRUE(plan) << plan.error().message;
      const double saving = plan->price_curve.back().saving_percent;
      EXPECT_GE(saving, before) << run << ", " << most;
      limits_matter |= most > 5 && saving > before + 0.1;
      before = saving;
    }
  }
  EXPECT_TRUE(limits_matter);
}

// Whoever gives up waits for no more than the plan without conditions that is being made.
TEST(ConstrainedPlanTest, EndsWhereToldTo) {
  std::mt19937 random(67);
  const Planner planner = RandomPlanner(random, 3, 5, 5);
  RobustPlanSpec spec = Under(planner, 0.3);
  spec.effort = 1;
  spec.constraints.granularity = Granularity::kPhase;
  for (int most = 1; most < 64; most *= 2) {
    int calls = 0;
    double share = 0;
    const auto plan = PlanUnder(planner, planner.baseline().iteration_time_seconds, spec,
                                [&](const Progress& progress) {
                                  EXPECT_GE(progress.share, share);
                                  share = progress.share;
                                  return ++calls < most;
                                });
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(calls, most);
  }
}

}  // namespace
}  // namespace perseus
