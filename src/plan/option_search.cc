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
#include <numeric>
#include <random>

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

// How a dive goes.
struct DiveStyle {
  enum class Order : std::uint8_t { kByTime, kRankByRank, kLastRankFirst };
  Order order = Order::kByTime;
  bool backward = false;  // From the last group to the first.
  int candidates = 6;     // Knobs tried besides the neighbours of the relaxation.
  bool look_ahead = true;
  int disorder = 0;  // Positions by which a group may leave its place in the order.
};

class Search {
 public:
  Search(const Network& network, DeadlineProgram program, const SearchSpace& space,
         std::int64_t work_limit, std::int64_t basic_work_limit)
      : network_(network),
        program_(std::move(program)),
        space_(space),
        work_limit_(program_.work() + work_limit),
        basic_work_limit_(program_.work() + std::max(work_limit, basic_work_limit)),
        chosen_(space.groups.size(), -1),
        previous_group_(space.groups.size(), -1),
        start_(space.groups.size()) {
    for (std::size_t g = 0; g < space.groups.size(); ++g) {
      start_[g] = program_.StartTime(space.groups[g].front());
      for (const int activity : space.groups[g]) {
        start_[g] = std::min(start_[g], program_.StartTime(activity));
      }
      if (space.next_group[g] >= 0) previous_group_[space.next_group[g]] = static_cast<int>(g);
    }
    // Groups that follow one another run on one rank.
    rank_.assign(space.groups.size(), -1);
    int ranks = 0;
    for (std::size_t g = 0; g < space.groups.size(); ++g) {
      if (previous_group_[g] >= 0) continue;
      for (int h = static_cast<int>(g); h >= 0 && rank_[h] < 0; h = space.next_group[h]) {
        rank_[h] = ranks;
      }
      ++ranks;
    }
    order_.resize(space.groups.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::stable_sort(order_.begin(), order_.end(),
                     [this](int a, int b) { return start_[a] < start_[b]; });
  }

  std::optional<std::vector<int>> Run() {
    if (!Dives()) return std::nullopt;
    const bool small = space_.groups.size() <= kMostGroupsToBranch;
    const std::int64_t work_left = work_limit_ - program_.work();
    Improve(small ? work_limit_ - work_left / 2 : work_limit_);
    if (small) {
      for (int group = 0; group < static_cast<int>(space_.groups.size()); ++group) {
        ReleaseGroup(group);
      }
      Optimise(kNoLimit);
      Branch(order_, work_limit_);
    }
    return best_;
  }

 private:
  const GridOption& OptionOf(int activity, int knob) const {
    return space_.options[network_.curve_of[activity]][knob];
  }

  void FixGroup(int group, int knob) {
    for (const int activity : space_.groups[group]) {
      const GridOption& option = OptionOf(activity, knob);
      program_.Fix(activity, option.length, option.cost);
    }
    chosen_[group] = knob;
  }

  void ReleaseGroup(int group) {
    for (const int activity : space_.groups[group]) program_.Release(activity);
    chosen_[group] = -1;
  }

  bool Optimise(Int128 limit) {
    return program_.Optimise(limit) == DeadlineProgram::Outcome::kOptimal;
  }

  // Position in knobs[group] of the slowest option within the duration that
  // the relaxation gives. Groups of one only.
  int SlowestWithin(int group) const {
    const int activity = space_.groups[group].front();
    const std::int64_t duration = program_.Duration(activity);
    const std::vector<int>& knobs = space_.knobs[group];
    int position = 0;
    while (position + 1 < static_cast<int>(knobs.size()) &&
           OptionOf(activity, knobs[position + 1]).length <= duration) {
      ++position;
    }
    return position;
  }

  // Knobs by what they cost at the current prices, least first.
  std::vector<int> ByPrice(int group) {
    priced_.clear();
    for (const int knob : space_.knobs[group]) {
      Int128 cost = 0;
      for (const int activity : space_.groups[group]) {
        const GridOption& option = OptionOf(activity, knob);
        cost += option.cost + static_cast<Int128>(program_.Price(activity)) * option.length;
      }
      priced_.emplace_back(cost, knob);
    }
    std::stable_sort(priced_.begin(), priced_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<int> knobs;
    for (const auto& [cost, knob] : priced_) knobs.push_back(knob);
    return knobs;
  }

  // The options on both sides of the relaxation, for a group of one; else the
  // two best at current prices.
  std::vector<int> Neighbours(int group) {
    const std::vector<int>& knobs = space_.knobs[group];
    if (space_.groups[group].size() > 1) {
      std::vector<int> best = ByPrice(group);
      if (best.size() <= 2) return best;
      return {best[0], best[1]};
    }
    const int activity = space_.groups[group].front();
    const int within = SlowestWithin(group);
    std::vector<int> result = {knobs[within]};
    const bool exact = OptionOf(activity, knobs[within]).length == program_.Duration(activity);
    if (!exact && within + 1 < static_cast<int>(knobs.size())) {
      result.push_back(knobs[within + 1]);
    }
    return result;
  }

  // The group of the same rank that comes next in the direction of the dive.
  int Following(int group) const {
    return style_.backward ? previous_group_[group] : space_.next_group[group];
  }

  // The least bound over the ways to round the next group of the rank.
  Int128 LookAhead(int group, Int128 limit) {
    if (group < 0 || chosen_[group] >= 0) return program_.objective();
    const std::vector<int> knobs = Neighbours(group);
    if (knobs.size() == 1) return program_.objective();
    Int128 best = kNoLimit;
    for (const int knob : knobs) {
      FixGroup(group, knob);
      if (Optimise(std::min(best, limit))) best = program_.objective();
    }
    ReleaseGroup(group);
    Optimise(kNoLimit);
    return best;
  }

  // Fixes a group to the best knob found whose bound is within `limit`.
  bool ChooseKnob(int group, Int128 limit) {
    std::vector<int> candidates = Neighbours(group);
    std::size_t wanted = candidates.size();
    for (const int knob : ByPrice(group)) {
      if (std::find(candidates.begin(), candidates.end(), knob) == candidates.end()) {
        candidates.push_back(knob);
      }
    }
    wanted = std::min(candidates.size(), wanted + style_.candidates);
    Int128 best = kNoLimit;
    Int128 best_now = kNoLimit;
    int best_knob = -1;
    // Beyond the wanted ones only until one is feasible.
    for (std::size_t k = 0; k < candidates.size() && (k < wanted || best_knob < 0); ++k) {
      FixGroup(group, candidates[k]);
      if (!Optimise(std::min(limit, best))) continue;
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
    FixGroup(group, best_knob);
    return Optimise(limit);
  }

  // Dives in different styles; the best is left in best_ and program_.
  bool Dives() {
    const auto share = [this](std::int64_t limit) {
      return program_.work() +
             static_cast<std::int64_t>(kDiveShare * static_cast<double>(limit - program_.work()));
    };
    const std::int64_t dive_limit = share(work_limit_);
    const std::int64_t basic_limit = share(basic_work_limit_);
    const DeadlineProgram relaxation = program_;
    std::int64_t work = program_.work();
    DeadlineProgram best_program = program_;
    int failures = 0;
    const auto go_on = [&](int dive) {
      if (dive == 0) return true;
      return work < (dive < kBasicDives ? basic_limit : dive_limit) && failures < kMostFailedDives;
    };
    for (int dive = 0; go_on(dive); ++dive) {
      const std::int64_t work_before = work;
      style_ = StyleOfDive(dive);
      if (dive > 0) program_ = relaxation;
      std::fill(chosen_.begin(), chosen_.end(), -1);
      const bool first = dive == 0;
      if (Dive(first ? kNoLimit : best_cost_ - 1, basic_work_limit_, first) ||
          (first && FallBack())) {
        best_ = chosen_;
        best_cost_ = program_.objective();
        best_program = program_;
        failures = 0;
      } else if (first) {
        return false;
      } else {
        ++failures;
      }
      work = work_before + (program_.work() - relaxation.work());
      if (work == work_before) break;  // Nothing to choose.
    }
    chosen_ = best_;
    program_ = std::move(best_program);
    work_limit_ += program_.work() - work;
    return true;
  }

  DiveStyle StyleOfDive(int dive) {
    switch (dive) {
      case 0:
        return {.candidates = 3};
      case 1:
        return {.order = DiveStyle::Order::kRankByRank, .candidates = 2};
      case 2:
        return {.order = DiveStyle::Order::kLastRankFirst, .candidates = 2};
      case 3:
        return {.backward = true, .candidates = 2};
      case 4:
        return {.candidates = 0};
      default:
        return {.order = static_cast<DiveStyle::Order>(random_() % 3),
                .backward = random_() % 2 == 0,
                .candidates = static_cast<int>(random_() % 7),
                .look_ahead = random_() % 4 != 0,
                .disorder = static_cast<int>(random_() % 5)};
    }
  }

  std::vector<int> OrderOfDive() {
    std::vector<int> order = order_;
    if (style_.order != DiveStyle::Order::kByTime) {
      std::stable_sort(order.begin(), order.end(), [this](int a, int b) {
        return style_.order == DiveStyle::Order::kRankByRank ? rank_[a] < rank_[b]
                                                             : rank_[a] > rank_[b];
      });
    }
    if (style_.backward) std::reverse(order.begin(), order.end());
    if (style_.disorder == 0) return order;
    std::vector<std::pair<std::uint32_t, int>> places;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const auto shift = random_() % static_cast<std::uint32_t>(2 * style_.disorder + 1);
      places.emplace_back(static_cast<std::uint32_t>(2 * k) + shift, order[k]);
    }
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t k = 0; k < order.size(); ++k) order[k] = places[k].second;
    return order;
  }

  // False when its bound passes the limit, or it has painted itself into a
  // corner (knobs shared by groups on noisy tables).
  // The same when it runs out of work, unless `round_down`.
  bool Dive(Int128 limit, std::int64_t work_limit, bool round_down) {
    const std::vector<int> order = OrderOfDive();
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (program_.work() > work_limit) {
        return round_down && space_.groups.size() == network_.curve_of.size() &&
               RoundDown(order, k);
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
      knobs.push_back(space_.knobs[order[k]][SlowestWithin(order[k])]);
    }
    for (std::size_t k = first; k < order.size(); ++k) FixGroup(order[k], knobs[k - first]);
    return Optimise(kNoLimit);
  }

  // Every group at its fastest (or the baseline's) knob.
  bool FallBack() {
    for (std::size_t g = 0; g < space_.groups.size(); ++g) {
      FixGroup(static_cast<int>(g), space_.knobs[g].front());
    }
    return Optimise(kNoLimit);
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
      for (int k = first; k < first + size; ++k) picked.push_back(order_[k]);
      return picked;
    }
    // Neighbours on one rank.
    for (int g = order_[centre]; g >= 0 && static_cast<int>(picked.size()) < size;
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
      if (chosen_[g] >= 0) continue;
      if (group < 0) group = g;
      if (Neighbours(g).size() > 1) {
        group = g;
        break;
      }
    }
    if (group < 0) {
      best_ = chosen_;
      best_cost_ = program_.objective();
      return;
    }
    std::vector<std::pair<Int128, int>> children;
    const Int128 bound = program_.objective();
    ByPrice(group);
    // The difference in price is a bound on what the child costs more.
    std::vector<std::pair<Int128, int>> priced = priced_;
    for (const auto& [price, knob] : priced) {
      if (bound + (price - priced.front().first) >= best_cost_) break;
      FixGroup(group, knob);
      if (Optimise(best_cost_ - 1)) children.emplace_back(program_.objective(), knob);
    }
    std::stable_sort(children.begin(), children.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [child_bound, knob] : children) {
      if (child_bound >= best_cost_ || program_.work() >= work_limit) break;
      FixGroup(group, knob);
      if (Optimise(kNoLimit)) Branch(groups, work_limit);
    }
    ReleaseGroup(group);
    Optimise(kNoLimit);
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
      for (const int group : picked) ReleaseGroup(group);
      Optimise(kNoLimit);
      bool better = program_.objective() < best_cost_;
      if (better && picked.size() <= kMostPickedToBranch && random_() % 2 == 0) {
        const Int128 before = best_cost_;
        Branch(picked, program_.work() +
                           kBranchWorkPerGroup * static_cast<std::int64_t>(space_.groups.size()));
        failures = best_cost_ < before ? 0 : failures + 1;
        for (const int group : picked) FixGroup(group, best_[group]);
        Optimise(kNoLimit);
        continue;
      }
      for (std::size_t k = 0; better && k < picked.size(); ++k) {
        better = ChooseKnob(picked[k], best_cost_ - 1);
      }
      if (better) {
        best_cost_ = program_.objective();
        best_ = chosen_;
        failures = 0;
        continue;
      }
      ++failures;
      for (const int group : picked) FixGroup(group, best_[group]);
      Optimise(kNoLimit);
    }
  }

  const Network& network_;
  DeadlineProgram program_;
  const SearchSpace& space_;
  std::int64_t work_limit_;
  const std::int64_t basic_work_limit_;
  DiveStyle style_;
  std::vector<int> chosen_;  // [group]; -1 while free.
  std::vector<int> best_;
  Int128 best_cost_ = 0;
  std::vector<int> previous_group_;
  std::vector<int> rank_;  // [group]
  std::vector<std::int64_t> start_;
  std::vector<int> order_;  // Of the groups, by start.
  std::vector<std::pair<Int128, int>> priced_;
  std::mt19937 random_;  // Its sequence is fixed by the standard.
};

}  // namespace

std::optional<std::vector<int>> SearchOptions(const Network& network, DeadlineProgram program,
                                              const SearchSpace& space, std::int64_t work_limit,
                                              std::int64_t basic_work_limit) {
  return Search(network, std::move(program), space, work_limit, basic_work_limit).Run();
}

}  // namespace perseus::plan
