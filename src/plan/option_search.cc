// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// From durations to clocks.
//
// At an optimum of the relaxation about 40 % of the computations sit inside a
// hull segment. Rounding each on its own loses half a clock step per
// computation, because the window that a computation has is often fixed by its
// neighbours (a backward and a forward of one rank between two of the next).
//
// Dive. In order of start time, each group is fixed to one knob and the
// relaxation of all that is still free is re-optimised, exactly, by a few
// simplex pivots (frontier::DeadlineProgram): what rounding loses or gains in
// time flows to where it is worth most. The knob is chosen by looking one step
// further: for each candidate the next group of the rank is rounded as well,
// and the least resulting bound wins. That is what finds the pairs of clocks
// whose times add up to a window. Which dive ends best is luck: as long as their
// share of the work limit lasts, others follow (rank by rank, from the back, with more
// or fewer candidates, in another order), each given up once its bound passes the best.
//
// Neighbourhood search. Release a few groups, dive again inside, keep what is
// better. Every trial stops as soon as its bound passes the best plan's cost.
//
// Branch and bound. Small problems are then searched to the end, as far as the
// work limit allows: the bounds are exact, and near the optimum already.
//
// Where the work limit ends the first dive (very large pipelines), what is left is
// rounded to the slowest options within the planned durations: always feasible.

#include "plan/option_search.h"

#include <algorithm>
#include <random>
#include <utility>

#include "plan/dive_order.h"
#include "plan/grouped_program.h"

namespace perseus::plan {
namespace {

using frontier::DeadlineProgram;
using frontier::Int128;
using frontier::kNoLimit;
using frontier::Network;

constexpr double kDiveShare = 0.4;     // Of the work limit, for dives.
constexpr int kBasicDives = 3;         // One in each order.
constexpr int kMostFailedDives = 100;  // In a row.
constexpr std::size_t kMostGroupsToBranch = 64;
constexpr std::size_t kMostPickedToBranch = 16;
constexpr std::int64_t kBranchWorkPerGroup = 200;
constexpr int kSmallestNeighbourhood = 8;   // Groups released at once,
constexpr int kNeighbourhoodDoublings = 4;  // up to 8 x 2^3.

class Search {
 public:
  Search(const Network& network, DeadlineProgram program, const SearchSpace& space,
         std::int64_t work_limit, std::int64_t basic_work_limit)
      : space_(space),
        order_(space, program),
        program_(network, std::move(program), space),
        work_limit_(program_.work() + work_limit),
        basic_work_limit_(program_.work() + std::max(work_limit, basic_work_limit)) {
    // A single step may be long where many activities change at once.
    if (!program_.each_alone()) program_.SetWorkLimit(basic_work_limit_);
  }

  std::optional<std::vector<int>> Run() {
    if (!Dives()) return RoundUp();
    const bool small = space_.groups.size() <= kMostGroupsToBranch;
    const std::int64_t work_left = work_limit_ - program_.work();
    Improve(small ? work_limit_ - work_left / 2 : work_limit_);
    if (small) {
      for (int group = 0; group < static_cast<int>(space_.groups.size()); ++group) {
        program_.Release(group);
      }
      program_.Optimise(kNoLimit);
      Branch(order_.by_start(), work_limit_);
    }
    return best_;
  }

 private:
  // The group of the same rank that comes next in the direction of the dive.
  int Following(int group) const {
    return style_.backward ? order_.Previous(group) : space_.next_group[group];
  }

  // The least bound over the ways to round the next group of the rank.
  Int128 LookAhead(int group, Int128 limit) {
    if (group < 0 || !program_.IsFree(group)) return program_.objective();
    const std::vector<int> knobs = program_.Neighbours(group);
    if (knobs.size() == 1) return program_.objective();
    Int128 best = kNoLimit;
    for (const int knob : knobs) {
      program_.Fix(group, knob);
      if (program_.OptimiseFixed(group, std::min(best, limit))) best = program_.objective();
    }
    program_.Release(group);
    program_.Optimise(kNoLimit);
    return best;
  }

  // Fixes a group to the best knob found whose bound is within `limit`.
  bool ChooseKnob(int group, Int128 limit) {
    std::vector<int> candidates = program_.Neighbours(group);
    const std::size_t neighbours = candidates.size();
    for (const auto& [price, knob] : program_.ByPrice(group)) {
      if (std::find(candidates.begin(), candidates.end(), knob) == candidates.end()) {
        candidates.push_back(knob);
      }
    }
    const std::size_t wanted = std::min(candidates.size(), neighbours + style_.candidates);
    Int128 best = kNoLimit;
    Int128 best_now = kNoLimit;
    int best_knob = -1;
    // Beyond the wanted ones only until one is feasible.
    for (std::size_t k = 0; k < candidates.size() && (k < wanted || best_knob < 0); ++k) {
      program_.Fix(group, candidates[k]);
      if (!program_.OptimiseFixed(group, std::min(limit, best))) continue;
      const Int128 now = program_.objective();
      const Int128 ahead =
          style_.look_ahead ? LookAhead(Following(group), std::min(limit, best)) : now;
      if (ahead < best || (ahead == best && now < best_now) || best_knob < 0) {
        best = ahead;
        best_now = now;
        best_knob = candidates[k];
      }
    }
    if (best_knob < 0) return false;
    program_.Fix(group, best_knob);
    return program_.Optimise(limit);
  }

  // Dives in different styles; the best is left in best_ and program_.
  bool Dives() {
    const auto share = [this](std::int64_t limit) {
      return program_.work() +
             static_cast<std::int64_t>(kDiveShare * static_cast<double>(limit - program_.work()));
    };
    const std::int64_t dive_limit = share(work_limit_);
    const std::int64_t basic_limit = share(basic_work_limit_);
    const DeadlineProgram relaxation = program_.program();
    std::int64_t work = program_.work();
    DeadlineProgram best_program = relaxation;
    int failures = 0;
    const auto go_on = [&](int dive) {
      if (dive == 0) return true;
      return work < (dive < kBasicDives ? basic_limit : dive_limit) && failures < kMostFailedDives;
    };
    for (int dive = 0; go_on(dive); ++dive) {
      const std::int64_t work_before = work;
      style_ = StyleOfDive(dive, &random_);
      if (dive > 0) program_.Assign(relaxation, std::vector<int>(program_.size(), -1));
      const bool first = dive == 0;
      if (Dive(first ? kNoLimit : best_cost_ - 1, basic_work_limit_, first) ||
          (first && FallBack())) {
        best_ = program_.chosen();
        best_cost_ = program_.objective();
        best_program = program_.program();
        failures = 0;
      } else if (first) {
        return false;
      } else {
        ++failures;
      }
      work = work_before + (program_.work() - relaxation.work());
      if (work == work_before) break;  // Nothing to choose.
    }
    program_.Assign(std::move(best_program), best_);
    work_limit_ += program_.work() - work;
    return true;
  }

  // False when its bound passes the limit, or it has painted itself into a
  // corner (knobs shared by groups on noisy tables).
  // The same when it runs out of work, unless `round_down`.
  bool Dive(Int128 limit, std::int64_t work_limit, bool round_down) {
    const std::vector<int> order = order_.OfDive(style_, &random_);
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (program_.work() > work_limit) {
        return round_down && program_.each_alone() && RoundDown(order, k);
      }
      if (!ChooseKnob(order[k], limit)) return false;
    }
    return true;
  }

  // Rounds all groups from position `first` of the order within their
  // durations.
  bool RoundDown(const std::vector<int>& order, std::size_t first) {
    std::vector<int> knobs;
    for (std::size_t k = first; k < order.size(); ++k) {
      knobs.push_back(space_.knobs[order[k]][program_.SlowestWithin(order[k])]);
    }
    for (std::size_t k = first; k < order.size(); ++k) program_.Fix(order[k], knobs[k - first]);
    return program_.Optimise(kNoLimit);
  }

  // Without the simplex: what the first dive has chosen, and every other group
  // at its fastest knob; or all at theirs.
  std::optional<std::vector<int>> RoundUp() {
    for (const bool keep : {true, false}) {
      for (int g = 0; g < program_.size(); ++g) {
        if (!keep || program_.IsFree(g)) program_.Fix(g, program_.KnobsOf(g).front());
      }
      if (program_.CanMeetDeadline()) return program_.chosen();
    }
    return std::nullopt;
  }

  // Every group at its fastest (or the baseline's) knob. Not where the work is
  // used up: the way there is long for the simplex.
  bool FallBack() {
    if (program_.work() > basic_work_limit_) return false;
    for (std::size_t g = 0; g < space_.groups.size(); ++g) {
      program_.Fix(static_cast<int>(g), space_.knobs[g].front());
    }
    return program_.Optimise(kNoLimit);
  }

  // Groups around a random one, in order of start time.
  std::vector<int> PickNeighbourhood() {
    const int groups = static_cast<int>(space_.groups.size());
    const int size =
        std::min(groups, kSmallestNeighbourhood << (random_() % kNeighbourhoodDoublings));
    const int centre = static_cast<int>(random_() % static_cast<std::uint32_t>(groups));
    std::vector<int> picked;
    if (random_() % 2 == 0) {  // Neighbours in time, on all ranks.
      const int first = std::clamp(centre - size / 2, 0, groups - size);
      for (int k = first; k < first + size; ++k) picked.push_back(order_.by_start()[k]);
      return picked;
    }
    // Neighbours on one rank.
    for (int g = order_.by_start()[centre]; g >= 0 && static_cast<int>(picked.size()) < size;
         g = space_.next_group[g]) {
      if (std::find(picked.begin(), picked.end(), g) != picked.end()) break;
      picked.push_back(g);
    }
    return picked;
  }

  // Depth first over the free ones of `groups`, children by bound. Every other
  // group is fixed. Expects an optimal program and leaves it so.
  void Branch(const std::vector<int>& groups, std::int64_t work_limit) {
    int group = -1;
    for (const int g : groups) {
      if (!program_.IsFree(g)) continue;
      if (group < 0) group = g;
      if (program_.Neighbours(g).size() > 1) {
        group = g;
        break;
      }
    }
    if (group < 0) {
      best_ = program_.chosen();
      best_cost_ = program_.objective();
      return;
    }
    std::vector<std::pair<Int128, int>> children;
    const Int128 bound = program_.objective();
    // The difference in price is a bound on what the child costs more.
    const std::vector<std::pair<Int128, int>> priced = program_.ByPrice(group);
    for (const auto& [price, knob] : priced) {
      if (bound + (price - priced.front().first) >= best_cost_) break;
      program_.Fix(group, knob);
      if (program_.OptimiseFixed(group, best_cost_ - 1))
        children.emplace_back(program_.objective(), knob);
    }
    std::stable_sort(children.begin(), children.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [child_bound, knob] : children) {
      if (child_bound >= best_cost_ || program_.work() >= work_limit) break;
      program_.Fix(group, knob);
      if (program_.Optimise(kNoLimit)) Branch(groups, work_limit);
    }
    program_.Release(group);
    program_.Optimise(kNoLimit);
  }

  void Improve(std::int64_t work_limit) {
    // Nothing is gained by searching on when the neighbourhoods are exhausted.
    const std::int64_t most_failures = 16 * static_cast<std::int64_t>(space_.groups.size()) + 64;
    std::int64_t failures = 0;
    while (program_.work() < work_limit && failures < most_failures) {
      std::vector<int> picked = PickNeighbourhood();
      style_ = {.backward = random_() % 2 == 0, .candidates = static_cast<int>(random_() % 7)};
      if (style_.backward) std::reverse(picked.begin(), picked.end());
      if (random_() % 4 == 0) {
        for (std::size_t k = picked.size(); k > 1; --k) {
          std::swap(picked[k - 1], picked[random_() % k]);
        }
      }
      for (const int group : picked) program_.Release(group);
      program_.Optimise(kNoLimit);
      bool better = program_.objective() < best_cost_;
      if (better && picked.size() <= kMostPickedToBranch && random_() % 2 == 0) {
        const Int128 before = best_cost_;
        Branch(picked, program_.work() +
                           kBranchWorkPerGroup * static_cast<std::int64_t>(space_.groups.size()));
        failures = best_cost_ < before ? 0 : failures + 1;
        for (const int group : picked) program_.Fix(group, best_[group]);
        program_.Optimise(kNoLimit);
        continue;
      }
      for (std::size_t k = 0; better && k < picked.size(); ++k) {
        better = ChooseKnob(picked[k], best_cost_ - 1);
      }
      if (better) {
        best_cost_ = program_.objective();
        best_ = program_.chosen();
        failures = 0;
        continue;
      }
      ++failures;
      for (const int group : picked) program_.Fix(group, best_[group]);
      program_.Optimise(kNoLimit);
    }
  }

  const SearchSpace& space_;
  const GroupOrder order_;
  GroupedProgram program_;
  std::int64_t work_limit_;
  const std::int64_t basic_work_limit_;
  DiveStyle style_;
  std::vector<int> best_;  // [group]
  Int128 best_cost_ = 0;
  std::mt19937 random_;  // Its sequence is fixed by the standard.
};

}  // namespace

std::optional<std::vector<int>> SearchOptions(const Network& network, DeadlineProgram program,
                                              const SearchSpace& space, std::int64_t work_limit,
                                              std::int64_t basic_work_limit) {
  return Search(network, std::move(program), space, work_limit, basic_work_limit).Run();
}

}  // namespace perseus::plan
