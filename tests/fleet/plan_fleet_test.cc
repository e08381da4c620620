// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Real plans for a division of power.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fleet/site.h"
#include "fleet/sites.h"
#include "perseus/fleet.h"
#include "perseus/plan.h"

namespace perseus::fleet {
namespace {

using testing::Each;
using testing::NotNull;

// Three kinds of jobs, and a rack for two of them.
std::string Text(double kilowatts, double rack_kilowatts, const std::string& objective,
                 const std::string& slowdown) {
  return fmt::format(
      "power = \"{}kW\"\nobjective = \"{}\"\npue = 1.1\n"
      "[[limit]]\nname = \"rack\"\npower = \"{}kW\"\n"
      "[[job]]\nname = \"a\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\nmicrobatches = 4\ndp = 2\n"
      "max_slowdown = \"{}\"\nfixed_power = 300\nat = \"rack\"\n"
      "[[job]]\nname = \"b\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\nmicrobatches = 4\ncount = 2\n"
      "at = {{ rack = 0.25, site = 0.75 }}\nweight = 1.5\n"
      "[[job]]\nname = \"c\"\njob = \"gpt3-1.3b-a100-sxm.toml\"\nmicrobatches = 6\n"
      "schedule = \"gpipe\"\n",
      kilowatts, objective, rack_kilowatts, slowdown);
}

// What a job draws that follows its plan and waits until the iteration's time.
double WattsOf(const Site& site, const FleetPlan& made, std::size_t j) {
  const Plan& plan = *made.plans[j];
  const double seconds = made.answer.plans.jobs[j].time_seconds;
  if (std::isinf(seconds)) {
    return site.models[j]->waiting_watts * site.file.jobs[j].pipelines +
           site.file.jobs[j].fixed_watts;
  }
  const double joules =
      plan.energy_joules + site.models[j]->waiting_watts * (seconds - plan.iteration_time_seconds);
  return joules / seconds * site.file.jobs[j].pipelines + site.file.jobs[j].fixed_watts;
}

// Whatever the site: its plans keep every limit, and are close to the best.
void CheckPlans(const Site& site, const FleetPlan& made, double most_gap) {
  const PowerDivision& bound = made.answer.bound;
  const PowerDivision& plans = made.answer.plans;
  ASSERT_THAT(made.plans, Each(NotNull()));
  std::vector<double> drawn(site.power.nodes.size());
  for (std::size_t j = 0; j < made.plans.size(); ++j) {
    const FleetJob& job = site.power.jobs[j];
    EXPECT_NEAR(plans.jobs[j].watts, WattsOf(site, made, j), 1e-6) << job.name;
    EXPECT_GE(plans.jobs[j].time_seconds, made.plans[j]->iteration_time_seconds - 1e-12);
    if (job.slowest_seconds) {
      EXPECT_LE(plans.jobs[j].time_seconds, *job.slowest_seconds * (1 + 1e-9));
    }
    const double at_meter = plans.jobs[j].watts * site.power.meter_factor;
    drawn[0] += at_meter;
    for (const PowerShare& share : job.shares) {
      if (share.node != 0) drawn[share.node] += share.fraction * at_meter;
    }
  }
  for (std::size_t n = 0; n < drawn.size(); ++n) {
    EXPECT_LE(drawn[n], site.power.nodes[n].limit_watts * (1 + 1e-9)) << n;
    EXPECT_NEAR(plans.nodes[n].watts, drawn[n], 1e-6) << n;
  }
  EXPECT_LE(plans.objective, bound.objective * (1 + 1e-9));
  EXPECT_GE(plans.objective, bound.objective * (1 - most_gap));
}

TEST(PlanFleetTest, PlansKeepEveryLimitAndComeClose) {
  for (const char* objective : {"throughput", "max-min"}) {
    for (const double kilowatts : {8.0, 5.5}) {
      const Result<Site> site = Load(Text(kilowatts, 4.2, objective, "15%"));
      ASSERT_TRUE(site) << site.error().message;
      const Result<FleetPlan> made = PlanFleet(*site);
      ASSERT_TRUE(made) << objective << kilowatts << made.error().message;
      CheckPlans(*site, *made, 0.02);
    }
  }
}

TEST(PlanFleetTest, PlentyMeansFullSpeed) {
  const Result<Site> site = Load(Text(40, 40, "throughput", "15%"));
  ASSERT_TRUE(site) << site.error().message;
  const Result<FleetPlan> made = PlanFleet(*site);
  ASSERT_TRUE(made) << made.error().message;
  for (std::size_t j = 0; j < made->plans.size(); ++j) {
    EXPECT_NEAR(made->answer.plans.jobs[j].time_seconds,
                site->models[j]->frontier.front().time_seconds, 1e-9);
  }
  EXPECT_EQ(made->answer.bound.nodes[0].price_per_watt, 0);
}

// A job of which only the frontier is known is divided, too.
TEST(PlanFleetTest, FrontiersWithoutAPlannerStayWithoutConditions) {
  Result<Site> site = Load(Text(7, 5, "throughput", "15%"));
  ASSERT_TRUE(site) << site.error().message;
  JobModel bare = *site->models[3];
  bare.planner.reset();
  bare.job.reset();
  site->models[3] = std::make_shared<const JobModel>(std::move(bare));
  const Result<FleetPlan> made = PlanFleet(*site);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->plans[3], nullptr);
  EXPECT_THAT(made->plans[0], NotNull());
  EXPECT_LE(made->answer.plans.nodes[0].watts, 7000 * (1 + 1e-9));
  EXPECT_GE(made->answer.plans.objective, made->answer.bound.objective * 0.98);
}

TEST(PlanFleetTest, AHundredAlikeNeedFewPlans) {
  const Result<Site> site = Load(
      "power = \"130kW\"\n[[job]]\nname = \"a\"\ncount = 100\n"
      "job = \"gpt3-1.3b-a100-sxm.toml\"\nmicrobatches = 4\n");
  ASSERT_TRUE(site) << site.error().message;
  const Result<FleetPlan> made = PlanFleet(*site);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_LE(made->plans_made, 20);
  CheckPlans(*site, *made, 0.005);
}

TEST(PlanFleetTest, ThreadsChangeNothing) {
  const Result<Site> site = Load(Text(6.5, 4.2, "throughput", "15%"));
  ASSERT_TRUE(site) << site.error().message;
  FleetPlanOptions options;
  // Backwards, as threads might.
  options.for_each = [](std::size_t count, const std::function<void(std::size_t)>& work) {
    for (std::size_t k = count; k-- > 0;) work(k);
  };
  const Result<FleetPlan> one = PlanFleet(*site);
  const Result<FleetPlan> other = PlanFleet(*site, options);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->answer.plans.objective, other->answer.plans.objective);
  for (std::size_t j = 0; j < one->plans.size(); ++j) {
    EXPECT_EQ(one->plans[j]->energy_joules, other->plans[j]->energy_joules);
  }
}

TEST(PlanFleetTest, TooLittleIsInfeasible) {
  const Result<Site> site = Load(
      "power = \"1.5kW\"\n[[job]]\nname = \"a\"\ncount = 2\nmax_slowdown = \"5%\"\n"
      "job = \"gpt3-1.3b-a100-sxm.toml\"\nmicrobatches = 4\n");
  ASSERT_TRUE(site) << site.error().message;
  const Result<FleetPlan> made = PlanFleet(*site);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kInfeasible);
}

// Any budget that fits by the bound is kept by plans, or they say that it is too tight for them.
TEST(PlanFleetTest, AnyBudgetIsKept) {
  constexpr int kSites = 15;
  Result<Site> loaded = Load(Text(9, 4.2, "throughput", "15%"));
  ASSERT_TRUE(loaded) << loaded.error().message;
  std::mt19937 random(26);
  int infeasible = 0;
  for (int k = 0; k < kSites; ++k) {
    Site site = *loaded;
    site.power.nodes[0].limit_watts = 3000 + random() % 6500;
    site.power.nodes[1].limit_watts = 2500 + random() % 3000;
    FleetPlanOptions options;
    options.effort = 0.05;
    const Result<FleetPlan> made = PlanFleet(site, options);
    if (made) {
      CheckPlans(site, *made, 0.05);
    } else {
      EXPECT_EQ(made.error().code, ErrorCode::kInfeasible) << made.error().message;
      ++infeasible;
    }
  }
  EXPECT_LT(infeasible, kSites / 2);
}

}  // namespace
}  // namespace perseus::fleet
