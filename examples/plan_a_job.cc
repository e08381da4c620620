// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <iostream>

#include "perseus/job.h"

int main() {
  perseus::JobFile wishes;  // Or a job file: Job::Load("job.toml").
  wishes.schedule = "1f1b";
  wishes.microbatches = 16;
  wishes.blocking_power_watts = {83.64};
  const auto job = perseus::Job::Load("examples/gpt3-1.3b-a100-sxm.csv", wishes);
  if (!job) return std::cerr << job.error().message << '\n', 1;
  const auto planner = job->MakePlanner();
  if (!planner) return std::cerr << planner.error().message << '\n', 1;
  const auto plan = job->MakePlan(*planner);
  if (!plan) return std::cerr << plan.error().message << '\n', 1;
  std::cout << plan->saving_percent << " % saved, within " << plan->gap_percent
            << " % of the bound\n";
}
