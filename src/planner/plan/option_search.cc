// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "plan/option_search.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace perseus::plan {

using frontier::DeadlineProgram;
using frontier::Int128;

PartialChoice::PartialChoice(const frontier::Network& network, DeadlineProgram program,
                             const SearchSpace& space)
    : network_(network),
      program_(std::move(program)),
      space_(space),
      chosen_(space.knobs.size(), -1) {}

void PartialChoice::Fix(int activity, int knob) {
  const GridOption& option = OptionOf(activity, knob);
  program_.Fix(activity, option.length, option.cost);
  chosen_[activity] = knob;
}

void PartialChoice::Release(int activity) {
  program_.Release(activity);
  chosen_[activity] = -1;
}

bool PartialChoice::Optimise(Int128 limit) {
  return program_.Optimise(limit) == DeadlineProgram::Outcome::kOptimal;
}

void PartialChoice::Assign(DeadlineProgram program, std::vector<int> chosen) {
  program_ = std::move(program);
  chosen_ = std::move(chosen);
}

int PartialChoice::SlowestWithin(int activity) const {
  const std::int64_t duration = program_.Duration(activity);
  const std::vector<int>& knobs = space_.knobs[activity];
  int position = 0;
  while (position + 1 < static_cast<int>(knobs.size()) &&
         OptionOf(activity, knobs[position + 1]).length <= duration) {
    ++position;
  }
  return position;
}

std::vector<std::pair<Int128, int>> PartialChoice::ByPrice(int activity) const {
  std::vector<std::pair<Int128, int>> priced;
  const Int128 price = program_.Price(activity);
  for (const int knob : space_.knobs[activity]) {
    const GridOption& option = OptionOf(activity, knob);
    priced.emplace_back(option.cost + price * option.length, knob);
  }
  std::stable_sort(priced.begin(), priced.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return priced;
}

std::vector<std::pair<Int128, int>> PartialChoice::ByBound(int activity, Int128 limit) {
  const Int128 bound = objective();
  const std::vector<std::pair<Int128, int>> priced = ByPrice(activity);
  std::vector<std::pair<Int128, int>> bounded;
  for (const auto& [price, knob] : priced) {
    // The difference in price is a bound on what this knob costs more.
    if (bound + (price - priced.front().first) >= limit) break;
    Fix(activity, knob);
    if (Optimise(limit - 1)) bounded.emplace_back(objective(), knob);
  }
  std::stable_sort(bounded.begin(), bounded.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return bounded;
}

bool PartialChoice::IsBetween(int activity) const {
  return program_.Duration(activity) < network_.CurveOf(activity).lengths[program_.Level(activity)];
}

std::vector<int> PartialChoice::Neighbours(int activity) const {
  const std::vector<int>& knobs = space_.knobs[activity];
  const int within = SlowestWithin(activity);
  std::vector<int> result = {knobs[within]};
  const bool exact = OptionOf(activity, knobs[within]).length == program_.Duration(activity);
  if (!exact && within + 1 < static_cast<int>(knobs.size())) result.push_back(knobs[within + 1]);
  return result;
}

DiveStyle StyleOfDive(int dive, std::mt19937* random) {
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
      return {.order = static_cast<DiveStyle::Order>((*random)() % 3),
              .backward = (*random)() % 2 == 0,
              .candidates = static_cast<int>((*random)() % 7),
              .look_ahead = (*random)() % 4 != 0,
              .disorder = static_cast<int>((*random)() % 5)};
  }
}

ActivityOrder::ActivityOrder(const SearchSpace& space, const frontier::DeadlineProgram& program)
    : previous_(space.knobs.size(), -1),
      rank_(space.knobs.size(), -1),
      by_start_(space.knobs.size()) {
  std::vector<std::int64_t> start(space.knobs.size());
  for (std::size_t g = 0; g < space.knobs.size(); ++g) {
    start[g] = program.StartTime(static_cast<int>(g));
    if (space.next[g] >= 0) previous_[space.next[g]] = static_cast<int>(g);
  }
  // Activities that follow one another run on one rank.
  int ranks = 0;
  for (std::size_t g = 0; g < space.knobs.size(); ++g) {
    if (previous_[g] >= 0) continue;
    for (int h = static_cast<int>(g); h >= 0 && rank_[h] < 0; h = space.next[h]) {
      rank_[h] = ranks;
    }
    ++ranks;
  }
  std::iota(by_start_.begin(), by_start_.end(), 0);
  std::stable_sort(by_start_.begin(), by_start_.end(),
                   [&](int a, int b) { return start[a] < start[b]; });
}

std::vector<int> ActivityOrder::OfDive(const DiveStyle& style, std::mt19937* random) const {
  std::vector<int> order = by_start_;
  if (style.order != DiveStyle::Order::kByTime) {
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return style.order == DiveStyle::Order::kRankByRank ? rank_[a] < rank_[b]
                                                          : rank_[a] > rank_[b];
    });
  }
  if (style.backward) std::reverse(order.begin(), order.end());
  if (style.disorder == 0) return order;
  std::vector<std::pair<std::uint32_t, int>> places;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const auto shift = (*random)() % static_cast<std::uint32_t>(2 * style.disorder + 1);
    places.emplace_back(static_cast<std::uint32_t>(2 * k) + shift, order[k]);
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = places[k].second;
  return order;
}

using frontier::Int128;
using frontier::kNoLimit;

// The activity of the same rank that comes next in the direction of the dive.
int Dive::Following(int activity) const {
  return style_.backward ? order_.Previous(activity) : space_.next[activity];
}

// The least bound over the ways to round the next activity of the rank.
Int128 Dive::LookAhead(int activity, Int128 limit) {
  if (activity < 0 || !program_.IsFree(activity)) return program_.objective();
  const std::vector<int> knobs = program_.Neighbours(activity);
  if (knobs.size() == 1) return program_.objective();
  Int128 best = kNoLimit;
  for (const int knob : knobs) {
    program_.Fix(activity, knob);
    if (program_.Optimise(std::min(best, limit))) best = program_.objective();
  }
  program_.Release(activity);
  program_.Optimise(kNoLimit);
  return best;
}

// Fixes an activity to the best knob found whose bound is within `limit`.
bool Dive::ChooseKnob(int activity, Int128 limit) {
  std::vector<int> candidates = program_.Neighbours(activity);
  const std::size_t neighbours = candidates.size();
  for (const auto& [price, knob] : program_.ByPrice(activity)) {
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
    program_.Fix(activity, candidates[k]);
    if (!program_.Optimise(std::min(limit, best))) continue;
    const Int128 now = program_.objective();
    const Int128 ahead =
        style_.look_ahead ? LookAhead(Following(activity), std::min(limit, best)) : now;
    if (ahead < best || (ahead == best && now < best_now) || best_knob < 0) {
      best = ahead;
      best_now = now;
      best_knob = candidates[k];
    }
  }
  if (best_knob < 0) return false;
  program_.Fix(activity, best_knob);
  return program_.Optimise(limit);
}

Dive::Outcome Dive::Run(std::span<const int> activities, Int128 limit, std::int64_t work_limit) {
  for (const int activity : activities) {
    if (program_.work() > work_limit) return Outcome::kOutOfWork;
    if (!ChooseKnob(activity, limit)) return Outcome::kStuck;
  }
  return Outcome::kDone;
}

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
// The rest of a first dive that the work limit ends (very large pipelines) is rounded to the
// slowest options within the planned durations: always feasible.

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
