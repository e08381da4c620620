// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_CLOCK_SEARCH_H_
#define PERSEUS_ROBUST_CLOCK_SEARCH_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/word_hash.h"
#include "perseus/costed_pipeline.h"
#include "robust/lane_replay.h"
#include "robust/window_replay.h"

namespace perseus::robust {

// A stream of draws for a search.
class Stream {
 public:
  explicit constexpr Stream(std::uint64_t seed) : seed_(seed) {}

  constexpr std::uint64_t Next() { return seed_.With(++count_).value(); }
  // In [0, 1).
  constexpr double Share() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // In [0, count).
  constexpr int Below(int count) {
    return static_cast<int>(((Next() >> 32) * static_cast<std::uint64_t>(count)) >> 32);
  }

 private:
  WordHash seed_;
  std::uint64_t count_ = 0;
};

// The limits and prices of a search.
struct SearchGoal {
  double accepted_seconds = 0;  // Mean, by the lanes.
  double least_seconds = 0;     // An iteration that is shorter waits until then.
  double waiting_watts = 0;     // Of the pipeline: what a second costs anyway.
  double change_joules = 0;
  int most_changes = 0;
  double price_of_time = 0;  // Watts, to begin with, beyond waiting.
  // Joules, to begin with, beyond what a change costs; 0: changes are not scarce.
  double price_of_change = 0;

  // Of the iteration, waiting and changes included.
  double Joules(const LaneFigures& figures) const {
    return figures.effective_joules + waiting_watts * std::max(figures.seconds, least_seconds) +
           change_joules * figures.changes;
  }
  bool Allows(const LaneFigures& figures) const {
    return figures.seconds <= accepted_seconds && figures.changes <= most_changes;
  }
};

// Prices that hold an annealing to its goal: that of a second follows whether the iteration is
// late, that of a change what is left of the limit, both faster and faster.
class PriceControl {
 public:
  // Those of the goal, unless a walk before has left others.
  void Begin(const SearchGoal& goal) {
    if (of_time_ <= 0) of_time_ = goal.price_of_time;
    if (of_change_ <= 0) of_change_ = goal.price_of_change;
  }

  // `share`: of the walk, behind it. The price of time stays between `least` and `most`.
  void Adapt(const SearchGoal& goal, const LaneFigures& now, double share, double least,
             double most) {
    constexpr double kMuch = 0.98;
    constexpr double kLateGain = 3e3;
    constexpr double kSlowGain = 0.001;
    constexpr double kFastGain = 0.02;
    const double gain = kSlowGain + kFastGain * share * share;
    const double late = (now.seconds / goal.accepted_seconds - 1) * kLateGain;
    of_time_ = std::clamp(of_time_ * (1 + gain * std::clamp(late, -1.0, 1.0)), least, most);
    if (goal.price_of_change <= 0) return;
    const bool many = now.changes > kMuch * goal.most_changes;
    of_change_ = std::clamp(of_change_ * (many ? 1 + gain : 1 - gain), goal.price_of_change * 1e-3,
                            goal.price_of_change * 1e2);
  }

  double of_time() const { return of_time_; }      // Watts, beyond waiting.
  double of_change() const { return of_change_; }  // Joules, beyond what a change costs.

 private:
  double of_time_ = 0;
  double of_change_ = 0;
};

// Moves of a search over runs of clocks: along a rank, the begin, the end and the clock of a run;
// and the same on ranks beside it.
class ClockMoves {
 public:
  // Both must outlive it.
  ClockMoves(const CostedPipeline& pipeline, Stream* stream);

  // Some change near a computation (no computation twice); may be empty. Valid until the
  // next call.
  std::span<const KnobChange> Propose(const std::vector<int>& knobs, int computation);

  // A stretch of the iteration gets the clocks of another one, some microbatches away.
  std::span<const KnobChange> ProposeRepeat(const std::vector<int>& knobs,
                                            std::span<const int> stretch);

 private:
  void Add(int i, int knob);
  void ProposeOnRank(int computation);
  void ProposeCopy(int computation);
  void Widen(int rank);
  int Beside(int computation, int rank, int slant) const;
  int StepFrom(int rank, int knob);

  const CostedPipeline& pipeline_;
  Stream& stream_;
  const std::vector<int>* knobs_ = nullptr;
  std::vector<std::vector<int>> useful_;  // [rank]: knobs, ascending.
  std::vector<char> has_option_;          // [table x knobs + knob]
  std::vector<KnobChange> proposal_;
  std::vector<std::vector<int>> alike_;    // [rank x types + type]: computations in order.
  std::vector<int> number_;                // [computation]: among those.
  std::vector<std::int64_t> proposed_in_;  // [computation]: the last proposal that it was part of.
  std::int64_t proposals_ = 0;
};

struct Chosen {
  std::vector<int> knobs;
  LaneFigures figures;
  double joules = 0;  // SearchGoal::Joules().

  // Becomes what a replay holds, if the goal allows that and it is better.
  template <typename Replay>
  void Offer(const SearchGoal& goal, const Replay& replay) {
    if (!goal.Allows(replay.figures())) return;
    const double other = goal.Joules(replay.figures());
    if (knobs.empty() || other < joules) *this = {replay.knobs(), replay.figures(), other};
  }
};

// Simulated annealing over runs of clocks: along a rank, where a run begins,
// ends and at which clock. Time is held by a price that is adapted on the way.
class ClockSearch {
 public:
  // All must outlive it.
  ClockSearch(const CostedPipeline& pipeline, LaneReplay* replay, std::uint64_t seed);

  struct Schedule {
    std::int64_t work = 0;   // Computations x lanes replayed, and a little for each move.
    double hot_joules = 0;   // A move that costs so much is taken once in e times, first...
    double cold_joules = 0;  // ... and last.
  };
  // Walks from the replay's present knobs. Returns the best choice within the goal
  // that it met; without knobs where there was none. Leaves the replay at the last.
  Chosen Anneal(const SearchGoal& goal, const Schedule& schedule);

 private:
  void Propose();
  double FirstOrder();  // Leaves the proposal in `scratch_`.
  void TakeBack();

  const CostedPipeline& pipeline_;
  LaneReplay* replay_;
  Stream stream_;
  ClockMoves moves_;
  std::span<const KnobChange> proposal_;  // Held by the moves.
  std::vector<int> before_proposal_;      // The knobs that it replaces.
  std::vector<double> criticality_;
  std::vector<int> scratch_;  // The replay's knobs; with the proposal while it is judged.
  std::vector<int> affected_;
  int proposed_changes_ = 0;  // What the proposal adds.
  PriceControl prices_;
  double waiting_watts_ = 0;
  double change_joules_ = 0;  // With its price.
  std::int64_t work_ = 0;
};

// Simulated annealing like ClockSearch, where a WindowReplay suits: it sweeps to and fro
// through the iteration, so that one move is near the next.
class SweepSearch {
 public:
  // All must outlive it.
  SweepSearch(const CostedPipeline& pipeline, WindowReplay* replay, std::uint64_t seed);

  // As ClockSearch::Anneal().
  Chosen Anneal(const SearchGoal& goal, const ClockSearch::Schedule& schedule);

 private:
  std::span<const KnobChange> Propose();

  const CostedPipeline& pipeline_;
  WindowReplay* replay_;
  Stream stream_;
  ClockMoves moves_;
  double centre_ = 0;  // Place that the sweep has come to,
  double speed_ = 0;   // and by which it goes on with each move.
  PriceControl prices_;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_CLOCK_SEARCH_H_
