// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/sweep_search.h"

#include <algorithm>
#include <cmath>
#include <span>

namespace perseus::robust {
namespace {

constexpr int kMoveWork = 30;             // Of a move that is not replayed.
constexpr double kPlacesPerMove = 0.125;  // By which the sweep goes on.
constexpr int kWindow = 128;              // Places around it where a move may begin.
constexpr int kRepeatEvery = 64;          // Moves, of which one repeats a stretch,
constexpr int kLongestRepeat = 32;        // of so many computations of each rank.
constexpr int kRefreshEvery = 24;         // Adaptions of the prices.
// Where energy falls nearly evenly with time there is no price at which the iteration
// takes just as long as accepted: what is beyond that is dearer.
constexpr double kLateFactor = 4;
constexpr double kPriceRange = 10;

}  // namespace

SweepSearch::SweepSearch(const CostedPipeline& pipeline, WindowReplay* replay, std::uint64_t seed)
    : pipeline_(pipeline), replay_(replay), stream_(seed), moves_(pipeline, &stream_) {}

std::span<const KnobChange> SweepSearch::Propose() {
  const int size = pipeline_.dag.size();
  const int window = std::min(size, kWindow);
  centre_ += speed_;
  if (centre_ >= size || centre_ < 0) {
    speed_ = -speed_;
    centre_ += 2 * speed_;
  }
  const int place =
      std::clamp(static_cast<int>(centre_) + stream_.Below(window) - window / 2, 0, size - 1);
  if (stream_.Below(kRepeatEvery) == 0) {
    const int length = pipeline_.dag.num_ranks * (1 + stream_.Below(kLongestRepeat));
    return moves_.ProposeRepeat(
        replay_->knobs(),
        std::span(replay_->order().order()).subspan(place, std::min(size - place, length)));
  }
  return moves_.Propose(replay_->knobs(), replay_->order().order()[place]);
}

Chosen SweepSearch::Anneal(const SearchGoal& goal, const ClockSearch::Schedule& schedule) {
  prices_.Begin(goal);
  Chosen best;
  const auto time_costs = [&](double seconds) {
    const double late = std::max(0.0, seconds - goal.accepted_seconds);
    return (goal.waiting_watts + prices_.of_time()) * seconds +
           (kLateFactor - 1) * prices_.of_time() * late;
  };
  best.Offer(goal, *replay_);
  centre_ = 0;
  speed_ = kPlacesPerMove;
  const std::int64_t begin = replay_->work();
  const std::int64_t between =
      static_cast<std::int64_t>(pipeline_.dag.size()) * (replay_->lanes() + 4) / 2;
  std::int64_t moves_work = 0;
  std::int64_t next = 0;
  double heat = schedule.hot_joules;
  for (int adapted = 0;;) {
    const std::int64_t done = replay_->work() - begin + moves_work;
    if (done >= schedule.work) break;
    if (done >= next) {
      next = done + between;
      const double share = static_cast<double>(done) / static_cast<double>(schedule.work);
      heat = schedule.hot_joules * std::pow(schedule.cold_joules / schedule.hot_joules, share);
      prices_.Adapt(goal, replay_->figures(), share, goal.price_of_time / kPriceRange,
                    goal.price_of_time * kPriceRange);
      if (adapted++ % kRefreshEvery == 0) replay_->Refresh();
    }
    const std::span<const KnobChange> proposal = Propose();
    moves_work += kMoveWork + static_cast<std::int64_t>(proposal.size());
    if (proposal.empty()) continue;
    const double allowed = -heat * std::log(1 - stream_.Share());
    const WindowReplay::Cost cost = replay_->Begin(proposal);
    const LaneFigures& now = replay_->figures();
    if (cost.changes > 0 && now.changes + cost.changes > goal.most_changes) continue;
    const double besides = cost.effective_joules +
                           (prices_.of_change() + goal.change_joules) * cost.changes -
                           time_costs(now.seconds);
    // Most moves cost too much whatever the replay will say.
    if (besides + time_costs(now.seconds + cost.seconds) > allowed) continue;
    if (besides + time_costs(replay_->Seconds()) > allowed) continue;
    replay_->Commit();
    best.Offer(goal, *replay_);
  }
  replay_->Discard();
  return best;
}

}  // namespace perseus::robust
