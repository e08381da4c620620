// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The robust plan where clocks come late and times vary: robust_plan PROFILE.CSV
#include <iostream>

#include "perseus/job.h"

int main(int argc, char** argv) {
  perseus::JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 8;
  settings.blocking_power_watts = {83.64};
  settings.noise = 0.01;
  settings.switch_latency_seconds = 0.02;
  settings.max_slowdown = 0.005;
  settings.effort = 0.01;
  const auto job = perseus::Job::Load(argc > 1 ? argv[1] : "profile.csv", settings);
  if (!job) return std::cerr << job.error().message << '\n', 1;
  const auto made = job->Plan();
  if (!made) return std::cerr << made.error().message << '\n', 1;
  std::cout << "saves " << made->expected->saving_percent << " %, is "
            << made->expected->slowdown_percent << " % slower; without conditions "
            << made->held->paper_plan.saving_percent << " %\n";
}
