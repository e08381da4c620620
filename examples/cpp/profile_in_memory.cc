// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A profile that was measured in this process, and its plan as plan.json.
#include <iostream>

#include "perseus/job.h"
#include "perseus/plan_file.h"

int main() {
  perseus::ProfileBuilder builder("measured");
  for (int stage = 0; stage < 2; ++stage) {
    for (const double mhz : {1410.0, 1200.0, 1005.0}) {
      const double seconds = 0.01 * (1 + 0.3 * stage) * (0.3 + 0.7 * 1410 / mhz);
      const double joules = 0.25 * mhz * seconds;
      builder.Add(stage, perseus::ComputationType::kForward, mhz, seconds, joules);
      builder.Add(stage, perseus::ComputationType::kBackward, mhz, 2 * seconds, 2 * joules);
    }
  }
  const auto profile = builder.Build();
  if (!profile) return std::cerr << profile.error().message << '\n', 1;
  const auto job = perseus::Job::Make(
      *profile, {.schedule = "1f1b", .microbatches = 8, .blocking_power_watts = {83.64}});
  if (!job) return std::cerr << job.error().field << ": " << job.error().message << '\n', 1;
  const auto made = job->Plan();
  if (!made) return std::cerr << made.error().message << '\n', 1;
  std::cout << perseus::FormatPlanJson(made->document);
}
