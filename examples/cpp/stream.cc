// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A plan for each iteration, where microbatches differ: stream PROFILE.CSV
#include <iostream>

#include "perseus/job.h"

int main(int argc, char** argv) {
  perseus::JobFile settings;
  settings.schedule = "1f1b";
  settings.microbatches = 4;
  settings.blocking_power_watts = {83.64};
  const auto job = perseus::Job::Load(argc > 1 ? argv[1] : "profile.csv", settings);
  if (!job) return std::cerr << job.error().message << '\n', 1;
  const auto stream = job->MakeStream();
  if (!stream) return std::cerr << stream.error().message << '\n', 1;
  for (const double longest : {1.0, 1.5, 3.0}) {
    const auto made = stream->PlanFor(perseus::Work({1, longest, 1, 0.5}));
    if (!made) return std::cerr << made.error().message << '\n', 1;
    const auto knob = made->plan.KnobOf(made->planner.pipeline(), {.stage = 1, .microbatch = 3});
    if (!knob) return std::cerr << knob.error().message << '\n', 1;
    std::cout << made->plan.saving_percent << " % saved; its last forward runs at " << knob->label
              << '\n';
  }
}
