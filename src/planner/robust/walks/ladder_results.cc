// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <vector>

#include "robust/walks/ladder_search.h"

// What the search has come to.
namespace perseus::robust {

const Candidate& LadderSearch::Taken() const {
  const Candidate* chosen = best();
  const double least = chosen->saving_percent - chosen->error_percent;
  for (const Candidate& each : held_) {
    const bool better = each.changes != chosen->changes
                            ? each.changes < chosen->changes
                            : each.saving_percent > chosen->saving_percent;
    if (each.saving_percent >= least && better) chosen = &each;
  }
  return *chosen;
}

std::vector<ChangePricePoint> LadderSearch::PriceCurve() const {
  std::vector<ChangePricePoint> points;
  for (const Candidate& candidate : held_) {
    points.push_back({candidate.changes, candidate.saving_percent});
  }
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) {
    return a.changes != b.changes ? a.changes < b.changes : a.saving_percent > b.saving_percent;
  });
  std::vector<ChangePricePoint> curve;
  for (const ChangePricePoint& point : points) {
    if (curve.empty() || point.saving_percent > curve.back().saving_percent + kEqualPercent) {
      curve.push_back(point);
    }
  }
  return curve;
}

}  // namespace perseus::robust
