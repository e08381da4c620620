// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/planning/plan.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/profile.h"
#include "perseus/schedule.h"

namespace perseus::cli {
namespace {

Planner MakePlanner() {
  std::string text = "stage,instruction,frequency,time,energy\n";
  for (int stage = 0; stage < 4; ++stage) {
    const double factor = 1 + 0.07 * stage;
    for (const auto& [clock, time, energy] :
         std::vector<std::tuple<int, double, double>>{{1410, 0.050, 20.0},
                                                      {1305, 0.0531, 18.6},
                                                      {1200, 0.056, 17.5},
                                                      {1050, 0.0631, 16.3},
                                                      {900, 0.071, 15.5}}) {
      for (const auto& [name, work] :
           std::vector<std::pair<std::string, double>>{{"forward", 1}, {"backward", 2.03}}) {
        text += std::to_string(stage) + ',' + name + ',' + std::to_string(clock) + ',' +
                std::to_string(time * work * factor) + ',' +
                std::to_string(energy * work * factor) + '\n';
      }
    }
  }
  const Result<Profile> profile = ParseProfile(text, "profile.csv");
  EXPECT_TRUE(profile) << profile.error().message;
  const auto schedule = BuildSchedule({.name = "1f1b", .num_stages = 4, .num_microbatches = 12});
  CostSpec costs;
  costs.blocking_power_watts = {80};
  auto planner = Planner::Create(*CostPipeline(*profile, *BuildDag(*schedule, {}), costs), {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

struct Rows {
  Plan chosen;
  std::vector<PlanPoint> points;
};

Rows RowsOf(const Planner& planner, const PlanConstraints& constraints, int threads) {
  const double today = planner.baseline().iteration_time_seconds;
  Rows rows;
  for (const double factor : {1.0, 1.01, 1.02, 1.05, 1.1, 1.05, 1.3, 0.9}) {
    rows.points.push_back({.name = "", .label = "", .seconds = factor * today, .plan = {}});
  }
  int told = 0;
  int bounded = 0;
  int begun = 0;
  int waited = 0;
  const RowsProgress progress = {.chosen = [&told](double /*share*/) { ++told; },
                                 .bound = [&bounded] { ++bounded; },
                                 .row =
                                     [&begun](int row, int count) {
                                       EXPECT_LE(row, count);
                                       ++begun;
                                     },
                                 .rest = [&waited] { ++waited; }};
  auto chosen = PlanRows(planner, constraints, {.chosen = 0.02, .row = 0.01, .bound = 0.01},
                         threads, 1.05 * today, progress, &rows.points);
  EXPECT_TRUE(chosen) << chosen.error().message;
  rows.chosen = *std::move(chosen);
  EXPECT_GT(told, 0);
  EXPECT_EQ(bounded, 1);
  EXPECT_EQ(waited, 1);
  if (threads == 1) {  // Else the helpers may have begun all of them.
    EXPECT_EQ(begun, 6);
  }
  return rows;
}

std::vector<int> Knobs(const Plan& plan) {
  std::vector<int> knobs;
  for (const CostOption& option : plan.options) knobs.push_back(option.knob);
  return knobs;
}

TEST(PlanRows, AreTheSameForAnyNumberOfThreads) {
  const Planner planner = MakePlanner();
  for (const bool constrained : {false, true}) {
    PlanConstraints constraints;
    if (constrained) constraints.time_margin_fraction = 0.01;
    const Rows alone = RowsOf(planner, constraints, 1);
    for (const int threads : {2, 5, 64}) {
      // A planner of its own: with constraints the walk is made by several at once.
      const Rows rows = RowsOf(MakePlanner(), constraints, threads);
      EXPECT_EQ(Knobs(rows.chosen), Knobs(alone.chosen));
      EXPECT_EQ(rows.chosen.requested_time_seconds, alone.chosen.requested_time_seconds);
      EXPECT_EQ(rows.chosen.discrete_bound->lower_bound_joules,
                alone.chosen.discrete_bound->lower_bound_joules);
      for (std::size_t k = 0; k < alone.points.size(); ++k) {
        ASSERT_EQ(rows.points[k].plan.has_value(), alone.points[k].plan.has_value()) << k;
        if (!alone.points[k].plan) continue;
        EXPECT_EQ(Knobs(*rows.points[k].plan), Knobs(*alone.points[k].plan)) << k;
        EXPECT_EQ(rows.points[k].plan->energy_joules, alone.points[k].plan->energy_joules);
      }
    }
  }
}

TEST(PlanRows, ShareThePlanOfATimeAndNeverGetWorseWithMore) {
  const Planner planner = MakePlanner();
  const Rows rows = RowsOf(planner, {}, 3);
  // The points come back in the order of their times.
  EXPECT_FALSE(rows.points[0].plan);  // Below the fastest time.
  EXPECT_EQ(Knobs(*rows.points[4].plan), Knobs(rows.chosen));
  EXPECT_EQ(Knobs(*rows.points[5].plan), Knobs(rows.chosen));
  const double watts = planner.pipeline().total_blocking_power_watts;
  double last = 1e300;
  for (const int k : {1, 2, 3, 4, 6, 7}) {
    const Plan& plan = *rows.points[k].plan;
    const double effective = plan.energy_joules - watts * plan.iteration_time_seconds;
    EXPECT_LE(effective, last * (1 + 1e-12)) << k;
    last = effective;
  }
}

// A search that is cut at once loses to one for a little less time, whose plan is then given out:
// with the bound of that one's time, not with its own.
TEST(PlanRows, TheBoundIsOfThePlanThatIsGivenOut) {
  const Planner planner = MakePlanner();
  const double today = planner.baseline().iteration_time_seconds;
  std::vector<PlanPoint> points;
  for (const double factor : {1.049, 1.05}) {
    points.push_back({.name = "", .label = "", .seconds = factor * today, .plan = {}});
  }
  const RowsProgress progress = {
      .chosen = [](double) {}, .bound = [] {}, .row = [](int, int) {}, .rest = [] {}};
  constexpr double kBoundEffort = 0.01;
  const auto chosen = PlanRows(planner, {}, {.chosen = 1e-9, .row = 0.1, .bound = kBoundEffort}, 2,
                               1.05 * today, progress, &points);
  ASSERT_TRUE(chosen) << chosen.error().message;
  ASSERT_TRUE(points[0].plan);
  ASSERT_EQ(Knobs(*chosen), Knobs(*points[0].plan));
  ASSERT_NE(Knobs(*chosen), Knobs(*planner.PlanFor(1.05 * today, {.effort = 1e-9})));
  EXPECT_FALSE(points[0].plan->discrete_bound);  // Only of what is chosen.
  Plan plan = *chosen;
  plan.discrete_bound.reset();
  ASSERT_TRUE(planner.AddDiscreteBound(&plan, kBoundEffort));
  ASSERT_TRUE(chosen->discrete_bound);
  EXPECT_EQ(chosen->discrete_bound->lower_bound_joules, plan.discrete_bound->lower_bound_joules);
  EXPECT_EQ(chosen->discrete_bound->gap_percent, plan.discrete_bound->gap_percent);
}

TEST(PlanRows, WithoutAChosenPlanThereIsNothing) {
  const Planner planner = MakePlanner();
  const double fastest = planner.frontier().fastest_seconds;
  int told = 0;
  const RowsProgress progress = {.chosen = [](double) {},
                                 .bound = [&told] { ++told; },
                                 .row = [&told](int, int) { ++told; },
                                 .rest = [&told] { ++told; }};
  for (const int threads : {1, 5}) {
    std::vector<PlanPoint> points;
    for (const double factor : {1.0, 1.1, 1.3}) {
      points.push_back({.name = "", .label = "", .seconds = factor * fastest, .plan = {}});
    }
    const auto chosen = PlanRows(planner, {}, {.chosen = 0.02, .row = 0.01, .bound = 1}, threads,
                                 0.9 * fastest, progress, &points);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().code, ErrorCode::kInfeasible);
    EXPECT_EQ(told, 0);
    for (const PlanPoint& point : points) EXPECT_FALSE(point.plan);
  }
}

}  // namespace
}  // namespace perseus::cli
