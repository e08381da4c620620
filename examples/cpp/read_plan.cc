// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The clock of a computation, as plan.json says: read_plan PLAN.JSON RANK POSITION
#include <cstdlib>
#include <iostream>

#include "perseus/plan_file.h"

int main(int argc, char** argv) {
  if (argc != 4) return std::cerr << "usage: read_plan PLAN.JSON RANK POSITION\n", 2;
  const auto plan = perseus::ReadPlan(argv[1]);
  if (!plan) return std::cerr << plan.error().message << '\n', 1;
  const std::size_t rank = std::strtoul(argv[2], nullptr, 10);
  const std::size_t position = std::strtoul(argv[3], nullptr, 10);
  if (rank >= plan->ranks.size() || position >= plan->ranks[rank].computations.size()) {
    return std::cerr << "the plan has no such computation\n", 1;
  }
  const perseus::PlannedComputation& planned = plan->ranks[rank].computations[position];
  std::cout << perseus::ComputationTypeName(planned.id.type) << " of stage " << planned.id.stage
            << ", microbatch " << planned.id.microbatch << ": " << planned.knob.label << '\n';
}
