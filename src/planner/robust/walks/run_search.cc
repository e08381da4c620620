// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/walks/run_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace perseus::robust {

RunSearch::RunSearch(const CostedPipeline& pipeline, const plan::KeptConstraints& kept,
                     LaneReplay* replay, std::uint64_t seed)
    : pipeline_(pipeline), kept_(kept), replay_(replay), stream_(seed) {
  const std::size_t knobs = pipeline.knobs.size();
  has_option_.assign(pipeline.tables.size() * knobs, 0);
  for (std::size_t t = 0; t < pipeline.tables.size(); ++t) {
    std::vector<int>& useful = useful_.emplace_back();
    for (const CostOption& option : pipeline.tables[t].all_options) {
      useful.push_back(option.knob);
      has_option_[t * knobs + option.knob] = 1;
    }
    std::sort(useful.begin(), useful.end());
  }
}

// A knob beside another one, mostly the next.
int RunSearch::StepFrom(int table, int knob, int direction) {
  const std::vector<int>& knobs = useful_[table];
  const int last = static_cast<int>(knobs.size()) - 1;
  const auto at =
      static_cast<int>(std::lower_bound(knobs.begin(), knobs.end(), knob) - knobs.begin());
  const std::uint64_t bits = stream_.Next();
  int step = 1;
  if ((bits & 3) == 0) step = 2;
  if ((bits & 15) == 0) step = 3 + static_cast<int>((bits >> 8) & 7);
  return knobs[std::clamp(at + direction * step, 0, last)];
}

// Nothing where a member has no such knob, since they share it.
void RunSearch::Set(const std::vector<int>& members, int knob) {
  for (const int i : members) {
    if (has_option_[pipeline_.table_of[i] * pipeline_.knobs.size() + knob] == 0) return;
  }
  for (const int i : members) {
    if (knobs_[i] == knob) continue;
    undo_.push_back({i, knobs_[i]});
    knobs_[i] = knob;
    proposal_.push_back({i, knob});
  }
}

void RunSearch::ProposeGroup(int direction) {
  const std::vector<std::vector<int>>& groups = kept_.groups();
  const std::vector<int>& members = groups[stream_.Below(static_cast<int>(groups.size()))];
  for (const KnobChange& change : proposal_) {
    if (change.computation == members.front()) return;
  }
  const int i = members.front();
  Set(members, StepFrom(pipeline_.table_of[i], knobs_[i], direction));
}

RunSearch::Stretch RunSearch::RunAround(int rank, int at) const {
  const std::vector<int>& order = pipeline_.dag.rank_order[rank];
  Stretch run = {rank, at, at + 1};
  while (run.begin > 0 && knobs_[order[run.begin - 1]] == knobs_[order[at]]) --run.begin;
  while (run.end < static_cast<int>(order.size()) && knobs_[order[run.end]] == knobs_[order[at]]) {
    ++run.end;
  }
  return run;
}

// Gives a run another clock, or a part of the run, or moves its border with a neighbour; often on
// the ranks beside it, too, a little earlier or later.
void RunSearch::ProposeStretch() {
  const PipelineDag& dag = pipeline_.dag;
  const int rank = stream_.Below(dag.num_ranks);
  const std::vector<int>& order = dag.rank_order[rank];
  if (order.empty()) return;
  const int size = static_cast<int>(order.size());
  const int at = stream_.Below(size);
  Stretch stretch = RunAround(rank, at);
  const std::uint64_t bits = stream_.Next();
  const int direction = (bits & 1) != 0 ? 1 : -1;
  int knob = StepFrom(pipeline_.table_of[order[at]], knobs_[order[at]], direction);
  const auto kind = static_cast<int>((bits >> 1) & 3);
  if (kind == 1) {
    // The border moves.
    const int by = 1 << ((bits >> 8) % 5);
    if ((bits & 16) != 0) {
      if (stretch.begin == 0) return;
      knob = knobs_[order[stretch.begin - 1]];
      stretch.end = std::min(stretch.end, stretch.begin + by);
    } else {
      if (stretch.end == size) return;
      knob = knobs_[order[stretch.end]];
      stretch.begin = std::max(stretch.begin, stretch.end - by);
    }
  } else if (kind == 2) {
    const int other = stretch.begin + stream_.Below(stretch.end - stretch.begin);
    stretch.begin = std::min(at, other);
    stretch.end = std::max(at, other) + 1;
  }
  const int reach = (bits & 32) != 0 ? 0 : 1 + static_cast<int>((bits >> 12) % 4);
  const int slant = static_cast<int>((bits >> 20) % 5) - 2;
  for (int to = std::max(0, rank - reach); to <= std::min(dag.num_ranks - 1, rank + reach); ++to) {
    const std::vector<int>& there = dag.rank_order[to];
    const int shift = slant * (to - rank);
    std::vector<int> members;
    for (int k = stretch.begin + shift; k < stretch.end + shift; ++k) {
      if (k >= 0 && k < static_cast<int>(there.size())) members.push_back(there[k]);
    }
    Set(members, knob);
  }
}

void RunSearch::Propose() {
  proposal_.clear();
  undo_.clear();
  if (kept_.groups().empty()) {
    ProposeStretch();
    return;
  }
  const std::uint64_t bits = stream_.Next();
  const int direction = (bits & 1) != 0 ? 1 : -1;
  ProposeGroup(direction);
  // What one loses in time another may give.
  if ((bits & 2) != 0) ProposeGroup(-direction);
  if ((bits & 12) == 0) ProposeGroup((bits & 16) != 0 ? 1 : -1);
}

std::vector<int> RunSearch::Anneal(const RunGoal& goal, std::int64_t work, double hot_joules,
                                   double cold_joules) {
  knobs_ = replay_->knobs();
  const auto joules_of = [&](const LaneFigures& figures) {
    return figures.effective_joules +
           goal.waiting_watts * std::max(figures.seconds, goal.least_seconds) +
           goal.change_joules * figures.changes;
  };
  const auto penalty_of = [&](const LaneFigures& figures) {
    return goal.price_of_time * std::max(0.0, figures.seconds - goal.accepted_seconds);
  };
  // Changes beyond the limit: many are never taken, but the way to a better choice may lead
  // through some.
  constexpr double kBeyond = 2.5;
  const auto beyond = [&](const LaneFigures& figures) {
    return kBeyond * std::max(0.0, static_cast<double>(figures.changes - goal.most_changes));
  };
  const auto holds = [&](const LaneFigures& figures) {
    return figures.seconds <= goal.accepted_seconds && figures.changes <= goal.most_changes;
  };
  LaneFigures now = replay_->figures();
  std::vector<int> best;
  double least = std::numeric_limits<double>::infinity();
  if (holds(now)) {
    best = knobs_;
    least = joules_of(now);
  }
  constexpr std::int64_t kShare = 2;  // Of a replay, what comes after a change: half.
  const std::int64_t of_one = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(pipeline_.dag.size()) * (replay_->lanes() + 8) / kShare);
  const std::int64_t moves = std::max<std::int64_t>(1, work / of_one);
  for (std::int64_t move = 0; move < moves; ++move) {
    const double through = static_cast<double>(move) / static_cast<double>(moves);
    const double warmth = hot_joules * std::pow(cold_joules / hot_joules, through);
    Propose();
    if (proposal_.empty()) continue;
    bool taken = false;
    if (kept_.Keep(knobs_)) {
      const LaneFigures then = replay_->Try(proposal_);
      const double worse = joules_of(then) + penalty_of(then) - joules_of(now) - penalty_of(now) +
                           warmth * (beyond(then) - beyond(now));
      taken = worse <= 0 || stream_.Share() < std::exp(-worse / warmth);
      if (taken) {
        replay_->Commit();
        now = then;
        if (holds(now) && joules_of(now) < least) {
          best = knobs_;
          least = joules_of(now);
        }
      } else {
        replay_->Discard();
      }
    }
    if (taken) continue;
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) {
      knobs_[undo->computation] = undo->knob;
    }
  }
  return best;
}

}  // namespace perseus::robust
