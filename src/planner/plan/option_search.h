// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PLAN_OPTION_SEARCH_H_
#define PERSEUS_PLAN_OPTION_SEARCH_H_

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "frontier/deadline_program.h"
#include "frontier/network.h"
#include "frontier/solver.h"

namespace perseus::plan {

// One option on the solver's integer grid.
struct GridOption {
  std::int64_t length = 0;    // Negative: the activity does not have this knob.
  frontier::Int128 cost = 0;  // Above the slowest cost of the activity's curve.
};

// The choices of a discrete plan in which every activity has a knob of its own.
struct SearchSpace {
  // [curve][knob]
  std::vector<std::vector<GridOption>> options;
  // [activity] The knobs that it may take, fastest first.
  std::vector<std::vector<int>> knobs;
  // [activity] The one that runs next on the same rank, or -1.
  std::vector<int> next;

  int size() const { return static_cast<int>(knobs.size()); }
};

// How long to search, in units of work (nodes touched).
struct SearchBudget {
  // The usual work for a problem of this size: shares of it go to the stages of
  // the search, whose sequence therefore does not depend on `limit`.
  std::int64_t usual = 0;
  // The work after which the sequence is cut.
  std::int64_t limit = 0;
};

// Told of every better choice (the knob of each activity), and now and then that
// there is none yet (nullptr), with the work done; false ends the search.
using ChoiceReport = std::function<bool(const std::vector<int>* better, std::int64_t work)>;

// Chooses a knob for every activity such that the deadline of `program` holds and
// the total cost is small. `program` is optimal with every activity free, and
// is consumed. The search is a dive guided by exact re-optimisation, followed
// by branch and bound and neighbourhood search; see option_search.cc. What it
// finds is reported, and each choice is better than the one before. The
// sequence of reports for a limit is the beginning of that for a higher one.
// Deterministic in its input.
void SearchOptions(const frontier::Network& network, frontier::DeadlineProgram program,
                   const SearchSpace& space, const SearchBudget& budget,
                   const ChoiceReport& report);

// The relaxation of a plan in which some activities have their knob already: a
// DeadlineProgram whose activities are fixed to options of a space. Network and
// space must outlive it.
class PartialChoice {
 public:
  PartialChoice(const frontier::Network& network, frontier::DeadlineProgram program,
                const SearchSpace& space);

  int size() const { return space_.size(); }
  const std::vector<int>& KnobsOf(int activity) const { return space_.knobs[activity]; }

  // [activity] The knob, or -1 while free.
  const std::vector<int>& chosen() const { return chosen_; }
  bool IsFree(int activity) const { return chosen_[activity] < 0; }
  frontier::Int128 objective() const { return program_.objective(); }
  std::int64_t work() const { return program_.work(); }

  void Fix(int activity, int knob);
  void Release(int activity);
  // False when there is no optimum within `limit`.
  bool Optimise(frontier::Int128 limit);

  // Puts another state in the place of this one.
  void Assign(frontier::DeadlineProgram program, std::vector<int> chosen);
  const frontier::DeadlineProgram& program() const { return program_; }

  // Position in KnobsOf(activity) of the slowest option within the duration that
  // the relaxation gives.
  int SlowestWithin(int activity) const;

  // Cost of an activity at a knob, in grid units.
  frontier::Int128 CostOf(int activity, int knob) const { return OptionOf(activity, knob).cost; }

  // Knobs with what they cost at the current prices, least first.
  std::vector<std::pair<frontier::Int128, int>> ByPrice(int activity) const;

  // Knobs with the bound of this choice and that knob, least first: those below `limit` alone.
  // Expects an optimal program, and leaves it at one of the knobs.
  std::vector<std::pair<frontier::Int128, int>> ByBound(int activity, frontier::Int128 limit);

  // Whether the relaxation mixes two options.
  bool IsBetween(int activity) const;

  // The options on both sides of the relaxation.
  std::vector<int> Neighbours(int activity) const;

 private:
  const GridOption& OptionOf(int activity, int knob) const {
    return space_.options[network_.curve_of[activity]][knob];
  }

  const frontier::Network& network_;
  frontier::DeadlineProgram program_;
  const SearchSpace& space_;
  std::vector<int> chosen_;
};

// How a dive goes.
struct DiveStyle {
  enum class Order : std::uint8_t { kByTime, kRankByRank, kLastRankFirst };
  Order order = Order::kByTime;
  bool backward = false;  // From the last activity to the first.
  int candidates = 6;     // Knobs tried besides the neighbours of the relaxation.
  bool look_ahead = true;
  int disorder = 0;  // Positions by which an activity may leave its place in the order.
};

// The style of the n-th dive: a few fixed ones, then random ones.
DiveStyle StyleOfDive(int dive, std::mt19937* random);

// Places of a space's activities on ranks and in time.
class ActivityOrder {
 public:
  // `program` is the relaxation with every activity free.
  ActivityOrder(const SearchSpace& space, const frontier::DeadlineProgram& program);

  // The activity that runs before `activity` on its rank, or -1.
  int Previous(int activity) const { return previous_[activity]; }
  const std::vector<int>& by_start() const { return by_start_; }
  std::vector<int> OfDive(const DiveStyle& style, std::mt19937* random) const;

 private:
  std::vector<int> previous_;  // [activity]
  std::vector<int> rank_;      // [activity]
  std::vector<int> by_start_;
};

// Fixes the free activities of a program one after the other, each to the knob with
// the best bound. See option_search.cc. Borrows its arguments.
class Dive {
 public:
  Dive(const SearchSpace& space, const ActivityOrder& order, const DiveStyle& style,
       PartialChoice* program)
      : space_(space), order_(order), style_(style), program_(*program) {}

  enum class Outcome : std::uint8_t { kDone, kStuck, kOutOfWork };
  // Fixes `activities` in their order. kStuck where no knob of an activity has a bound
  // within `limit`; kOutOfWork as soon as the program's work passes
  // `work_limit`: activities that were not reached are free.
  Outcome Run(std::span<const int> activities, frontier::Int128 limit, std::int64_t work_limit);

 private:
  int Following(int activity) const;
  frontier::Int128 LookAhead(int activity, frontier::Int128 limit);
  bool ChooseKnob(int activity, frontier::Int128 limit);

  const SearchSpace& space_;
  const ActivityOrder& order_;
  const DiveStyle style_;
  PartialChoice& program_;
};

}  // namespace perseus::plan

#endif  // PERSEUS_PLAN_OPTION_SEARCH_H_
