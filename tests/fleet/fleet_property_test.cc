// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "fleet/sites.h"
#include "perseus/fleet.h"

namespace perseus {
namespace {

using fleet_testing::RandomSite;
using fleet_testing::SiteShape;
using fleet_testing::Uniform;

// Tenants are divided under one limit only.
std::vector<FleetObjective> ObjectivesOf(const PowerSite& site) {
  std::vector<FleetObjective> objectives = {FleetObjective::kThroughput, FleetObjective::kMaxMin};
  if (site.nodes.size() == 1) objectives.push_back(FleetObjective::kMaxMinTenants);
  return objectives;
}

SiteShape RandomShape(std::mt19937& random) {
  SiteShape shape;
  shape.tree = random() % 2 == 0;
  shape.spans = shape.tree && random() % 2 == 0;
  shape.plans = random() % 2 == 0;
  return shape;
}

void CheckKeepsLimits(const PowerSite& site, const PowerDivision& division) {
  std::vector<double> sums(site.nodes.size(), 0);
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    const std::vector<PowerShare> whole = {{0, 1}};
    for (const PowerShare& share : site.jobs[j].shares.empty() ? whole : site.jobs[j].shares) {
      for (std::size_t n = share.node;; n = *site.nodes[n].parent) {
        sums[n] += share.fraction * division.jobs[j].watts * site.meter_factor;
        if (n == 0) break;
      }
    }
  }
  for (std::size_t n = 0; n < sums.size(); ++n) {
    RC_ASSERT(sums[n] <= site.nodes[n].limit_watts * (1 + 2e-12));
    RC_ASSERT(std::abs(division.nodes[n].watts - sums[n]) <= 1e-9 * sums[n]);
    RC_ASSERT(division.nodes[n].price_per_watt >= 0);
  }
}

void CheckFollowsPlans(const FleetJob& job, const JobShare& share) {
  const IterationPoint plan = job.plans[share.plan];
  RC_ASSERT(share.time_seconds >= plan.time_seconds * (1 - 1e-12));
  if (job.slowest_seconds && job.late.empty()) {
    RC_ASSERT(share.time_seconds <= *job.slowest_seconds * (1 + 1e-12));
  }
  double watts = job.fixed_watts;
  const double on_time = static_cast<double>(job.pipelines) - static_cast<double>(job.late.size());
  const auto with_waiting = [&](const IterationPoint& point) {
    return job.waiting_watts + (point.energy_joules - job.waiting_watts * point.time_seconds) *
                                   share.iterations_per_second;
  };
  watts += on_time * with_waiting(plan);
  for (const LatePipeline& late : job.late) watts += with_waiting(late.point);
  RC_ASSERT(std::abs(share.watts - watts) <= 1e-9 * watts);
}

RC_GTEST_PROP(FleetProperty, LimitsAreKeptAndNoPlansBeatTheBound, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const PowerSite site = RandomSite(random, RandomShape(random));
  for (const FleetObjective objective : ObjectivesOf(site)) {
    const auto answer = DividePower(site, objective);
    if (!answer) {
      RC_ASSERT(answer.error().code == ErrorCode::kInfeasible);
      RC_ASSERT(!FindShortages(site)->empty());
      continue;
    }
    RC_ASSERT(FindShortages(site)->empty());
    CheckKeepsLimits(site, answer->bound);
    CheckKeepsLimits(site, answer->plans);
    RC_ASSERT(answer->plans.objective <= answer->bound.objective * (1 + 1e-9));
    for (std::size_t j = 0; j < site.jobs.size(); ++j) {
      if (!site.jobs[j].plans.empty()) CheckFollowsPlans(site.jobs[j], answer->plans.jobs[j]);
    }
  }
}

RC_GTEST_PROP(FleetProperty, MoreWattsForTheSiteNeverLowerTheObjective, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const PowerSite made = RandomSite(random, RandomShape(random));
  const auto site = PreparedSite::Make(made);
  RC_ASSERT(site);
  const auto free = site->Divide(FleetObjective::kThroughput, {});
  std::vector<double> limits;
  if (!free) return;
  for (const NodeShare& node : free->bound.nodes) limits.push_back(node.watts);
  const double most = limits[0] * 1.5;
  for (std::size_t n = 1; n < limits.size(); ++n) limits[n] *= Uniform(random, 0.9, 1.3);
  for (const FleetObjective objective : ObjectivesOf(made)) {
    double bound = 0;
    double plans = 0;
    for (int step = 0; step <= 40; ++step) {
      limits[0] = most * step / 40;
      const auto answer = site->Divide(objective, limits);
      if (!answer) {
        RC_ASSERT(answer.error().code == ErrorCode::kInfeasible);
        RC_ASSERT(bound == 0);
        continue;
      }
      RC_ASSERT(answer->bound.objective >= bound * (1 - 1e-9));
      RC_ASSERT(answer->plans.objective >= plans * (1 - 1e-9));
      bound = answer->bound.objective;
      plans = answer->plans.objective;
    }
  }
}

RC_GTEST_PROP(FleetProperty, MoreWattsForANodeNeverLowerTheBound, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  PowerSite site = RandomSite(random, {true, random() % 2 == 0, false});
  for (const FleetObjective objective : ObjectivesOf(site)) {
    const auto before = DividePower(site, objective);
    if (!before) return;
    PowerSite more = site;
    for (PowerNode& node : more.nodes) node.limit_watts *= Uniform(random, 1, 1.2);
    const auto after = DividePower(more, objective);
    RC_ASSERT(after);
    RC_ASSERT(after->bound.objective >= before->bound.objective * (1 - 1e-9));
  }
}

RC_GTEST_PROP(FleetProperty, AJobThatLeavesNeverHurtsTheOthers, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const bool plans = random() % 2 == 0;
  const PowerSite site = RandomSite(random, {!plans && random() % 2 == 0, false, plans});
  const auto before = DividePower(site, FleetObjective::kThroughput);
  if (!before) return;
  for (std::size_t leaver = 0; leaver < site.jobs.size(); ++leaver) {
    PowerSite rest = site;
    rest.jobs.erase(rest.jobs.begin() + static_cast<std::ptrdiff_t>(leaver));
    const auto after = DividePower(rest, FleetObjective::kThroughput);
    RC_ASSERT(after);
    const double share = site.jobs[leaver].weight;
    RC_ASSERT(after->bound.objective >=
              (before->bound.objective - share * before->bound.jobs[leaver].speed) * (1 - 1e-9));
    RC_ASSERT(after->plans.objective >=
              (before->plans.objective - share * before->plans.jobs[leaver].speed) * (1 - 1e-9));
  }
}

RC_GTEST_PROP(FleetProperty, TheOrderOfJobsDoesNotMatter, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const PowerSite site = RandomSite(random, {random() % 2 == 0, false, random() % 2 == 0});
  PowerSite turned = site;
  std::reverse(turned.jobs.begin(), turned.jobs.end());
  for (const FleetObjective objective : {FleetObjective::kThroughput, FleetObjective::kMaxMin}) {
    const auto one = DividePower(site, objective);
    const auto other = DividePower(turned, objective);
    RC_ASSERT(one.has_value() == other.has_value());
    if (!one) continue;
    // Real plans may differ where two choices are worth the same.
    RC_ASSERT(std::abs(one->plans.objective - other->plans.objective) <=
              1e-9 * one->plans.objective);
    for (std::size_t j = 0; j < site.jobs.size(); ++j) {
      const std::size_t back = site.jobs.size() - 1 - j;
      RC_ASSERT(std::abs(one->bound.jobs[j].speed - other->bound.jobs[back].speed) < 1e-9);
    }
  }
}

// Joules and watts in thousands, or seconds and joules in thousands.
PowerSite Scaled(PowerSite site, double seconds, double watts) {
  const auto scale = [&](IterationPoint& point) {
    point.time_seconds *= seconds;
    point.energy_joules *= seconds * watts;
  };
  for (FleetJob& job : site.jobs) {
    for (IterationPoint& point : job.frontier) scale(point);
    for (IterationPoint& point : job.plans) scale(point);
    for (LatePipeline& late : job.late) scale(late.point);
    job.full_speed_seconds *= seconds;
    if (job.slowest_seconds) *job.slowest_seconds *= seconds;
    for (double* value : {&job.waiting_watts, &job.fixed_watts, &job.least_watts}) *value *= watts;
  }
  for (PowerNode& node : site.nodes) node.limit_watts *= watts;
  return site;
}

RC_GTEST_PROP(FleetProperty, UnitsDoNotMatter, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const PowerSite site = RandomSite(random, {random() % 2 == 0, random() % 2 == 0, false});
  for (const FleetObjective objective : ObjectivesOf(site)) {
    const auto one = DividePower(site, objective);
    if (!one) continue;
    for (const PowerSite& scaled : {Scaled(site, 1e-3, 1), Scaled(site, 1, 1e3)}) {
      const auto other = DividePower(scaled, objective);
      RC_ASSERT(other);
      RC_ASSERT(std::abs(one->bound.objective - other->bound.objective) <=
                1e-9 * one->bound.objective);
    }
  }
}

// Halves of all jobs in two nodes whose limits do not bind: a linear program has to find what one
// order of segments finds. Frontiers have more corners than it begins with.
RC_GTEST_PROP(FleetProperty, TheProgramAgreesWithTheOrderOfSegments, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  PowerSite site = RandomSite(random, {});
  for (FleetJob& job : site.jobs) {
    const IterationPoint first = job.frontier.front();
    job.frontier = {first};
    for (int i = 1; i < 200; ++i) {
      const double slope = 2 * first.energy_joules / first.time_seconds * (1 - i / 200.0);
      const double step = first.time_seconds * Uniform(random, 0, 0.005);
      job.frontier.push_back({job.frontier.back().time_seconds + step,
                              job.frontier.back().energy_joules - slope * step});
    }
  }
  site.nodes.push_back({"left", 0, 1e9});
  site.nodes.push_back({"right", 0, 1e9});
  const auto whole = DividePower(site, FleetObjective::kThroughput);
  for (FleetJob& job : site.jobs) job.shares = {{1, 0.5}, {2, 0.5}};
  const auto halves = DividePower(site, FleetObjective::kThroughput);
  RC_ASSERT(whole.has_value() == halves.has_value());
  if (!whole) return;
  RC_ASSERT(std::abs(whole->bound.objective - halves->bound.objective) <=
            1e-9 * whole->bound.objective);
  for (std::size_t j = 0; j < site.jobs.size(); ++j) {
    RC_ASSERT(std::abs(whole->bound.jobs[j].speed - halves->bound.jobs[j].speed) < 1e-6);
  }
}

// The best objective is concave in a limit, and its price lies between the slopes on both sides.
RC_GTEST_PROP(FleetProperty, APriceIsTheSlopeOfTheObjective, (std::uint32_t seed)) {
  std::mt19937 random(seed);
  const PowerSite site = RandomSite(random, {random() % 2 == 0, random() % 2 == 0, false});
  const auto answer = DividePower(site, FleetObjective::kThroughput);
  if (!answer) return;
  const double objective = answer->bound.objective;
  for (std::size_t n = 0; n < site.nodes.size(); ++n) {
    const double limit = site.nodes[n].limit_watts;
    if (std::isinf(limit)) continue;
    const double price = answer->bound.nodes[n].price_per_watt;
    const double step = 1e-3 * limit;
    PowerSite moved = site;
    moved.nodes[n].limit_watts = limit + step;
    const auto more = DividePower(moved, FleetObjective::kThroughput);
    RC_ASSERT(more);
    RC_ASSERT(more->bound.objective - objective <= price * step + 1e-8 * objective);
    moved.nodes[n].limit_watts = limit - step;
    const auto less = DividePower(moved, FleetObjective::kThroughput);
    if (less) RC_ASSERT(objective - less->bound.objective >= price * step - 1e-8 * objective);
  }
}

}  // namespace
}  // namespace perseus
