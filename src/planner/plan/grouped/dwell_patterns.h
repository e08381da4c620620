// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_DWELL_PATTERNS_H_
#define PERSEUS_PLAN_GROUPED_DWELL_PATTERNS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// The cheapest way to cut each rank into stretches that keep the dwell, each at one knob, where a
// second of a computation has a price. Borrows the pipeline.
class DwellPatterns {
 public:
  static constexpr double kNoWay = std::numeric_limits<double>::infinity();

  // [computation][knob] Whether it may take this knob.
  using Allowed = std::vector<std::vector<std::uint8_t>>;

  // Stretches last at least `least_seconds` with everything at its fastest, or are a whole rank.
  DwellPatterns(const CostedPipeline& pipeline, const Guard& guard, double least_seconds);

  // Everything but what another knob of the rank beats in all of its computations.
  Allowed All() const;

  // Least sum of effective joules + prices [computation] x guarded seconds; infinite where there is
  // no way. Fills in the knobs [computation] that it takes.
  double Cheapest(const Allowed& allowed, const std::vector<double>& prices,
                  std::vector<int>* knobs);
  // Forbids what makes the sum larger than the cheapest by more than `room`.
  void Forbid(const std::vector<double>& prices, double room, Allowed* allowed);

  double Seconds(int computation, int knob) const {
    return seconds_[pipeline_.table_of[computation]][knob];
  }
  double Joules(int computation, int knob) const {
    return joules_[pipeline_.table_of[computation]][knob];
  }
  int num_knobs() const { return static_cast<int>(pipeline_.knobs.size()); }
  // Units of about a multiplication.
  std::int64_t work() const { return work_; }

 private:
  // One way to take computations [begin, end) of a rank's order.
  struct Stretch {
    int begin = 0;
    int end = 0;
    int knob = 0;
    double joules = 0;  // With the prices.
  };

  template <typename Visit>
  void VisitStretches(const std::vector<int>& order, const Allowed& allowed,
                      const std::vector<double>& prices, const Visit& visit);

  const CostedPipeline& pipeline_;
  double least_seconds_;
  std::vector<std::vector<double>> seconds_;  // [table][knob], infinite: does not have it.
  std::vector<std::vector<double>> joules_;   // [table][knob]
  std::int64_t work_ = 0;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_DWELL_PATTERNS_H_
