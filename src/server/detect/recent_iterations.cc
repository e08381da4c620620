// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/recent_iterations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/median.h"

namespace perseus::server {

void RecentIterations::Add(double seconds, std::optional<double> joules, double now_seconds) {
  if (last_.size() == kMost) last_.pop_front();
  last_.push_back({seconds, joules});
  at_seconds_ = now_seconds;
  ++totals_.iterations;
  if (!joules) return;
  ++totals_.with_energy;
  totals_.joules += *joules;
}

void RecentIterations::AddSaved(double promised_joules, std::optional<double> realised_joules) {
  totals_.promised_joules += std::max(promised_joules, 0.0);
  totals_.realised_saved_joules += std::max(realised_joules.value_or(0), 0.0);
  totals_.realised_lost_joules += std::max(-realised_joules.value_or(0), 0.0);
}

std::optional<RecentFigures> RecentIterations::Figures() const {
  if (last_.empty()) return std::nullopt;
  std::vector<double> sorted;
  sorted.reserve(last_.size());
  double seconds = 0;
  double joules = 0;
  for (const Iteration& each : last_) {
    sorted.push_back(each.seconds);
    if (!each.joules) continue;
    seconds += each.seconds;
    joules += *each.joules;
  }
  RecentFigures figures{.iterations = last_.size(),
                        .iteration_seconds = UpperMedianOf(std::move(sorted)),
                        .watts = {},
                        .at_seconds = at_seconds_};
  if (seconds > 0) figures.watts = joules / seconds;
  return figures;
}

}  // namespace perseus::server
