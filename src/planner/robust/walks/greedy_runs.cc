// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/greedy_runs.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace perseus::robust {
namespace {

// Of a rank, [begin, end) in its order, at one knob.
struct OneRun {
  int rank = -1;
  int begin = 0;
  int end = 0;
  int knob = 0;
  double joules = std::numeric_limits<double>::infinity();  // Of the iteration with it.
};

class RunAdder {
 public:
  RunAdder(const CostedPipeline& pipeline, const RunLimits& limits, LaneReplay* replay)
      : pipeline_(pipeline), limits_(limits), replay_(replay) {
    for (const std::vector<int>& order : pipeline.dag.rank_order) {
      knobs_.push_back(KnobsOfRank(order));
    }
  }

  // Until nothing more saves within so much time.
  void AddWithin(double accepted_seconds) {
    accepted_seconds_ = accepted_seconds;
    while (tries_ < limits_.most_tries) {
      const double now = limits_.Joules(replay_->figures());
      OneRun best;
      for (const Possible& run : PossibleRuns()) {
        if (now - run.most_joules >= best.joules) break;
        Improve(&best, run.rank, run.begin, run.end);
      }
      if (best.rank < 0) return;
      MoveBorders(&best);
      if (best.joules >= now * (1 - kLeastGain)) return;
      replay_->Try(Changes(best.rank, best.begin, best.end, best.knob));
      replay_->Commit();
    }
  }

 private:
  static constexpr double kLeastGain = 1e-6;

  // What all of its computations can take, from fast to slow, as far as slower saves for any.
  std::vector<int> KnobsOfRank(const std::vector<int>& order) const {
    std::vector<double> seconds(pipeline_.knobs.size(), 0.0);
    std::vector<int> counts(pipeline_.knobs.size(), 0);
    std::vector<char> saves(pipeline_.knobs.size(), 0);
    for (const int i : order) {
      const CostTable& table = pipeline_.TableOf(i);
      const CostOption* least = nullptr;
      for (const CostOption& option : table.all_options) {
        seconds[option.knob] += option.time_seconds;
        ++counts[option.knob];
        if (least == nullptr || EffectiveEnergy(table, option) < EffectiveEnergy(table, *least)) {
          least = &option;
        }
      }
      for (const CostOption& option : table.all_options) {
        if (option.time_seconds <= least->time_seconds) saves[option.knob] = 1;
      }
    }
    std::vector<int> knobs;
    for (int knob = 0; knob < static_cast<int>(pipeline_.knobs.size()); ++knob) {
      if (saves[knob] != 0 && counts[knob] == static_cast<int>(order.size())) {
        knobs.push_back(knob);
      }
    }
    std::sort(knobs.begin(), knobs.end(), [&](int a, int b) {
      return seconds[a] != seconds[b] ? seconds[a] < seconds[b] : a < b;
    });
    return knobs;
  }

  struct Possible {
    int rank = 0;
    int begin = 0;
    int end = 0;
    double most_joules = 0;  // More is not saved, whatever its knob.
  };

  // What may save most first.
  std::vector<Possible> PossibleRuns() const {
    std::vector<Possible> runs;
    std::vector<double> sums;
    for (int rank = 0; rank < pipeline_.dag.num_ranks; ++rank) {
      sums.assign(1, 0.0);
      for (const int i : pipeline_.dag.rank_order[rank]) {
        const auto joules_at = [&](int knob) {
          return replay_->ExpectedOf(i, knob, knob).effective_joules;
        };
        const double now = joules_at(replay_->knobs()[i]);
        double least = now;
        for (const int knob : knobs_[rank]) least = std::min(least, joules_at(knob));
        sums.push_back(sums.back() + now - least);
      }
      const std::vector<int> cuts = CutsOf(rank);
      for (std::size_t i = 0; i < cuts.size(); ++i) {
        for (std::size_t j = i + 1; j < cuts.size(); ++j) {
          runs.push_back({rank, cuts[i], cuts[j], sums[cuts[j]] - sums[cuts[i]]});
        }
      }
    }
    std::stable_sort(runs.begin(), runs.end(), [](const Possible& a, const Possible& b) {
      return a.most_joules > b.most_joules;
    });
    return runs;
  }

  // Near the ends of its order, where its phases meet, and where its clock changes now.
  std::vector<int> CutsOf(int rank) const {
    const std::vector<int>& order = pipeline_.dag.rank_order[rank];
    const int size = static_cast<int>(order.size());
    std::vector<int> cuts = {0, 1, 2, size - 2, size - 1, size};
    const auto type_of = [&](int at) { return pipeline_.dag.computations[order[at]].id.type; };
    int first = 0;
    while (first < size && type_of(first) == type_of(0)) ++first;
    int last = size;
    while (last > 0 && type_of(last - 1) == type_of(size - 1)) --last;
    cuts.push_back(first);
    cuts.push_back(last);
    constexpr int kMostBorders = 6;
    int borders = 0;
    for (int k = 1; k < size && borders < kMostBorders; ++k) {
      if (replay_->knobs()[order[k]] == replay_->knobs()[order[k - 1]]) continue;
      cuts.push_back(k);
      ++borders;
    }
    std::erase_if(cuts, [&](int cut) { return cut < 0 || cut > size; });
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return cuts;
  }

  const std::vector<KnobChange>& Changes(int rank, int begin, int end, int knob) {
    changes_.clear();
    const std::vector<int>& order = pipeline_.dag.rank_order[rank];
    for (int k = begin; k < end; ++k) {
      if (replay_->knobs()[order[k]] != knob) changes_.push_back({order[k], knob});
    }
    return changes_;
  }

  // The run at the slowest knob that is in time, where that is better than the best so far.
  bool Improve(OneRun* best, int rank, int begin, int end) {
    bool better = false;
    int low = 0;
    int high = static_cast<int>(knobs_[rank].size());
    while (low < high && tries_ < limits_.most_tries) {
      const int middle = (low + high) / 2;
      const int knob = knobs_[rank][middle];
      const std::vector<KnobChange>& changes = Changes(rank, begin, end, knob);
      if (changes.empty()) {
        low = middle + 1;
        continue;
      }
      ++tries_;
      const LaneFigures tried = replay_->Try(changes);
      replay_->Discard();
      // Another knob leaves as many changes, but where a neighbour has the same.
      if (tried.changes > limits_.most_changes + 2) return better;
      const bool in_time = tried.seconds <= accepted_seconds_;
      (in_time ? low : high) = in_time ? middle + 1 : middle;
      if (!in_time || tried.changes > limits_.most_changes) continue;
      const double joules = limits_.Joules(tried);
      if (joules >= best->joules) continue;
      *best = {rank, begin, end, knob, joules};
      better = true;
    }
    return better;
  }

  void MoveBorders(OneRun* best) {
    struct Move {
      int begin;
      int end;
    };
    constexpr Move kMoves[] = {{-1, 0}, {1, 0},  {0, -1}, {0, 1}, {-1, -1},
                               {1, 1},  {-1, 1}, {1, -1}, {3, 0}, {0, -3}};
    const int size = static_cast<int>(pipeline_.dag.rank_order[best->rank].size());
    for (bool moved = true; moved && tries_ < limits_.most_tries;) {
      moved = false;
      for (const Move& move : kMoves) {
        const int begin = best->begin + move.begin;
        const int end = best->end + move.end;
        if (begin < 0 || end > size || begin >= end) continue;
        if (Improve(best, best->rank, begin, end)) moved = true;
      }
    }
  }

  const CostedPipeline& pipeline_;
  const RunLimits& limits_;
  LaneReplay* replay_;
  std::vector<std::vector<int>> knobs_;  // [rank]: from fast to slow.
  std::vector<KnobChange> changes_;
  double accepted_seconds_ = 0;
  int tries_ = 0;
};

}  // namespace

std::vector<int> WithGreedyRuns(const CostedPipeline& pipeline, const std::vector<int>& knobs,
                                const RunLimits& limits, LaneReplay* replay) {
  std::vector<int> best;
  double least = std::numeric_limits<double>::infinity();
  const double spare = limits.accepted_seconds - limits.baseline_seconds;
  for (const double share : {1.0, 0.5, 0.1}) {
    replay->Reset(knobs);
    RunAdder adder(pipeline, limits, replay);
    adder.AddWithin(limits.baseline_seconds + share * spare);
    if (share < 1) adder.AddWithin(limits.accepted_seconds);
    const LaneFigures& figures = replay->figures();
    const double joules = limits.Joules(figures);
    if (!limits.Allow(figures) || joules >= least) continue;
    least = joules;
    best = replay->knobs();
  }
  return best;
}

}  // namespace perseus::robust
