// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/clock_search.h"

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
  const double price = prices_.of_time() + waiting_watts_;
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
  prices_.Begin(goal);
  waiting_watts_ = goal.waiting_watts;
  change_joules_ = goal.change_joules + prices_.of_change();
  Chosen best;
  best.Offer(goal, *replay_);
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
    prices_.Adapt(goal, now, share, goal.price_of_time * 1e-2, goal.price_of_time * 1e2);
    change_joules_ = goal.change_joules + prices_.of_change();
    const LaneFigures& tried = replay_->Try(together);
    work_ += replay_work;
    const double costs = goal.Joules(tried) - goal.Joules(now) +
                         prices_.of_time() * (tried.seconds - now.seconds) +
                         prices_.of_change() * (tried.changes - now.changes);
    if (costs <= allowance) {
      replay_->Commit();
      best.Offer(goal, *replay_);
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
