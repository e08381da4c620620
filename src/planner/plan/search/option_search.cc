// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// From durations to clocks.
//
// At an optimum of the relaxation about 40 % of the computations sit inside a
// hull segment. Rounding each on its own loses half a clock step per
// computation, because the window that a computation has is often fixed by its
// neighbours (a backward and a forward of one rank between two of the next).
//
// Dive. In order of start time, each activity is fixed to one knob and the
// relaxation of all that is still free is re-optimised, exactly, by a few
// simplex pivots (frontier::DeadlineProgram): what rounding loses or gains in
// time flows to where it is worth most. The knob is chosen by looking one step
// further: for each candidate the next activity of the rank is rounded as well,
// and the least resulting bound wins. That is what finds the pairs of clocks
// whose times add up to a window. Which dive ends best is luck: as long as their
// share of the work limit lasts, others follow (rank by rank, from the back, with more
// or fewer candidates, in another order), each given up once its bound passes the best.
//
// Neighbourhood search. Release a few activities, dive again inside, keep what is
// better. Every trial stops as soon as its bound passes the best plan's cost.
//
// Branch and bound. Small problems are then searched to the end, as far as the
// work limit allows: the bounds are exact, and near the optimum already.
//
// Where the work limit ends the first dive (very large pipelines), what is left is
// rounded to the slowest options within the planned durations: always feasible.

#include "plan/search/option_search.h"

#include <algorithm>
#include <cstddef>
#include <random>
#include <utility>

#include "plan/search/dive.h"
#include "plan/search/dive_order.h"
#include "plan/search/partial_choice.h"

namespace perseus::plan {
namespace {

using frontier::DeadlineProgram;
using frontier::Int128;
using frontier::kNoLimit;
using frontier::Network;

constexpr double kDiveShare = 0.1;     // Of the usual work, for dives,
constexpr double kBranchShare = 0.4;   // for the branch and bound of small problems.
constexpr int kBasicDives = 3;         // One in each order.
constexpr int kMostFailedDives = 100;  // In a row.
constexpr int kMostToBranchOn = 64;
constexpr std::size_t kMostPickedToBranch = 16;
constexpr std::int64_t kBranchWorkPerActivity = 200;
constexpr int kSmallestNeighbourhood = 8;   // Activities released at once,
constexpr int kNeighbourhoodDoublings = 4;  // up to 8 x 2^3.

class Search {
 public:
  Search(const Network& network, DeadlineProgram program, const SearchSpace& space,
         const SearchBudget& budget, const ChoiceReport& report)
      : space_(space),
        order_(space, program),
        program_(network, std::move(program), space),
        report_(report),
        dive_limit_(Share(kDiveShare, budget)),
        branch_limit_(Share(kBranchShare, budget)),
        work_limit_(budget.limit),
        work_before_(program_.work()) {}

  void Run() {
    RoundDown();
    if (!Dives()) return;
    if (space_.size() <= kMostToBranchOn) {
      for (int k = 0; k < program_.size(); ++k) program_.Release(k);
      program_.Optimise(kNoLimit);
      Branch(order_.by_start(), Work() + branch_limit_);
      for (int k = 0; k < program_.size(); ++k) program_.Fix(k, best_[k]);
      if (!program_.Optimise(kNoLimit)) return;
    }
    Improve();
  }

 private:
  static std::int64_t Share(double share, const SearchBudget& budget) {
    return static_cast<std::int64_t>(share * static_cast<double>(budget.usual));
  }

  std::int64_t Work() const { return spent_ + program_.work() - work_before_; }
  bool IsOver() const { return stopped_ || Work() >= work_limit_; }

  void Better(std::vector<int> knobs, Int128 cost) {
    best_ = std::move(knobs);
    best_cost_ = cost;
    if (!report_(&best_, Work())) stopped_ = true;
  }
  void StillSearching() {
    if (!report_(nullptr, Work())) stopped_ = true;
  }

  Dive::Outcome DiveInto(const std::vector<int>& activities, const DiveStyle& style, Int128 limit) {
    return Dive(space_, order_, style, &program_)
        .Run(activities, limit, work_before_ - spent_ + work_limit_);
  }

  // Every activity at the slowest knob within its duration: always feasible, and
  // there at once.
  void RoundDown() {
    std::vector<int> knobs;
    Int128 cost = 0;
    for (int g = 0; g < program_.size(); ++g) {
      knobs.push_back(space_.knobs[g][program_.SlowestWithin(g)]);
      cost += program_.CostOf(g, knobs.back());
    }
    Better(std::move(knobs), cost);
  }

  // Dives in different styles; the best is left in best_ and program_. False
  // where the program of the best has no optimum.
  bool Dives() {
    const DeadlineProgram relaxation = program_.program();
    DeadlineProgram best_program = relaxation;
    bool from_dive = false;
    int failures = 0;
    for (int dive = 0; !IsOver() && failures < kMostFailedDives; ++dive) {
      if (dive >= kBasicDives && Work() >= dive_limit_) break;
      const DiveStyle style = StyleOfDive(dive, &random_);
      if (dive > 0) {
        spent_ += program_.work() - relaxation.work();
        program_.Assign(relaxation, std::vector<int>(program_.size(), -1));
      }
      const std::int64_t before = Work();
      const Int128 limit = dive == 0 ? kNoLimit : best_cost_ - 1;
      const Dive::Outcome outcome = DiveInto(order_.OfDive(style, &random_), style, limit);
      const bool done = outcome == Dive::Outcome::kDone;
      if (done && program_.objective() < best_cost_) {
        Better(program_.chosen(), program_.objective());
        best_program = program_.program();
        from_dive = true;
        failures = 0;
      } else if (done && dive == 0) {
        continue;  // What was rounded down is as good.
      } else if (outcome == Dive::Outcome::kOutOfWork || dive == 0) {
        break;
      } else {
        ++failures;
        StillSearching();
      }
      if (Work() == before) break;  // Nothing to choose.
    }
    spent_ += program_.work() - best_program.work();
    program_.Assign(std::move(best_program), std::vector<int>(program_.size(), -1));
    if (from_dive) {
      program_.Assign(program_.program(), best_);
      return true;
    }
    for (int k = 0; k < program_.size(); ++k) program_.Fix(k, best_[k]);
    return program_.Optimise(kNoLimit);
  }

  // Activities around a random one, in order of start time.
  std::vector<int> PickNeighbourhood() {
    const int activities = space_.size();
    const int size =
        std::min(activities, kSmallestNeighbourhood << (random_() % kNeighbourhoodDoublings));
    const int centre = static_cast<int>(random_() % static_cast<std::uint32_t>(activities));
    std::vector<int> picked;
    if (random_() % 2 == 0) {  // Neighbours in time, on all ranks.
      const int first = std::clamp(centre - size / 2, 0, activities - size);
      for (int k = first; k < first + size; ++k) picked.push_back(order_.by_start()[k]);
      return picked;
    }
    // Neighbours on one rank.
    for (int g = order_.by_start()[centre]; g >= 0 && static_cast<int>(picked.size()) < size;
         g = space_.next[g]) {
      if (std::find(picked.begin(), picked.end(), g) != picked.end()) break;
      picked.push_back(g);
    }
    return picked;
  }

  // Depth first over the free ones of `activities`, children by bound. Every other
  // activity is fixed. Expects an optimal program and leaves it so.
  void Branch(const std::vector<int>& activities, std::int64_t work_limit) {
    int activity = -1;
    for (const int g : activities) {
      if (!program_.IsFree(g)) continue;
      if (activity < 0) activity = g;
      if (program_.Neighbours(g).size() > 1) {
        activity = g;
        break;
      }
    }
    if (activity < 0) {
      if (program_.objective() < best_cost_) Better(program_.chosen(), program_.objective());
      return;
    }
    for (const auto& [child_bound, knob] : program_.ByBound(activity, best_cost_)) {
      if (child_bound >= best_cost_ || Work() >= work_limit || IsOver()) break;
      program_.Fix(activity, knob);
      if (program_.Optimise(kNoLimit)) Branch(activities, work_limit);
    }
    program_.Release(activity);
    program_.Optimise(kNoLimit);
  }

  void Improve() {
    // Nothing is gained by searching on when the neighbourhoods are exhausted.
    const std::int64_t most_failures = std::int64_t{16} * space_.size() + 64;
    std::int64_t failures = 0;
    while (!IsOver() && failures < most_failures) {
      std::vector<int> picked = PickNeighbourhood();
      const DiveStyle style = {.backward = random_() % 2 == 0,
                               .candidates = static_cast<int>(random_() % 7)};
      if (style.backward) std::reverse(picked.begin(), picked.end());
      if (random_() % 4 == 0) {
        for (std::size_t k = picked.size(); k > 1; --k) {
          std::swap(picked[k - 1], picked[random_() % k]);
        }
      }
      for (const int activity : picked) program_.Release(activity);
      program_.Optimise(kNoLimit);
      const Int128 before = best_cost_;
      bool better = program_.objective() < best_cost_;
      if (better && picked.size() <= kMostPickedToBranch && random_() % 2 == 0) {
        Branch(picked, Work() + kBranchWorkPerActivity * space_.size());
        better = false;
      } else if (better && DiveInto(picked, style, best_cost_ - 1) == Dive::Outcome::kDone) {
        Better(program_.chosen(), program_.objective());
        better = true;
      } else {
        better = false;
      }
      failures = best_cost_ < before ? 0 : failures + 1;
      if (!better) {
        for (const int activity : picked) program_.Fix(activity, best_[activity]);
        program_.Optimise(kNoLimit);
      }
      if (failures % 64 == 63) StillSearching();
    }
  }

  const SearchSpace& space_;
  const ActivityOrder order_;
  PartialChoice program_;
  const ChoiceReport& report_;
  const std::int64_t dive_limit_;
  const std::int64_t branch_limit_;
  const std::int64_t work_limit_;
  const std::int64_t work_before_;
  std::int64_t spent_ = 0;  // On programs that were thrown away.
  bool stopped_ = false;
  std::vector<int> best_;  // [activity]
  Int128 best_cost_ = kNoLimit;
  std::mt19937 random_;  // Its sequence is fixed by the standard.
};

}  // namespace

void SearchOptions(const Network& network, DeadlineProgram program, const SearchSpace& space,
                   const SearchBudget& budget, const ChoiceReport& report) {
  Search(network, std::move(program), space, budget, report).Run();
}

}  // namespace perseus::plan
