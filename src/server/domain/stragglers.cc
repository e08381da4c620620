// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/domain/stragglers.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace perseus::server {
namespace {

// Maximum clocks cost a pipeline a tenth of its energy and more: they are worth it only where
// its fastest plan is later by more than this share.
constexpr double kLaterShare = 0.01;

// What several stragglers of one place do: the worst of them counts.
struct Worst {
  double factor = 1;
  double delay_seconds = 0;

  void Add(const store::StragglerRecord& straggler) {
    factor = std::max(factor, straggler.factor);
    delay_seconds = std::max(delay_seconds, straggler.delay_seconds);
  }
};

// What slows one pipeline.
struct Slowdown {
  std::vector<double> factors;  // [pipeline rank]
  double delay_seconds = 0;
};

class Slowdowns {
 public:
  explicit Slowdowns(const Shape& shape) : shape_(shape) {}

  void Add(const Worst& worst, const store::RankRecord& rank) {
    Slowdown& slow = Of(worst, rank.dp_rank);
    double& factor = slow.factors[static_cast<std::size_t>(rank.pp_rank)];
    factor = std::max(factor, worst.factor);
  }

  void AddPipeline(const Worst& worst, int pipeline) {
    for (double& factor : Of(worst, pipeline).factors) factor = std::max(factor, worst.factor);
  }

  const std::map<int, Slowdown>& all() const { return slowdowns_; }

 private:
  Slowdown& Of(const Worst& worst, int pipeline) {
    Slowdown& slow = slowdowns_[pipeline];
    slow.factors.resize(static_cast<std::size_t>(shape_.pipeline_parallel), 1.0);
    slow.delay_seconds = std::max(slow.delay_seconds, worst.delay_seconds);
    return slow;
  }

  const Shape& shape_;
  std::map<int, Slowdown> slowdowns_;
};

// Goes over stragglers and ranks once each: a job may have ten thousand of both.
Slowdowns SlowdownsOf(const Shape& shape, const std::vector<store::StragglerRecord>& stragglers,
                      const std::map<int, store::RankRecord>& ranks) {
  std::map<int, Worst> pipelines;
  std::map<int, Worst> numbers;
  std::map<std::string, Worst> nodes;
  for (const store::StragglerRecord& straggler : stragglers) {
    Worst& worst = straggler.pipeline ? pipelines[*straggler.pipeline]
                   : straggler.rank   ? numbers[*straggler.rank]
                                      : nodes[straggler.node];
    worst.Add(straggler);
  }
  Slowdowns slowdowns(shape);
  for (const auto& [pipeline, worst] : pipelines) slowdowns.AddPipeline(worst, pipeline);
  for (const auto& [number, worst] : numbers) {
    if (const auto rank = ranks.find(number); rank != ranks.end()) {
      slowdowns.Add(worst, rank->second);
    }
  }
  if (nodes.empty()) return slowdowns;
  for (const auto& [number, rank] : ranks) {
    if (const auto node = nodes.find(rank.node); node != nodes.end()) {
      slowdowns.Add(node->second, rank);
    }
  }
  return slowdowns;
}

}  // namespace

bool IsExpired(const store::StragglerRecord& straggler, double now_seconds) {
  return straggler.expires_at_seconds && *straggler.expires_at_seconds <= now_seconds;
}

bool IsActive(const store::StragglerRecord& straggler, double now_seconds) {
  return straggler.starts_at_seconds <= now_seconds && !IsExpired(straggler, now_seconds);
}

std::int64_t SlowPipelines(const Shape& shape,
                           const std::vector<store::StragglerRecord>& stragglers,
                           const std::map<int, store::RankRecord>& ranks) {
  if (stragglers.empty()) return 0;
  return static_cast<std::int64_t>(SlowdownsOf(shape, stragglers, ranks).all().size());
}

Assignment Assign(const Curve& curve, double target_seconds, const Shape& shape,
                  const std::vector<store::StragglerRecord>& stragglers,
                  const std::map<int, store::RankRecord>& ranks) {
  const Slowdowns slowdowns = SlowdownsOf(shape, stragglers, ranks);
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
