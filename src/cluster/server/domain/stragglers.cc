// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/stragglers.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace perseus::server {
namespace {

// Maximum clocks cost a pipeline a tenth of its energy and more: they are worth it only where
// its fastest plan is later by more than this share.
constexpr double kLaterShare = 0.01;

// What slows one pipeline.
struct Slowdown {
  std::vector<double> factors;  // [pipeline rank]
  double delay_seconds = 0;
};

class Slowdowns {
 public:
  explicit Slowdowns(const Shape& shape) : shape_(shape) {}

  void Add(const store::StragglerRecord& straggler, int pipeline, int pp_rank) {
    Slowdown& slow = Of(pipeline);
    AddDelay(straggler, &slow);
    double& factor = slow.factors[static_cast<std::size_t>(pp_rank)];
    factor = std::max(factor, straggler.factor);
  }

  void AddPipeline(const store::StragglerRecord& straggler, int pipeline) {
    Slowdown& slow = Of(pipeline);
    AddDelay(straggler, &slow);
    for (double& factor : slow.factors) factor = std::max(factor, straggler.factor);
  }

  const std::map<int, Slowdown>& all() const { return slowdowns_; }

 private:
  Slowdown& Of(int pipeline) {
    Slowdown& slow = slowdowns_[pipeline];
    slow.factors.resize(static_cast<std::size_t>(shape_.pipeline_parallel), 1.0);
    return slow;
  }

  static void AddDelay(const store::StragglerRecord& straggler, Slowdown* slow) {
    slow->delay_seconds = std::max(slow->delay_seconds, straggler.delay_seconds);
  }

  const Shape& shape_;
  std::map<int, Slowdown> slowdowns_;
};

}  // namespace

bool IsExpired(const store::StragglerRecord& straggler, double now_seconds) {
  return straggler.expires_at_seconds && *straggler.expires_at_seconds <= now_seconds;
}

bool IsActive(const store::StragglerRecord& straggler, double now_seconds) {
  return straggler.starts_at_seconds <= now_seconds && !IsExpired(straggler, now_seconds);
}

Assignment Assign(const Curve& curve, double target_seconds, const Shape& shape,
                  const std::vector<store::StragglerRecord>& stragglers,
                  const std::map<int, store::RankRecord>& ranks) {
  Slowdowns slowdowns(shape);
  for (const store::StragglerRecord& straggler : stragglers) {
    if (straggler.pipeline) {
      slowdowns.AddPipeline(straggler, *straggler.pipeline);
      continue;
    }
    for (const auto& [number, rank] : ranks) {
      const bool is_slow = straggler.rank ? number == *straggler.rank : rank.node == straggler.node;
      if (is_slow) slowdowns.Add(straggler, rank.dp_rank, rank.pp_rank);
    }
  }
  Assignment assignment;
  const CurvePlan& fastest = curve.fastest();
  for (const auto& [pipeline, slow] : slowdowns.all()) {
    const double by_plan = curve.SlowedSeconds(&fastest, slow.factors);
    const double by_clocks = curve.SlowedSeconds(nullptr, slow.factors);
    const bool is_later = by_plan > by_clocks * (1 + kLaterShare);
    assignment.straggler_time_seconds = std::max(
        assignment.straggler_time_seconds, (is_later ? by_clocks : by_plan) + slow.delay_seconds);
    assignment.straggler_baseline_seconds =
        std::max(assignment.straggler_baseline_seconds, by_clocks + slow.delay_seconds);
    assignment.exceptions[pipeline] = is_later ? kMaximumClocks : fastest.id;
  }
  const double relaxed = std::min(curve.frontier().tstar_seconds,
                                  curve.FrontierSeconds(assignment.straggler_time_seconds));
  assignment.for_straggler = relaxed > target_seconds;
  assignment.plan = assignment.for_straggler
                        ? curve.ForStraggler(assignment.straggler_time_seconds, target_seconds).id
                        : curve.At(target_seconds).id;
  return assignment;
}

}  // namespace perseus::server
