// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "fleet/sites.h"
#include "perseus/fleet.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using fleet_testing::TwoJobsInTree;

struct BadSite {
  std::string field;
  std::string where;
  std::function<void(PowerSite&)> spoil;
};

TEST(FleetMisuseTest, BadSitesAreRefusedInASentence) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<BadSite> sites = {
      {"nodes", "site", [](PowerSite& s) { s.nodes.clear(); }},
      {"parent", "site", [](PowerSite& s) { s.nodes[0].parent = 1; }},
      {"parent", "rack", [](PowerSite& s) { s.nodes[1].parent.reset(); }},
      {"parent", "rack", [](PowerSite& s) { s.nodes[1].parent = 7; }},
      {"parent", "rack", [](PowerSite& s) { s.nodes[1].parent = 1; }},
      {"limit_watts", "rack", [](PowerSite& s) { s.nodes[1].limit_watts = -1; }},
      {"limit_watts", "site", [=](PowerSite& s) { s.nodes[0].limit_watts = nan; }},
      {"meter_factor", "site", [](PowerSite& s) { s.meter_factor = 0; }},
      {"frontier", "heavy", [](PowerSite& s) { s.jobs[1].frontier.clear(); }},
      {"frontier", "heavy",
       [](PowerSite& s) {
         s.jobs[1].frontier[0] = {0, 1};
       }},
      {"frontier", "heavy",
       [](PowerSite& s) {
         s.jobs[1].frontier[0] = {1, -1};
       }},
      {"frontier", "1",
       [=](PowerSite& s) {
         s.jobs[1].frontier[0] = {nan, 1};
         s.jobs[1].name = "";
       }},
      {"plans", "light",
       [=](PowerSite& s) {
         s.jobs[0].plans = {{1, infinity}};
       }},
      {"late", "light",
       [](PowerSite& s) {
         s.jobs[0].late = {{{0, 1}}};
       }},
      {"late", "light",
       [](PowerSite& s) {
         s.jobs[0].late = {{{1, 1}}, {{1, 1}}};
       }},
      {"full_speed_seconds", "light", [](PowerSite& s) { s.jobs[0].full_speed_seconds = 0; }},
      {"waiting_watts", "light", [](PowerSite& s) { s.jobs[0].waiting_watts = -1; }},
      {"pipelines", "light", [](PowerSite& s) { s.jobs[0].pipelines = 0; }},
      {"fixed_watts", "light", [=](PowerSite& s) { s.jobs[0].fixed_watts = infinity; }},
      {"weight", "light", [](PowerSite& s) { s.jobs[0].weight = 0; }},
      {"weight", "light", [](PowerSite& s) { s.jobs[0].weight = -2; }},
      {"slowest_seconds", "light", [](PowerSite& s) { s.jobs[0].slowest_seconds = 0.9; }},
      {"slowest_seconds", "light",
       [](PowerSite& s) {
         s.jobs[0].plans = {{2, 80}};
         s.jobs[0].slowest_seconds = 1.5;
       }},
      {"least_watts", "light", [](PowerSite& s) { s.jobs[0].least_watts = -1; }},
      {"shares", "heavy",
       [](PowerSite& s) {
         s.jobs[1].shares = {{5, 1}};
       }},
      {"shares", "heavy",
       [](PowerSite& s) {
         s.jobs[1].shares = {{1, 0.6}, {0, 0.6}};
       }},
      {"shares", "heavy",
       [](PowerSite& s) {
         s.jobs[1].shares = {{1, 1.5}, {0, -0.5}};
       }},
  };
  for (const BadSite& bad : sites) {
    PowerSite site = TwoJobsInTree(100, 50);
    bad.spoil(site);
    for (const auto objective : {FleetObjective::kThroughput, FleetObjective::kMaxMin}) {
      const auto answer = DividePower(site, objective);
      ASSERT_FALSE(answer) << bad.where << " " << bad.field;
      EXPECT_EQ(answer.error().code, ErrorCode::kInvalidInput);
      EXPECT_EQ(answer.error().field, bad.field) << answer.error().message;
      EXPECT_THAT(answer.error().message, Mentions(bad.where));
    }
  }
}

TEST(FleetMisuseTest, ACircleIsNamed) {
  PowerSite site = TwoJobsInTree(100, 50);
  site.nodes.push_back({"row", 1});
  site.nodes[1].parent = 2;
  const auto shortages = FindShortages(site);
  ASSERT_FALSE(shortages);
  EXPECT_THAT(shortages.error().message, Mentions("rack", "circle"));
}

TEST(FleetMisuseTest, TenantsUnderSeveralLimitsAreRefused) {
  const auto answer = DividePower(TwoJobsInTree(100, 50), FleetObjective::kMaxMinTenants);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(answer.error().message, Mentions("tenants", "limit", "max-min"));
}

}  // namespace
}  // namespace perseus
