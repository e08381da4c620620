// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "site/days/loads.h"

#include <algorithm>

namespace perseus::site {

LoadTree::LoadTree(const DaysSite& site)
    : nodes_(site.nodes.size()), meter_factor_(site.meter_factor) {
  for (const DaysJob& job : site.jobs) {
    std::vector<double> fractions(nodes_, 0.0);
    const auto add = [&](std::size_t node, double fraction) {
      for (std::size_t at = node;; at = *site.nodes[at].parent) {
        fractions[at] += fraction;
        if (!site.nodes[at].parent) break;
      }
    };
    if (job.fleet.shares.empty()) add(0, 1);
    for (const PowerShare& share : job.fleet.shares) add(share.node, share.fraction);
    parts_.emplace_back();
    for (std::size_t node = 0; node < nodes_; ++node) {
      if (fractions[node] > 0) parts_.back().emplace_back(node, fractions[node]);
    }
  }
}

void LoadTree::Add(std::size_t job, double watts, std::vector<double>* loads) const {
  for (const auto& [node, fraction] : parts_[job]) {
    (*loads)[node] += meter_factor_ * fraction * watts;
  }
}

bool LoadTree::Carries(std::size_t node, std::size_t job) const {
  return std::any_of(parts_[job].begin(), parts_[job].end(),
                     [node](const auto& part) { return part.first == node; });
}

std::vector<double> LoadTree::LimitsFor(const std::vector<std::size_t>& jobs,
                                        const std::vector<bool>& counts,
                                        std::vector<double> limits) const {
  for (std::size_t node = 0; node < limits.size(); ++node) {
    bool carries = false;
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      carries = carries || (counts[k] && Carries(node, jobs[k]));
    }
    if (!carries) limits[node] = kNoPowerLimit;
  }
  return limits;
}

bool Fits(const std::vector<double>& loads, const std::vector<double>& limits) {
  constexpr double kRounding = 1e-9;
  for (std::size_t node = 0; node < loads.size(); ++node) {
    if (loads[node] > limits[node] * (1 + kRounding)) return false;
  }
  return true;
}

std::vector<double> FillAlike(const LoadTree& tree, const std::vector<std::size_t>& jobs,
                              const std::vector<double>& all_limits,
                              const std::vector<double>& others,
                              const std::function<double(std::size_t, double)>& watts_at) {
  constexpr int kHalvings = 50;
  std::vector<double> levels(jobs.size(), 0.0);
  std::vector<bool> rises(jobs.size(), true);
  const auto loads_at = [&](double level) {
    std::vector<double> loads = others;
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      tree.Add(jobs[k], watts_at(k, rises[k] ? level : levels[k]), &loads);
    }
    return loads;
  };
  double level = 0;
  while (std::find(rises.begin(), rises.end(), true) != rises.end()) {
    const std::vector<double> limits = tree.LimitsFor(jobs, rises, all_limits);
    double low = level;
    double high = 1;
    if (Fits(loads_at(high), limits)) {
      low = high;
    } else {
      for (int i = 0; i < kHalvings; ++i) {
        const double middle = (low + high) / 2;
        (Fits(loads_at(middle), limits) ? low : high) = middle;
      }
    }
    level = low;
    const std::vector<double> above = loads_at(high);
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      if (!rises[k]) continue;
      levels[k] = level;
      for (std::size_t node = 0; node < above.size(); ++node) {
        if (level >= 1 || (above[node] > limits[node] && tree.Carries(node, jobs[k]))) {
          rises[k] = false;
        }
      }
    }
  }
  std::vector<double> watts;
  for (std::size_t k = 0; k < jobs.size(); ++k) watts.push_back(watts_at(k, levels[k]));
  return watts;
}

}  // namespace perseus::site
