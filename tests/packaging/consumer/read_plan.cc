// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// An agent's use of a plan: reads plan.json and looks up the clock of one
// computation. Links perseus::model alone.
//
//   read_plan PLAN RANK POSITION

#include <cstdlib>
#include <iostream>

#include "perseus/plan_file.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: read_plan PLAN RANK POSITION\n";
    return 2;
  }
  const auto plan = perseus::ReadPlan(argv[1]);
  if (!plan) {
    std::cerr << plan.error().message << '\n';
    return 1;
  }
  const auto rank = static_cast<std::size_t>(std::strtoull(argv[2], nullptr, 10));
  const auto position = static_cast<std::size_t>(std::strtoull(argv[3], nullptr, 10));
  if (rank >= plan->ranks.size() || position >= plan->ranks[rank].computations.size()) {
    std::cerr << "the plan has no computation " << position << " of rank " << rank << '\n';
    return 1;
  }
  const auto& computation = plan->ranks[rank].computations[position];
  std::cout << perseus::ComputationTypeLetter(computation.id.type) << computation.id.stage << '.'
            << computation.id.microbatch << ' ' << computation.knob.label
            << (plan->knobs_are_numbers ? " MHz\n" : "\n");
  return 0;
}
