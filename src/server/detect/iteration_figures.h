// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_ITERATION_FIGURES_H_
#define PERSEUS_SERVER_DETECT_ITERATION_FIGURES_H_

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace perseus::server {

// What one iteration of a job took, as far as ranks reported it to this server.
struct IterationFigures {
  std::size_t ranks = 0;  // That reported it.
  double seconds = 0;     // Of the slowest of these: the others wait for it.
  std::size_t energy_ranks = 0;
  double energy_ranks_joules = 0;  // Of these ranks together.

  // Of all ranks, while `expected` of them should report. None: not each of them told its energy.
  std::optional<double> JoulesOf(std::size_t expected) const {
    if (energy_ranks == 0 || energy_ranks < expected) return std::nullopt;
    return energy_ranks_joules;
  }
};

// `Report` has the members `time_seconds` and `energy_joules`.
template <typename Report>
IterationFigures FiguresOf(const std::vector<Report>& reports) {
  IterationFigures figures{.ranks = reports.size()};
  for (const Report& report : reports) {
    figures.seconds = std::max(figures.seconds, report.time_seconds);
    if (!report.energy_joules) continue;
    ++figures.energy_ranks;
    figures.energy_ranks_joules += *report.energy_joules;
  }
  return figures;
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_ITERATION_FIGURES_H_
