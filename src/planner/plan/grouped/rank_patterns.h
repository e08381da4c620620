// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_GROUPED_RANK_PATTERNS_H_
#define PERSEUS_PLAN_GROUPED_RANK_PATTERNS_H_

#include <cstdint>
#include <limits>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "plan/cost_options.h"

namespace perseus::plan {

// What a rank may do with its clocks: the cheapest way where a second of a computation has a price.
// Borrows the pipeline.
class RankPatterns {
 public:
  static constexpr double kNoWay = std::numeric_limits<double>::infinity();

  // [computation][knob] Whether it may take this knob.
  using Allowed = std::vector<std::vector<std::uint8_t>>;
  // What the cheapest way pays for.
  struct Prices {
    std::vector<double> watts;  // [computation] Of a (guarded) second.
    double change_joules = 0;   // Of a change of clock, also from a rank's last to its first.
  };

  RankPatterns(const CostedPipeline& pipeline, const Guard& guard);
  virtual ~RankPatterns() = default;
  RankPatterns(const RankPatterns&) = delete;
  RankPatterns& operator=(const RankPatterns&) = delete;

  // Everything but what another knob of the rank beats in all of its computations.
  Allowed All() const;

  // Least sum of effective joules + prices; infinite where there is no way. Fills in the knobs
  // [computation] that it takes.
  virtual double Cheapest(const Allowed& allowed, const Prices& prices,
                          std::vector<int>* knobs) = 0;
  // Forbids what makes the sum larger than the cheapest by more than `room`.
  virtual void Forbid(const Prices& prices, double room, Allowed* allowed) = 0;

  double Seconds(int computation, int knob) const {
    return seconds_[pipeline_.table_of[computation]][knob];
  }
  double Joules(int computation, int knob) const {
    return joules_[pipeline_.table_of[computation]][knob];
  }
  int num_knobs() const { return static_cast<int>(pipeline_.knobs.size()); }
  const CostedPipeline& pipeline() const { return pipeline_; }
  // Units of about a multiplication.
  std::int64_t work() const { return work_; }

 protected:
  double PricedJoules(const Prices& prices, int computation, int knob) const {
    return Joules(computation, knob) + prices.watts[computation] * Seconds(computation, knob);
  }
  void AddWork(std::int64_t work) { work_ += work; }

 private:
  const CostedPipeline& pipeline_;
  std::vector<std::vector<double>> seconds_;  // [table][knob] Infinite: does not have it.
  std::vector<std::vector<double>> joules_;   // [table][knob]
  std::int64_t work_ = 0;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_GROUPED_RANK_PATTERNS_H_
