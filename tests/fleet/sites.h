// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_FLEET_SITES_H_
#define PERSEUS_TESTS_FLEET_SITES_H_

#include <random>
#include <string>

#include "fleet/site.h"
#include "perseus/fleet.h"
#include "perseus/result.h"

namespace perseus::fleet_testing {

// One pipeline that does an iteration in 1 s with 100 J or in 2 s with 80 J, and needs nothing to
// wait: 0 to 40 W for 0 to 0.5 iterations a second, then to 100 W for 1. At full speed it takes 1
// s.
FleetJob SmallJob();

// Two of them, "light" (weight 1) and "heavy" (weight 2), under one limit.
PowerSite TwoJobs(double limit_watts);

// The same, where "heavy" is in a rack with a limit of its own.
PowerSite TwoJobsInTree(double limit_watts, double rack_watts);

struct SiteShape {
  bool tree = false;
  bool spans = false;  // Jobs have shares in two nodes.
  bool plans = false;  // All jobs have some.
};

// Jobs with late pipelines, tiers, tenants, least watts; limits between the least and the most.
PowerSite RandomSite(std::mt19937& random, const SiteShape& shape);

double Uniform(std::mt19937& random, double low, double high);

}  // namespace perseus::fleet_testing

namespace perseus::fleet {

// The site of a text, as if it were in the folder of the sample job.
Result<Site> Load(const std::string& text);

}  // namespace perseus::fleet

#endif  // PERSEUS_TESTS_FLEET_SITES_H_
