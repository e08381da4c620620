// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// One call at least of every public header of perseus::fleet.

#include <cmath>

#include "check.h"
#include "perseus/fleet.h"

int main() {
  perseus::PowerSite site;
  site.nodes[0].limit_watts = 120;
  for (const double weight : {1.0, 2.0}) {
    perseus::FleetJob& job = site.jobs.emplace_back();
    job.frontier = {{1, 100}, {2, 80}};
    job.full_speed_seconds = 1;
    job.weight = weight;
  }
  const auto answer =
      ValueOf(perseus::DividePower(site, perseus::FleetObjective::kThroughput), "DividePower");
  Check(std::abs(answer.bound.objective - 2.25) < 1e-9, "the division");
  const auto schedule = ValueOf(perseus::SchedulePower(site, {{10, 1, {}}}, {{0, 0, 5}}),
                                "SchedulePower, which needs COIN-OR CLP");
  Check(std::abs(schedule.bound.cost - 400) < 1e-6, "the schedule");
  return 0;
}
