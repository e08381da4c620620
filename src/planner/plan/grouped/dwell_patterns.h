// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_DWELL_PATTERNS_H_
#define PERSEUS_PLAN_GROUPED_DWELL_PATTERNS_H_

#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"
#include "plan/grouped/rank_patterns.h"

namespace perseus::plan {

// Ranks cut into stretches that keep the dwell, each at one knob. Changes have no price here.
class DwellPatterns final : public RankPatterns {
 public:
  // Stretches last at least `least_seconds` with everything at its fastest, or are a whole rank.
  DwellPatterns(const CostedPipeline& pipeline, const Guard& guard, double least_seconds)
      : RankPatterns(pipeline, guard), least_seconds_(least_seconds) {}

  double Cheapest(const Allowed& allowed, const Prices& prices, std::vector<int>* knobs) override;
  void Forbid(const Prices& prices, double room, Allowed* allowed) override;

 private:
  // One way to take computations [begin, end) of a rank's order.
  struct Stretch {
    int begin = 0;
    int end = 0;
    int knob = 0;
    double joules = 0;  // With the prices.
  };

  template <typename Visit>
  void VisitStretches(const std::vector<int>& order, const Allowed& allowed, const Prices& prices,
                      const Visit& visit);

  double least_seconds_;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_DWELL_PATTERNS_H_
