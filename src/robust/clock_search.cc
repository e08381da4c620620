// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/clock_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace perseus::robust {
ClockSearch::ClockSearch(const CostedPipeline& pipeline, LaneReplay* replay, std::uint64_t seed)
    : pipeline_(pipeline), replay_(replay), stream_(seed), moves_(pipeline, &stream_) {}

// Near any computation of any rank, each rank as often.
void ClockSearch::Propose() {
  const PipelineDag& dag = pipeline_.dag;
  int rank = stream_.Below(dag.num_ranks);
  while (dag.rank_order[rank].empty()) rank = (rank + 1) % dag.num_ranks;
  const std::vector<int>& order = dag.rank_order[rank];
  proposal_ = moves_.Propose(scratch_, order[stream_.Below(static_cast<int>(order.size()))]);
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
  before_proposal_.clear();
  for (const KnobChange& change : proposal_) {
    before_proposal_.push_back(scratch_[change.computation]);
    scratch_[change.computation] = change.knob;
  }
  return cost(1) - now;
}

void ClockSearch::TakeBack() {
  for (std::size_t k = 0; k < proposal_.size(); ++k) {
    scratch_[proposal_[k].computation] = before_proposal_[k];
  }
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
