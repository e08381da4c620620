// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/wave_path.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "robust/bounds/price_path.h"

namespace perseus::robust {
namespace {

// What is tried: waves, what a change elsewhere costs, and how dear time is in them.
struct Pattern {
  Waves waves;
  bool dear_ranks = false;  // Only on ranks whose time is dear.
  double change_factor = 1;
  double wave_factor = 1;
};

class WaveSearch {
 public:
  WaveSearch(const CostedPipeline& pipeline, const DualBound& dual, const WaveLimits& limits,
             LaneReplay* replay)
      : pipeline_(pipeline),
        dual_(dual),
        limits_(limits),
        replay_(replay),
        all_(pipeline.dag.num_ranks, 1),
        dear_(pipeline.dag.num_ranks, 0),
        next_(pipeline.dag.size(), -1) {
    constexpr double kDear = 0.7;
    const PipelineDag& dag = pipeline.dag;
    double mean = 0;
    for (const double price : dual.price) mean += price / dag.size();
    for (int rank = 0; rank < dag.num_ranks; ++rank) {
      const std::vector<int>& order = dag.rank_order[rank];
      double own = 0;
      for (std::size_t k = 0; k < order.size(); ++k) {
        own += dual.price[order[k]] / static_cast<double>(order.size());
        if (k > 0) next_[order[k - 1]] = order[k];
      }
      dear_[rank] = own >= kDear * mean ? 1 : 0;
    }
  }

  std::vector<int> Run() {
    const PipelineDag& dag = pipeline_.dag;
    std::array<bool, kNumComputationTypes> present = {};
    for (const Computation& computation : dag.computations) {
      present[static_cast<std::size_t>(computation.id.type)] = true;
    }
    // So many that their changes would be all that is allowed.
    const int full = std::max(1, limits_.most_changes / (2 * std::max(1, dag.num_ranks)));
    for (std::size_t type = 0; type < present.size(); ++type) {
      if (!present[type]) continue;
      for (const int slant : {-1, 0, 1}) {
        for (const bool dear : {false, true}) {
          for (const double share : {0.6, 0.85, 1.1}) {
            for (const double change_factor : {1.0, 1.8}) {
              const int count = std::max(1, static_cast<int>(full * share));
              Try({{static_cast<ComputationType>(type), slant, count}, dear, change_factor, 1});
            }
          }
        }
      }
    }
    if (knobs_.empty()) return knobs_;
    for (int round = 0; round < 2; ++round) {
      for (const int more : {-3, -2, -1, 1, 2, 3}) {
        Pattern pattern = best_;
        pattern.waves.count = std::max(1, pattern.waves.count + more);
        Try(pattern);
      }
      for (const double factor : {0.7, 0.85, 1.2, 1.4}) {
        Pattern pattern = best_;
        pattern.change_factor *= factor;
        Try(pattern);
        pattern = best_;
        pattern.wave_factor *= factor;
        Try(pattern);
      }
    }
    return knobs_;
  }

 private:
  // Looks for the price of time at which the pattern is just in time.
  void Try(const Pattern& pattern) {
    constexpr int kHalvings = 7;
    double low = 0.4;
    double high = 6;
    const std::vector<char> in =
        InWaves(pipeline_.dag, pattern.waves, pattern.dear_ranks ? dear_ : all_);
    std::vector<double> change(in.size(), pattern.change_factor * dual_.change_joules);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i] == 0) continue;
      change[i] = 0;
      if (next_[i] >= 0) change[next_[i]] = 0;
    }
    std::vector<double> price(in.size());
    for (int k = 0; k < kHalvings; ++k) {
      const double scale = std::sqrt(low * high);
      for (std::size_t i = 0; i < in.size(); ++i) {
        price[i] = dual_.price[i] * scale * (in[i] != 0 ? pattern.wave_factor : 1);
      }
      std::vector<int> knobs = CheapestKnobs(pipeline_, price, change);
      replay_->Reset(knobs);
      const LaneFigures& figures = replay_->figures();
      const bool in_time = figures.seconds <= limits_.accepted_seconds;
      (in_time ? high : low) = scale;
      if (!in_time || figures.changes > limits_.most_changes) continue;
      const double joules = figures.effective_joules + limits_.waiting_watts * figures.seconds;
      if (joules >= joules_) continue;
      joules_ = joules;
      knobs_ = std::move(knobs);
      best_ = pattern;
    }
  }

  const CostedPipeline& pipeline_;
  const DualBound& dual_;
  const WaveLimits& limits_;
  LaneReplay* replay_;
  std::vector<char> all_;   // [rank]
  std::vector<char> dear_;  // [rank]
  std::vector<int> next_;   // [computation]: on its rank; of the last: none.
  Pattern best_;
  double joules_ = std::numeric_limits<double>::infinity();
  std::vector<int> knobs_;
};

}  // namespace

std::vector<char> InWaves(const PipelineDag& dag, const Waves& waves, std::span<const char> ranks) {
  std::vector<char> in(dag.size(), 0);
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    if (ranks[rank] == 0) continue;
    std::int64_t size = 0;
    for (const int i : dag.rank_order[rank]) {
      if (dag.computations[i].id.type == waves.type) ++size;
    }
    std::int64_t number = 0;
    for (const int i : dag.rank_order[rank]) {
      if (dag.computations[i].id.type != waves.type) continue;
      const std::int64_t shifted = number++ - static_cast<std::int64_t>(waves.slant) * rank;
      const std::int64_t at = ((shifted % size) + size) % size;
      const std::int64_t count = std::min<std::int64_t>(waves.count, size);
      in[i] = (at + 1) * count / size != at * count / size ? 1 : 0;
    }
  }
  return in;
}

std::vector<int> BestInWaves(const CostedPipeline& pipeline, const DualBound& dual,
                             const WaveLimits& limits, LaneReplay* replay) {
  return WaveSearch(pipeline, dual, limits, replay).Run();
}

}  // namespace perseus::robust
