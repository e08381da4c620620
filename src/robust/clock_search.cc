// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/clock_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace perseus::robust {
namespace {

constexpr auto kTypes = static_cast<std::size_t>(kNumComputationTypes);

}  // namespace

ClockSearch::ClockSearch(const CostedPipeline& pipeline, LaneReplay* replay, std::uint64_t seed)
    : pipeline_(pipeline), replay_(replay), stream_(seed) {
  const PipelineDag& dag = pipeline.dag;
  useful_.resize(dag.num_ranks);
  for (int i = 0; i < dag.size(); ++i) {
    std::vector<int>& knobs = useful_[dag.computations[i].rank];
    if (knobs.empty()) knobs.push_back(pipeline.TableOf(i).baseline.knob);
    for (const CostOption& option : pipeline.TableOf(i).options) {
      if (std::find(knobs.begin(), knobs.end(), option.knob) == knobs.end()) {
        knobs.push_back(option.knob);
      }
    }
  }
  for (std::vector<int>& knobs : useful_) std::sort(knobs.begin(), knobs.end());
  alike_.resize(static_cast<std::size_t>(dag.num_ranks) * kTypes);
  number_.resize(dag.size());
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    for (const int i : dag.rank_order[rank]) {
      const auto type = static_cast<std::size_t>(dag.computations[i].action.type);
      std::vector<int>& alike = alike_[rank * kTypes + type];
      number_[i] = static_cast<int>(alike.size());
      alike.push_back(i);
    }
  }
  proposed_in_.assign(dag.size(), 0);
  has_option_.assign(pipeline.tables.size() * pipeline.knobs.size(), 0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    for (const CostOption& option : pipeline.tables[t].all_options) {
      has_option_[t * pipeline.knobs.size() + option.knob] = 1;
    }
  }
}

// A knob near another one.
int ClockSearch::StepFrom(int rank, int knob) {
  const std::vector<int>& knobs = useful_[rank];
  const int size = static_cast<int>(knobs.size());
  if (size == 1) return knobs[0];
  const auto at = std::lower_bound(knobs.begin(), knobs.end(), knob) - knobs.begin();
  const std::uint64_t bits = stream_.Next();
  int step = 1;
  if ((bits & 3) == 0) step = 2;
  if ((bits & 15) == 0) step = 3 + static_cast<int>((bits >> 8) & 3);
  const int to = static_cast<int>(at) + ((bits & 64) != 0 ? step : -step);
  return knobs[std::clamp(to, 0, size - 1)];
}

void ClockSearch::Add(int i, int knob) {
  const std::size_t table = pipeline_.table_of[i];
  if (scratch_[i] == knob || proposed_in_[i] == proposals_) return;
  proposed_in_[i] = proposals_;
  if (has_option_[table * pipeline_.knobs.size() + knob] != 0) proposal_.push_back({i, knob});
}

// The computation of the same type on another rank: as many in order, and `slant` more for
// each rank between.
int ClockSearch::Beside(int computation, int rank, int slant) const {
  const Computation& own = pipeline_.dag.computations[computation];
  const std::vector<int>& alike = alike_[rank * kTypes + static_cast<std::size_t>(own.action.type)];
  const int at = number_[computation] + slant * (rank - own.rank);
  return at < 0 || at >= static_cast<int>(alike.size()) ? -1 : alike[at];
}

// The same on ranks beside it at the same time: what runs at the same time is on no common
// path, so that time is lost once for all of them.
void ClockSearch::Widen(int rank) {
  const int ranks = pipeline_.dag.num_ranks;
  const std::size_t own = proposal_.size();
  const std::uint64_t bits = stream_.Next();
  const bool offset = (bits & 1) != 0;
  const int slant = static_cast<int>((bits >> 16) % 3) - 1;
  const int reach = 1 + static_cast<int>((bits >> 8) % static_cast<std::uint64_t>(ranks));
  const int reach_down = (bits & 6) == 0 ? 0 : reach;
  const int reach_up = (bits & 6) == 2 ? 0 : reach;
  for (int to = std::max(0, rank - reach_down); to <= std::min(ranks - 1, rank + reach_up); ++to) {
    if (to == rank || pipeline_.dag.rank_order[to].empty()) continue;
    const int most = static_cast<int>(pipeline_.knobs.size()) - 1;
    for (std::size_t k = 0; k < own; ++k) {
      const KnobChange change = proposal_[k];
      const int i = Beside(change.computation, to, slant);
      if (i < 0) continue;
      const int by = change.knob - scratch_[change.computation];
      Add(i, offset ? std::clamp(scratch_[i] + by, 0, most) : change.knob);
    }
  }
}

// A stretch gets the clocks that a rank beside it has at the same time.
void ClockSearch::ProposeCopy(int rank) {
  const PipelineDag& dag = pipeline_.dag;
  const std::vector<int>& order = dag.rank_order[rank];
  const std::uint64_t bits = stream_.Next();
  const int from = rank + ((bits & 1) != 0 ? 1 : -1);
  if (from < 0 || from >= dag.num_ranks || dag.rank_order[from].empty()) return;
  const int size = static_cast<int>(order.size());
  const int slant = static_cast<int>((bits >> 16) % 3) - 1;
  const int begin = stream_.Below(size);
  const int length = 2 << ((bits >> 8) % 7);
  for (int k = begin; k < std::min(size, begin + length); ++k) {
    const int i = Beside(order[k], from, slant);
    if (i >= 0) Add(order[k], scratch_[i]);
  }
}

void ClockSearch::Propose() {
  proposal_.clear();
  ++proposals_;
  const PipelineDag& dag = pipeline_.dag;
  int rank = stream_.Below(dag.num_ranks);
  while (dag.rank_order[rank].empty()) rank = (rank + 1) % dag.num_ranks;
  const std::uint64_t bits = stream_.Next();
  if ((bits & 15) == 0) {
    ProposeCopy(rank);
    return;
  }
  ProposeOnRank(rank);
  if ((bits & 16) != 0) Widen(rank);
}

void ClockSearch::ProposeOnRank(int rank) {
  const PipelineDag& dag = pipeline_.dag;
  const std::vector<int>& knobs = scratch_;
  const std::vector<int>& order = dag.rank_order[rank];
  const int size = static_cast<int>(order.size());
  const int at = stream_.Below(size);
  const int knob = knobs[order[at]];
  int begin = at;
  int end = at + 1;
  const int kind = stream_.Below(20);
  const auto geometric = [&] {
    int length = 1;
    const std::uint64_t bits = stream_.Next();
    for (int k = 0; k < 6 && ((bits >> k) & 1) != 0; ++k) length *= 2;
    return length + static_cast<int>((bits >> 32) % static_cast<std::uint64_t>(length));
  };
  const auto whole_run = [&] {
    while (begin > 0 && knobs[order[begin - 1]] == knob) --begin;
    while (end < size && knobs[order[end]] == knob) ++end;
  };
  int to = knob;
  if (kind < 3) {  // A run at another clock.
    whole_run();
    to = StepFrom(rank, knob);
  } else if (kind < 6) {  // A run joins one beside it.
    whole_run();
    const bool after = (stream_.Next() & 1) != 0;
    if (after && end < size) {
      to = knobs[order[end]];
    } else if (begin > 0) {
      to = knobs[order[begin - 1]];
    }
  } else if (kind < 11) {  // A border moves.
    whole_run();
    const int length = geometric();
    const bool after = (stream_.Next() & 1) != 0;
    if (after && end < size) {
      to = knobs[order[end]];
      begin = std::max(begin, end - length);
    } else if (!after && begin > 0) {
      to = knobs[order[begin - 1]];
      end = std::min(end, begin + length);
    } else {
      return;
    }
  } else if (kind >= 16) {  // A run moves.
    whole_run();
    const int by = 1 + (stream_.Below(4) == 0 ? stream_.Below(8) : stream_.Below(2));
    if ((stream_.Next() & 1) != 0) {
      if (begin == 0 || end + by > size) return;
      const int behind = knobs[order[begin - 1]];
      for (int k = end; k < end + by; ++k) Add(order[k], knob);
      for (int k = begin; k < std::min(end, begin + by); ++k) Add(order[k], behind);
    } else {
      if (end == size || begin < by) return;
      const int behind = knobs[order[end]];
      for (int k = begin - by; k < begin; ++k) Add(order[k], knob);
      for (int k = std::max(begin, end - by); k < end; ++k) Add(order[k], behind);
    }
    return;
  } else if (kind < 14) {  // A stretch at another clock.
    end = std::min(size, begin + geometric());
    to = StepFrom(rank, knob);
  } else {  // Computations of one kind in a stretch, or all that follow it at one clock.
    end = std::min(size, begin + 2 * geometric());
    to = StepFrom(rank, knob);
    const int table = pipeline_.table_of[order[at]];
    for (int k = begin; k < end; ++k) {
      const int i = order[k];
      if (pipeline_.table_of[i] == table) Add(i, to);
    }
    return;
  }
  for (int k = begin; k < end; ++k) Add(order[k], to);
}

// What the proposal costs at the criticality that was seen last. Iteration time is
// convex in the durations: it costs no less than this, but for what has changed since.
double ClockSearch::FirstOrder() {
  affected_.clear();
  for (const KnobChange& change : proposal_) {
    affected_.push_back(change.computation);
    affected_.push_back(replay_->after(change.computation));
  }
  std::sort(affected_.begin(), affected_.end());
  affected_.erase(std::unique(affected_.begin(), affected_.end()), affected_.end());
  const double price = price_of_time_ + waiting_watts_;
  proposed_changes_ = 0;
  const auto cost = [&](int sign) {
    double sum = 0;
    for (const int i : affected_) {
      const int before = scratch_[replay_->before(i)];
      const LaneReplay::Expected expected = replay_->ExpectedOf(i, before, scratch_[i]);
      sum += expected.effective_joules + price * criticality_[i] * expected.seconds;
      if (before != scratch_[i]) {
        sum += change_joules_;
        proposed_changes_ += sign;
      }
    }
    return sum;
  };
  const double now = cost(-1);
  for (KnobChange& change : proposal_) std::swap(scratch_[change.computation], change.knob);
  return cost(1) - now;
}

void ClockSearch::TakeBack() {
  for (KnobChange& change : proposal_) std::swap(scratch_[change.computation], change.knob);
}

Chosen ClockSearch::Anneal(const SearchGoal& goal, const Schedule& schedule) {
  constexpr int kRefresh = 24;
  constexpr int kMoveWork = 30;
  constexpr int kMostTogether = 24;
  constexpr double kMuch = 0.98;
  constexpr double kLateGain = 3e3;
  constexpr double kSlowGain = 0.001;
  constexpr double kFastGain = 0.02;
  if (price_of_time_ <= 0) price_of_time_ = goal.price_of_time;
  waiting_watts_ = goal.waiting_watts;
  if (price_of_change_ <= 0) price_of_change_ = goal.price_of_change;
  change_joules_ = goal.change_joules + price_of_change_;
  Chosen best;
  const auto joules_of = [&](const LaneFigures& figures) {
    return figures.effective_joules + goal.waiting_watts * figures.seconds +
           goal.change_joules * figures.changes;
  };
  const auto remember = [&](const LaneFigures& figures) {
    if (figures.seconds > goal.accepted_seconds || figures.changes > goal.most_changes) return;
    const double joules = joules_of(figures);
    if (!best.knobs.empty() && joules >= best.joules) return;
    best = {replay_->knobs(), figures, joules};
  };
  remember(replay_->figures());
  scratch_ = replay_->knobs();
  criticality_ = replay_->Criticality();
  int scratch_changes = replay_->figures().changes;
  int batch = 1;     // Moves that are tried together.
  int gathered = 0;  // So far.
  int since_refresh = 0;
  double allowance = 0;  // What they may cost.
  std::vector<KnobChange> together;
  const std::int64_t begin = work_;
  const int size = pipeline_.dag.size();
  const std::int64_t replay_work = static_cast<std::int64_t>(size) * (replay_->lanes() + 4) / 2;
  std::int64_t unreplayed = 0;
  while (work_ - begin < schedule.work) {
    const double share = static_cast<double>(work_ - begin) / static_cast<double>(schedule.work);
    const double heat =
        schedule.hot_joules * std::pow(schedule.cold_joules / schedule.hot_joules, share);
    work_ += kMoveWork;
    unreplayed += kMoveWork;
    Propose();
    work_ += static_cast<std::int64_t>(proposal_.size());
    if (!proposal_.empty()) {
      const double allowed = -heat * std::log(1 - stream_.Share());
      const bool dear = FirstOrder() > allowed;
      const int changes = scratch_changes + proposed_changes_;
      if (dear || (changes > goal.most_changes && proposed_changes_ > 0)) {
        TakeBack();
      } else {
        scratch_changes = changes;
        allowance += allowed;
        ++gathered;
      }
    }
    if (gathered == 0 || (gathered < batch && unreplayed < replay_work)) continue;
    together.clear();
    for (int i = 0; i < size; ++i) {
      if (scratch_[i] != replay_->knobs()[i]) together.push_back({i, scratch_[i]});
    }
    const LaneFigures now = replay_->figures();
    // The price of time follows what is missing, faster and faster.
    const double late = (now.seconds / goal.accepted_seconds - 1) * kLateGain;
    price_of_time_ *= 1 + (kSlowGain + kFastGain * share * share) * std::clamp(late, -1.0, 1.0);
    price_of_time_ =
        std::clamp(price_of_time_, goal.price_of_time * 1e-2, goal.price_of_time * 1e2);
    // So does that of a change what is left of the limit.
    if (goal.price_of_change > 0) {
      const bool many = now.changes > kMuch * goal.most_changes;
      price_of_change_ *= 1 + (many ? 1 : -1) * (kSlowGain + kFastGain * share * share);
      price_of_change_ =
          std::clamp(price_of_change_, goal.price_of_change * 1e-3, goal.price_of_change * 1e2);
      change_joules_ = goal.change_joules + price_of_change_;
    }
    const LaneFigures& tried = replay_->Try(together);
    work_ += replay_work;
    const double costs = joules_of(tried) - joules_of(now) +
                         price_of_time_ * (tried.seconds - now.seconds) +
                         price_of_change_ * (tried.changes - now.changes);
    if (costs <= allowance) {
      replay_->Commit();
      remember(replay_->figures());
      since_refresh += gathered;
      batch = std::min(batch + 1, kMostTogether);
      if (since_refresh >= kRefresh) {
        criticality_ = replay_->Criticality();
        since_refresh = 0;
        work_ += replay_work / 2;
      }
    } else {
      replay_->Discard();
      scratch_ = replay_->knobs();
      batch = std::max(1, batch / 2);
    }
    scratch_changes = replay_->figures().changes;
    gathered = 0;
    allowance = 0;
    unreplayed = 0;
  }
  return best;
}

}  // namespace perseus::robust
