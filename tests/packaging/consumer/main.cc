// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A program that has nothing of Perseus but its public headers and library.

#include <iostream>

#include "perseus/frontier.h"
#include "perseus/schedule.h"

namespace {

// The example of docs/solver.md: the frontier as a general solver.
bool HouseIsRight() {
  perseus::TimeCostProblem house;
  house.curves = {{{2, 90}, {4, 40}, {5, 30}},  // 2 days cost 90, 4 cost 40, ...
                  {{3, 50}, {6, 20}}};
  house.curve_of = {0, 1, 1};  // Three activities; the last two share a curve.
  house.precedences = {{0, 1, 0.0}, {0, 2, 0.0}};
  const auto frontier = perseus::SolveFrontier(house, {});
  if (!frontier) return false;
  for (const auto& p : frontier->breakpoints) {
    std::cout << p.time << ' ' << p.cost << ' ' << p.slope << '\n';
  }
  const auto& fastest = frontier->breakpoints.front();
  return frontier->breakpoints.size() == 4 && fastest.time == 5 && fastest.cost == 190;
}

}  // namespace

int main() {
  if (!HouseIsRight()) {
    std::cerr << "unexpected frontier of the house\n";
    return 1;
  }
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
