// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Any graph of activities: the least cost for each deadline.
#include <iostream>

#include "perseus/frontier.h"

int main() {
  perseus::TimeCostProblem house;
  house.curves = {{{2, 90}, {4, 40}, {5, 30}},  // Walls: 2 days cost 90, 4 days 40, ...
                  {{3, 50}, {6, 20}}};          // Roof, and the garden.
  house.curve_of = {0, 1, 1};
  house.precedences = {{.from = 0, .to = 1, .delay = 1}};  // The walls dry for a day.
  const auto frontier = perseus::SolveFrontier(house, {});
  if (!frontier) return std::cerr << frontier.error().message << '\n', 1;
  for (const perseus::FrontierBreakpoint& point : frontier->breakpoints) {
    std::cout << point.time << " days: " << point.cost << '\n';
  }
}
