// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation/published_frontier.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace perseus::sosp24 {
namespace {

// Sums of energies in another order differ by so much, relatively.
constexpr double kRounding = 1e-12;

template <typename Cost>
std::vector<int> BestUpTo(const std::vector<Sosp24Point>& points, Cost cost) {
  std::vector<int> best(points.size(), 0);
  for (std::size_t i = 1; i < points.size(); ++i) {
    const bool better = cost(points[i]) < cost(points[best[i - 1]]);
    best[i] = better ? static_cast<int>(i) : best[i - 1];
  }
  return best;
}

}  // namespace

PublishedFrontier::PublishedFrontier(std::vector<Sosp24Point> points, double waiting_watts)
    : points_(std::move(points)), waiting_watts_(waiting_watts) {
  std::stable_sort(points_.begin(), points_.end(), [](const Sosp24Point& a, const Sosp24Point& b) {
    return a.iteration_time_seconds < b.iteration_time_seconds;
  });
  least_total_ = BestUpTo(points_, [](const Sosp24Point& point) { return point.energy_joules; });
  least_effective_ = BestUpTo(points_, [waiting_watts](const Sosp24Point& point) {
    return point.energy_joules - waiting_watts * point.iteration_time_seconds;
  });
}

const Sosp24Point& PublishedFrontier::Best(const std::vector<int>& best_up_to,
                                           double seconds) const {
  const auto after = std::upper_bound(
      points_.begin(), points_.end(), seconds,
      [](double time, const Sosp24Point& point) { return time < point.iteration_time_seconds; });
  const std::ptrdiff_t last = std::max<std::ptrdiff_t>(after - points_.begin() - 1, 0);
  return points_[best_up_to[last]];
}

bool PublishedFrontier::RulesAreBest(double seconds) const {
  const auto with_waiting = [&](const Sosp24Point& point) {
    return point.energy_joules + waiting_watts_ * (seconds - point.iteration_time_seconds);
  };
  const double total = LeastTotal(seconds).energy_joules;
  const double effective = with_waiting(LeastEffective(seconds));
  for (const Sosp24Point& point : points_) {
    if (point.iteration_time_seconds > seconds) continue;
    if (point.energy_joules < total - kRounding * std::abs(total)) return false;
    if (with_waiting(point) < effective - kRounding * std::abs(effective)) return false;
  }
  return LeastTotal(seconds).iteration_time_seconds <= seconds &&
         LeastEffective(seconds).iteration_time_seconds <= seconds;
}

}  // namespace perseus::sosp24
