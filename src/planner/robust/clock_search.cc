// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/clock_search.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace perseus::robust {
namespace {

constexpr auto kMoveTypes = static_cast<std::size_t>(kNumComputationTypes);

}  // namespace

ClockMoves::ClockMoves(const CostedPipeline& pipeline, Stream* stream)
    : pipeline_(pipeline), stream_(*stream) {
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
  alike_.resize(static_cast<std::size_t>(dag.num_ranks) * kMoveTypes);
  number_.resize(dag.size());
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    for (const int i : dag.rank_order[rank]) {
      const auto type = static_cast<std::size_t>(dag.computations[i].id.type);
      std::vector<int>& alike = alike_[rank * kMoveTypes + type];
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
int ClockMoves::StepFrom(int rank, int knob) {
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

void ClockMoves::Add(int i, int knob) {
  const std::size_t table = pipeline_.table_of[i];
  if ((*knobs_)[i] == knob || proposed_in_[i] == proposals_) return;
  proposed_in_[i] = proposals_;
  if (has_option_[table * pipeline_.knobs.size() + knob] != 0) proposal_.push_back({i, knob});
}

// The computation of the same type on another rank: as many in order, and `slant` more for
// each rank between.
int ClockMoves::Beside(int computation, int rank, int slant) const {
  const Computation& own = pipeline_.dag.computations[computation];
  const std::vector<int>& alike = alike_[rank * kMoveTypes + static_cast<std::size_t>(own.id.type)];
  const int at = number_[computation] + slant * (rank - own.rank);
  return at < 0 || at >= static_cast<int>(alike.size()) ? -1 : alike[at];
}

// The same on ranks beside it at the same time: what runs at the same time is on no common
// path, so that time is lost once for all of them.
void ClockMoves::Widen(int rank) {
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
      const int by = change.knob - (*knobs_)[change.computation];
      Add(i, offset ? std::clamp((*knobs_)[i] + by, 0, most) : change.knob);
    }
  }
}

// A stretch gets the clocks that a rank beside it has at the same time.
void ClockMoves::ProposeCopy(int computation) {
  const PipelineDag& dag = pipeline_.dag;
  const int rank = dag.computations[computation].rank;
  const std::vector<int>& order = dag.rank_order[rank];
  const std::uint64_t bits = stream_.Next();
  const int from = rank + ((bits & 1) != 0 ? 1 : -1);
  if (from < 0 || from >= dag.num_ranks || dag.rank_order[from].empty()) return;
  const int size = static_cast<int>(order.size());
  const int slant = static_cast<int>((bits >> 16) % 3) - 1;
  const int begin = dag.computations[computation].position;
  const int length = 2 << ((bits >> 8) % 7);
  for (int k = begin; k < std::min(size, begin + length); ++k) {
    const int i = Beside(order[k], from, slant);
    if (i >= 0) Add(order[k], (*knobs_)[i]);
  }
}

std::span<const KnobChange> ClockMoves::Propose(const std::vector<int>& knobs, int computation) {
  proposal_.clear();
  ++proposals_;
  knobs_ = &knobs;
  const std::uint64_t bits = stream_.Next();
  if ((bits & 15) == 0) {
    ProposeCopy(computation);
    return proposal_;
  }
  ProposeOnRank(computation);
  if ((bits & 16) != 0) Widen(pipeline_.dag.computations[computation].rank);
  return proposal_;
}

std::span<const KnobChange> ClockMoves::ProposeRepeat(const std::vector<int>& knobs,
                                                      std::span<const int> stretch) {
  proposal_.clear();
  ++proposals_;
  knobs_ = &knobs;
  constexpr int kFar = 24;
  const int far = 1 + stream_.Below(kFar);
  const int shift = (stream_.Next() & 1) != 0 ? far : -far;
  for (const int i : stretch) {
    const Computation& own = pipeline_.dag.computations[i];
    const std::vector<int>& alike =
        alike_[own.rank * kMoveTypes + static_cast<std::size_t>(own.id.type)];
    const int at = number_[i] + shift;
    if (at >= 0 && at < static_cast<int>(alike.size())) Add(i, knobs[alike[at]]);
  }
  return proposal_;
}

void ClockMoves::ProposeOnRank(int computation) {
  const PipelineDag& dag = pipeline_.dag;
  const int rank = dag.computations[computation].rank;
  const std::vector<int>& knobs = *knobs_;
  const std::vector<int>& order = dag.rank_order[rank];
  const int size = static_cast<int>(order.size());
  const int at = dag.computations[computation].position;
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

// The cost of the proposal at the criticality that was seen last. Iteration time is convex in the
// durations: it costs no less than this, but for changes since.
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

namespace {

constexpr int kMoveWork = 30;             // Of a move that is not replayed.
constexpr double kPlacesPerMove = 0.125;  // By which the sweep goes on.
constexpr int kWindow = 128;              // Places around it where a move may begin.
constexpr int kRepeatEvery = 64;          // Moves, of which one repeats a stretch,
constexpr int kLongestRepeat = 32;        // of so many computations of each rank.
constexpr int kRefreshEvery = 24;         // Adaptions of the prices.
// The price of time beyond the accepted one, as a factor. Where energy falls nearly evenly with
// time, no price makes the iteration just as long as accepted.
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
