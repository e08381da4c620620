// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/paths.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "robust/bounds.h"

namespace perseus::robust {
namespace {

constexpr int kBins = 33;           // Of lateness.
constexpr double kBinShare = 0.03;  // Of the mean duration.

// How a computation's start follows from its rank's lateness before it.
struct Slack {
  double gap = 0;      // The rank waits so long before it.
  double arrival = 0;  // What it waits for comes so long after its start: at most 0.
};

std::vector<Slack> SlackOf(const CostedPipeline& pipeline, const std::vector<double>& seconds) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> end(dag.size(), 0.0);
  std::vector<int> previous(dag.size(), -1);
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 1; k < order.size(); ++k) previous[order[k]] = order[k - 1];
  }
  std::vector<Slack> slack(dag.size());
  for (int i = 0; i < dag.size(); ++i) {
    double arrival = dag.start_delay_seconds[i];
    double start = arrival;
    for (int k = dag.first_precedence[i]; k < dag.first_precedence[i + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double at = end[precedence.from] + precedence.delay_seconds;
      start = std::max(start, at);
      if (precedence.from != previous[i]) arrival = std::max(arrival, at);
    }
    const double own = previous[i] < 0 ? start : end[previous[i]];
    slack[i] = {std::max(0.0, start - own), std::min(0.0, arrival - start)};
    end[i] = start + seconds[i];
  }
  return slack;
}

struct Follower {
  double cost = std::numeric_limits<double>::infinity();
  double late = 0;
  int from = -1;
};

}  // namespace

std::vector<int> KnobsAlong(const CostedPipeline& pipeline, const Lead& lead, double change_joules,
                            double stiffness) {
  const std::vector<Slack> slack = SlackOf(pipeline, lead.seconds);
  double mean = 0;
  double joules = 0;
  for (int i = 0; i < pipeline.dag.size(); ++i) {
    mean += lead.seconds[i] / pipeline.dag.size();
    joules += pipeline.TableOf(i).baseline.energy_joules / pipeline.dag.size();
  }
  mean = std::max(mean, 1e-12);
  const double bin = kBinShare * mean;
  const double weight = stiffness * joules / (mean * mean);
  const std::size_t knobs = pipeline.knobs.size();
  std::vector<int> chosen(pipeline.dag.size(), 0);
  std::vector<Follower> now(knobs * kBins);
  std::vector<Follower> next(knobs * kBins);
  std::vector<int> from;
  for (const std::vector<int>& order : pipeline.dag.rank_order) {
    if (order.empty()) continue;
    from.assign(order.size() * knobs * kBins, -1);
    std::fill(now.begin(), now.end(), Follower{});
    for (std::size_t knob = 0; knob < knobs; ++knob) now[knob * kBins + kBins / 2].cost = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const int i = order[k];
      const CostTable& table = pipeline.TableOf(i);
      std::fill(next.begin(), next.end(), Follower{});
      for (int b = 0; b < kBins; ++b) {
        std::size_t cheapest = 0;
        for (std::size_t knob = 1; knob < knobs; ++knob) {
          if (now[knob * kBins + b].cost < now[cheapest * kBins + b].cost) cheapest = knob;
        }
        const double after_change = now[cheapest * kBins + b].cost + (k == 0 ? 0 : change_joules);
        if (!(after_change < std::numeric_limits<double>::infinity())) continue;
        for (const CostOption& option : table.all_options) {
          const auto knob = static_cast<std::size_t>(option.knob);
          const bool changes = now[knob * kBins + b].cost > after_change;
          const std::size_t before = changes ? cheapest : knob;
          const Follower& old = now[before * kBins + b];
          const double late = std::max(old.late - slack[i].gap, slack[i].arrival) +
                              option.time_seconds - lead.seconds[i];
          const double cost = (changes ? after_change : old.cost) + EffectiveEnergy(table, option) +
                              lead.price[i] * option.time_seconds + weight * late * late;
          const int to =
              std::clamp(static_cast<int>(std::lround(late / bin)) + kBins / 2, 0, kBins - 1);
          Follower& follower = next[knob * kBins + to];
          if (cost < follower.cost) {
            follower = {cost, late, 0};
            from[(k * knobs + knob) * kBins + to] = static_cast<int>(before * kBins + b);
          }
        }
      }
      std::swap(now, next);
    }
    std::size_t at = 0;
    for (std::size_t s = 1; s < now.size(); ++s) {
      if (now[s].cost < now[at].cost) at = s;
    }
    for (std::size_t k = order.size(); k-- > 0;) {
      chosen[order[k]] = static_cast<int>(at / kBins);
      at = static_cast<std::size_t>(from[k * knobs * kBins + at]);
    }
  }
  return chosen;
}

std::vector<int> KnobsAlongWithin(const CostedPipeline& pipeline, const Lead& lead,
                                  double stiffness, int most_changes, double* change_joules) {
  constexpr int kSteps = 6;
  constexpr double kFirstFactor = 1.5;
  std::vector<int> best;
  double low = 0;
  double high = 0;
  double price = std::max(*change_joules, 1e-9);
  double factor = kFirstFactor;
  for (int k = 0; k < kSteps; ++k) {
    std::vector<int> knobs = KnobsAlong(pipeline, lead, price, stiffness);
    if (CountChanges(pipeline.dag, knobs) <= most_changes) {
      high = price;
      best = std::move(knobs);
    } else {
      low = price;
    }
    if (high == 0 || low == 0) {
      price *= high == 0 ? factor : 1 / factor;
      factor *= factor;
    } else {
      price = std::sqrt(low * high);
    }
  }
  if (high > 0) *change_joules = high;
  return best;
}

namespace {

// A trial: waves, the price of a change elsewhere, and the price of time in them.
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
