// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Writes a plan.json of many computations and reads it back: what can be
// planned can be read (pipeline/limits.h, perseus/plan_file.h).
//
//   plan_file_size [MICROBATCHES]     two stages, 1,000,000 microbatches

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "perseus/plan_file.h"

namespace {

perseus::PlanDocument LargePlan(int stages, int microbatches) {
  perseus::PlanDocument plan;
  plan.schedule = "gpipe";
  plan.stages = stages;
  plan.virtual_stages = 1;
  plan.microbatches = microbatches;
  plan.knobs_are_numbers = true;
  for (int stage = 0; stage < stages; ++stage) {
    perseus::PlannedRank& rank = plan.ranks.emplace_back();
    for (const auto type :
         {perseus::ComputationType::kForward, perseus::ComputationType::kBackward}) {
      for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
        perseus::PlannedComputation computation;
        computation.id = {type, stage, microbatch};
        computation.knob = {"1410", 1410};
        computation.start_seconds = microbatch / 3.0;
        computation.duration_seconds = 1.0 / 3;
        computation.energy_joules = 100.0 / 3;
        rank.computations.push_back(std::move(computation));
      }
    }
  }
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kStages = 2;
  const int microbatches = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
  const std::string text = perseus::FormatPlanJson(LargePlan(kStages, microbatches));
  const auto plan = perseus::ParsePlanJson(text, "plan.json");
  if (!plan) {
    fmt::print(stderr, "{}\n", plan.error().message);
    return 1;
  }
  const bool same = perseus::FormatPlanJson(*plan) == text;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print("{} computations, {} bytes, {}; {} MiB, {:.1f} s of CPU in all\n",
             2LL * kStages * microbatches, text.size(), same ? "read back" : "NOT THE SAME",
             usage.ru_maxrss >> 10, static_cast<double>(usage.ru_utime.tv_sec));
  return same ? 0 : 1;
}
