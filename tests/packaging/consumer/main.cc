// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A program that has nothing of Perseus but its public headers and library.

#include <iostream>

#include "perseus/schedule.h"

int main() {
  const auto schedule =
      perseus::BuildSchedule({.name = "1f1b", .num_stages = 4, .num_microbatches = 8});
  if (!schedule) {
    std::cerr << schedule.error().message << '\n';
    return 1;
  }
  if (schedule->num_ranks != 4 || schedule->ranks.at(0).size() != 16) {
    std::cerr << "unexpected shape of 1f1b with 4 stages and 8 microbatches\n";
    return 1;
  }
  std::cout << perseus::DrawSchedule(*schedule);
  const auto unknown = perseus::BuildSchedule({.name = "no such schedule"});
  return unknown ? 1 : 0;
}
