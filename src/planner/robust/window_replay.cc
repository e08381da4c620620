// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/window_replay.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "robust/lane_replay.h"
#include "switching/clock_replay.h"

namespace perseus::robust {
namespace {

// The computations by their starts at the baseline's clocks.
std::vector<int> ByStart(const CostedPipeline& pipeline) {
  const PipelineDag& dag = pipeline.dag;
  std::vector<double> seconds(dag.size());
  for (int i = 0; i < dag.size(); ++i) seconds[i] = pipeline.TableOf(i).baseline.time_seconds;
  const Timing timing = Replay(dag, seconds);
  std::vector<int> order(dag.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return timing.start_seconds[a] < timing.start_seconds[b]; });
  return order;
}

bool BeginsByItself(const PipelineDag& dag, int i) {
  return dag.first_precedence[i] == dag.first_precedence[i + 1] || dag.start_delay_seconds[i] > 0;
}

// [place]: how many arcs lead across the cut behind it, counted without listing them.
std::vector<std::int64_t> CountAcrossCuts(const PipelineDag& dag, const std::vector<int>& order) {
  const int size = dag.size();
  std::vector<int> place(size);
  for (int k = 0; k < size; ++k) place[order[k]] = k;
  std::vector<std::int64_t> across(size, 0);  // What begins at a place, less what ends there.
  std::vector<char> is_followed(size, 0);
  for (const Precedence& precedence : dag.precedences) {
    ++across[place[precedence.from]];
    --across[place[precedence.to]];
    is_followed[precedence.from] = 1;
  }
  std::int64_t sum = 0;
  for (int i = 0; i < size; ++i) {
    if (BeginsByItself(dag, i)) {
      ++sum;
      --across[place[i]];
    }
    if (is_followed[i] == 0) ++across[place[i]];
  }
  for (std::int64_t& count : across) count = sum += count;
  return across;
}

}  // namespace

std::int64_t TimeOrder::MostAcrossOneCut(const CostedPipeline& pipeline) {
  const std::vector<std::int64_t> across = CountAcrossCuts(pipeline.dag, ByStart(pipeline));
  return across.empty() ? 0 : *std::max_element(across.begin(), across.end());
}

TimeOrder::TimeOrder(const CostedPipeline& pipeline, std::int64_t most_cut_arcs)
    : order_(ByStart(pipeline)) {
  const PipelineDag& dag = pipeline.dag;
  place_.resize(dag.size());
  for (int place = 0; place < dag.size(); ++place) place_[order_[place]] = place;
  first_before_.assign(dag.size() + 1, 0);
  first_after_.assign(dag.size() + 1, 0);
  for (const Precedence& precedence : dag.precedences) {
    ++first_before_[place_[precedence.to] + 1];
    ++first_after_[place_[precedence.from] + 1];
  }
  std::partial_sum(first_before_.begin(), first_before_.end(), first_before_.begin());
  std::partial_sum(first_after_.begin(), first_after_.end(), first_after_.begin());
  before_.resize(dag.precedences.size());
  after_.resize(dag.precedences.size());
  std::vector<int> to_next = first_before_;
  std::vector<int> from_next = first_after_;
  for (const Precedence& precedence : dag.precedences) {
    const int from = place_[precedence.from];
    const int to = place_[precedence.to];
    before_[to_next[to]++] = {from, precedence.delay_seconds};
    after_[from_next[from]++] = {to, precedence.delay_seconds};
  }
  MakeCuts(dag, most_cut_arcs);
}

void TimeOrder::MakeCuts(const PipelineDag& dag, std::int64_t most_arcs) {
  const std::vector<std::int64_t> across = CountAcrossCuts(dag, order_);
  const auto listed = [&] {
    std::int64_t sum = 0;
    for (int place = 0; place < size(); place = EndOfCutBehind(place)) {
      sum += across[EndOfCutBehind(place) - 1];
    }
    return sum;
  };
  while (listed() > most_arcs && stride_ < size()) stride_ = std::min(2 * stride_, size());
  cuts_.reserve(listed());
  std::vector<CutArc> crossing;
  for (int place = 0; place < size(); ++place) {
    const int i = order_[place];
    if (BeginsByItself(dag, i)) crossing.push_back({-1, place, dag.start_delay_seconds[i]});
  }
  for (int place = 0; place < size(); ++place) {
    for (const Arc& arc : After(place)) crossing.push_back({place, arc.place, arc.delay_seconds});
    if (After(place).empty()) crossing.push_back({place, size(), 0});
    if (place + 1 != EndOfCutBehind(place)) continue;
    std::erase_if(crossing, [&](const CutArc& arc) { return arc.to <= place; });
    first_cut_.push_back(static_cast<std::int64_t>(cuts_.size()));
    cuts_.insert(cuts_.end(), crossing.begin(), crossing.end());
  }
  first_cut_.push_back(static_cast<std::int64_t>(cuts_.size()));
}

namespace {

// Of computations x lanes: three rows each are 384 MiB.
constexpr std::int64_t kMostWindowCells = 1 << 24;
// A trial reads all arcs across a cut. Up to this many arcs are always cheap enough; more arcs
// must be few compared to the computations, all of which a LaneReplay would run.
constexpr std::int64_t kMostArcsOfCut = 1 << 12;
constexpr std::int64_t kComputationsPerArc = 16;

}  // namespace

bool WindowReplay::Suits(const CostedPipeline& pipeline, const ClockSwitching& switching,
                         const Samples& samples) {
  const std::int64_t size = pipeline.dag.size();
  if (size * samples.lanes > kMostWindowCells) return false;
  const std::int64_t most_arcs = std::max(kMostArcsOfCut, size / kComputationsPerArc);
  if (TimeOrder::MostAcrossOneCut(pipeline) > most_arcs) return false;
  const std::vector<double> latencies = switching::LatenciesOf(switching, pipeline);
  const double most_latency = *std::max_element(latencies.begin(), latencies.end());
  if (!(most_latency > 0)) return true;
  if (switching.call_ahead == CallAhead::kEnd) return false;
  double shortest = 1e300;
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      shortest = std::min(shortest, option.time_seconds);
    }
  }
  const double least = *std::min_element(samples.time.begin(), samples.time.end());
  return shortest * least > most_latency;
}

WindowReplay::WindowReplay(const CostedPipeline& pipeline, const ClockSwitching& switching,
                           const Samples& samples, std::int64_t most_cut_arcs, bool in_fours)
    : pipeline_(pipeline),
      switching_(switching),
      samples_(samples),
      lanes_(samples.lanes),
      in_fours_(in_fours),
      size_(pipeline.dag.size()),
      options_(pipeline),
      order_(pipeline, most_cut_arcs) {
  const PipelineDag& dag = pipeline.dag;
  rank_energy_.assign(dag.num_ranks, 0.0);
  for (int rank = 0; rank < dag.num_ranks; ++rank) {
    for (int lane = 0; lane < lanes_; ++lane) {
      rank_energy_[rank] += samples.EnergyOf(rank)[lane] / lanes_;
    }
  }
  previous_.resize(size_);
  next_.resize(size_);
  for (const std::vector<int>& order : dag.rank_order) {
    for (std::size_t k = 0; k < order.size(); ++k) {
      previous_[order[k]] = order[k == 0 ? order.size() - 1 : k - 1];
      next_[order[k]] = order[k + 1 == order.size() ? 0 : k + 1];
    }
  }
  latencies_ = switching::LatenciesOf(switching, pipeline);
  most_latency_ = *std::max_element(latencies_.begin(), latencies_.end());
  ahead_.assign(size_, switching.call_ahead == CallAhead::kNone ? 0 : most_latency_);
  for (int i = 0; i < size_ && switching.call_ahead != CallAhead::kNone; ++i) {
    if (dag.first_precedence[i] == dag.first_precedence[i + 1]) {
      // No call is ahead of the iteration. What waits for another one starts later than a call.
      ahead_[i] = dag.start_delay_seconds[i] + switching.stall_seconds;
    }
  }
  row_.resize(size_);
  for (int place = 0; place < size_; ++place) row_[place] = 2 * place;
  ends_.assign((static_cast<std::size_t>(2) * size_ + 1) * lanes_, 0.0);
  tails_.assign((static_cast<std::size_t>(size_) + 1) * lanes_, 0.0);
  length_.resize(size_);
  joules_.assign(size_, 0.0);
  share_.assign(size_, 0.0);
  plain_share_.assign(size_, 0.0);
  marked_.assign(size_, 0);
  touched_.assign(size_, 0);
}

// The length of a computation and its energy, at its knob after the one before.
double WindowReplay::Set(int computation) {
  const int i = computation;
  const int before = knobs_[previous_[i]];
  const int knob = knobs_[i];
  const OptionTable::Option& option = options_.Of(i, knob);
  Length length = {option.seconds, 0};
  double joules = option.effective_joules * samples_.weight[i];
  if (knob != before) {
    length.added = switching_.stall_seconds;
    const double wait = latencies_[static_cast<std::size_t>(knob)] - ahead_[i];
    if (wait > 0) {
      const OptionTable::Option& old = options_.OfLate(i, before, knob);
      const double share = wait / old.seconds;
      length.added += wait - share * option.seconds;
      joules += share * (old.effective_joules - option.effective_joules) *
                rank_energy_[pipeline_.dag.computations[i].rank];
    }
  }
  length_[order_.PlaceOf(i)] = length;
  return joules;
}

template <typename Block>
PERSEUS_LANE_LOOP bool WindowReplay::RunHead(int place, double* to, const double* held) {
  using Part = typename Block::Part;
  constexpr int kParts = Block::kParts;
  const int i = order_.order()[place];
  const double* const factors = samples_.TimeOf(i);
  const Length length = length_[place];
  const double earliest = pipeline_.dag.start_delay_seconds[i];
  const std::span<const TimeOrder::Arc> before = order_.Before(place);
  Part differs[kParts] = {};  // In each lane: one for all would make lanes wait in turn.
  for (int block = 0; block < lanes_; block += kBlockLanes<Block>) {
    Part ready[kParts];
    for (int s = 0; s < kParts; ++s) ready[s] = Part{} + earliest;
    for (const TimeOrder::Arc& arc : before) {
      const double* const from = Row(row_[arc.place]) + block;
      const double delay = arc.delay_seconds;
      for (int s = 0; s < kParts; ++s) {
        Part at;
        Load<Block>(from, s, &at);
        at += delay;
        ready[s] = at > ready[s] ? at : ready[s];
      }
    }
    for (int s = 0; s < kParts; ++s) {
      Part factor;
      Part old;
      Load<Block>(factors + block, s, &factor);
      Load<Block>(held + block, s, &old);
      const Part at = ready[s] + (length.seconds * factor + length.added);
      const Part difference = old > at ? old - at : at - old;
      differs[s] = difference > differs[s] ? difference : differs[s];
      Store<Block>(at, s, to + block);
    }
  }
  return AnyAboveZero<Block>(differs);
}

template <typename Block>
PERSEUS_LANE_LOOP void WindowReplay::RunTail(int place) {
  using Part = typename Block::Part;
  constexpr int kParts = Block::kParts;
  const double* const factors = samples_.TimeOf(order_.order()[place]);
  const Length length = length_[place];
  const std::span<const TimeOrder::Arc> after = order_.After(place);
  double* const tail = tails_.data() + static_cast<std::size_t>(place) * lanes_;
  for (int block = 0; block < lanes_; block += kBlockLanes<Block>) {
    Part rest[kParts] = {};
    for (const TimeOrder::Arc& arc : after) {
      const double* const from = Tail(arc.place) + block;
      const double delay = arc.delay_seconds;
      for (int s = 0; s < kParts; ++s) {
        Part at;
        Load<Block>(from, s, &at);
        at += delay;
        rest[s] = at > rest[s] ? at : rest[s];
      }
    }
    for (int s = 0; s < kParts; ++s) {
      Part factor;
      Load<Block>(factors + block, s, &factor);
      Store<Block>(rest[s] + (length.seconds * factor + length.added), s, tail + block);
    }
  }
}

// The mean over jobs of the longest paths across the cut behind a place.
template <typename Block>
PERSEUS_LANE_LOOP double WindowReplay::CutSeconds(int place) {
  using Part = typename Block::Part;
  constexpr int kParts = Block::kParts;
  const std::span<const TimeOrder::CutArc> across = order_.AcrossCutBehind(place);
  work_ += static_cast<std::int64_t>(across.size()) * (lanes_ + 4) / 2;
  group_sums_.assign(samples_.scale.size(), 0.0);
  double job = 0;
  int left = samples_.pipelines;
  const int* group = samples_.group.data();
  const int zeros = 2 * size_;
  for (int block = 0; block < lanes_; block += kBlockLanes<Block>) {
    Part most[kParts] = {};
    for (const TimeOrder::CutArc& arc : across) {
      const double* const from = Row(arc.from < 0 ? zeros : row_[arc.from]) + block;
      const double* const to = Tail(arc.to) + block;
      const double delay = arc.delay_seconds;
      for (int s = 0; s < kParts; ++s) {
        Part begin;
        Part rest;
        Load<Block>(from, s, &begin);
        Load<Block>(to, s, &rest);
        const Part at = begin + delay + rest;
        most[s] = at > most[s] ? at : most[s];
      }
    }
    double lanes[kBlockLanes<Block>];
    for (int s = 0; s < kParts; ++s) Store<Block>(most[s], s, lanes);
    for (const double lane : lanes) {
      job = lane > job ? lane : job;
      if (--left > 0) continue;
      group_sums_[*group++] += job;
      job = 0;
      left = samples_.pipelines;
    }
  }
  const double end_delay = pipeline_.dag.end_delay_seconds;
  return samples_.groups() == 1 ? group_sums_[0] * samples_.pipelines / lanes_ + end_delay
                                : samples_.Seconds(group_sums_, end_delay);
}

PERSEUS_FOUR_WIDE bool WindowReplay::RunHeadInFours(int place, double* to, const double* held) {
  return RunHead<EightInFours>(place, to, held);
}
PERSEUS_FOUR_WIDE void WindowReplay::RunTailInFours(int place) { RunTail<EightInFours>(place); }
PERSEUS_FOUR_WIDE double WindowReplay::CutSecondsInFours(int place) {
  return CutSeconds<EightInFours>(place);
}

bool WindowReplay::RunAnyHead(int place, double* to, const double* held) {
  if (lanes_ % 8 != 0) return RunHead<OneLane>(place, to, held);
  return in_fours_ ? RunHeadInFours(place, to, held) : RunHead<EightInTwos>(place, to, held);
}

void WindowReplay::RunAnyTail(int place) {
  if (lanes_ % 8 != 0) return RunTail<OneLane>(place);
  in_fours_ ? RunTailInFours(place) : RunTail<EightInTwos>(place);
}

double WindowReplay::AnyCutSeconds(int place) {
  if (lanes_ % 8 != 0) return CutSeconds<OneLane>(place);
  return in_fours_ ? CutSecondsInFours(place) : CutSeconds<EightInTwos>(place);
}

// Runs a computation of the trial into its other row; returns whether it differs.
bool WindowReplay::Head(int place) {
  double* const held = Row(row_[place]);
  double* const to = Row(row_[place] ^ 1);
  return RunAnyHead(place, to, held);
}

void WindowReplay::EnsureHeads(int end) {
  if (heads_end_ >= end) return;
  work_ += static_cast<std::int64_t>(end - heads_end_) * (lanes_ + 4);
  for (int place = heads_end_; place < end; ++place) {
    double* const row = Row(row_[place]);
    RunAnyHead(place, row, row);
  }
  heads_end_ = end;
}

void WindowReplay::EnsureTails(int begin) {
  if (tails_begin_ <= begin) return;
  work_ += static_cast<std::int64_t>(tails_begin_ - begin) * (lanes_ + 4);
  for (int place = tails_begin_ - 1; place >= begin; --place) {
    RunAnyTail(place);
  }
  tails_begin_ = begin;
}

void WindowReplay::Reset(std::span<const int> knobs) {
  Discard();
  knobs_.assign(knobs.begin(), knobs.end());
  figures_ = {};
  for (int i = 0; i < size_; ++i) {
    joules_[order_.PlaceOf(i)] = Set(i);
    figures_.effective_joules += joules_[order_.PlaceOf(i)];
    if (knobs_[i] != knobs_[previous_[i]]) ++figures_.changes;
  }
  heads_end_ = 0;
  tails_begin_ = size_;
  EnsureHeads(size_);
  figures_.seconds = AnyCutSeconds(size_ - 1);
}

WindowReplay::Cost WindowReplay::Begin(std::span<const KnobChange> changes) {
  Discard();
  has_trial_ = true;
  is_timed_ = false;
  const auto mark = [&](int i) {
    const int place = order_.PlaceOf(i);
    if (marked_[place] != 0) return;
    marked_[place] = 1;
    undo_.push_back({place, length_[place], joules_[place]});
  };
  Cost cost;
  const auto differs = [&](int i) { return knobs_[i] != knobs_[previous_[i]] ? 1 : 0; };
  for (const KnobChange& change : changes) {
    const int i = change.computation;
    if (knobs_[i] == change.knob) continue;
    cost.changes -= differs(i);
    if (next_[i] != i) cost.changes -= differs(next_[i]);
    undo_knobs_.push_back({i, knobs_[i]});
    knobs_[i] = change.knob;
    cost.changes += differs(i);
    if (next_[i] != i) cost.changes += differs(next_[i]);
    mark(i);
    if (switching_.stall_seconds > 0 || most_latency_ > ahead_[next_[i]]) mark(next_[i]);
  }
  first_ = size_;
  last_ = -1;
  for (const Undo& undo : undo_) {
    const int place = undo.place;
    joules_[place] = Set(order_.order()[place]);
    cost.effective_joules += joules_[place] - undo.joules;
    const double longer = length_[place].seconds - undo.length.seconds;
    const double added = length_[place].added - undo.length.added;
    if (longer == 0 && added == 0) {
      marked_[place] = 0;
      continue;
    }
    cost.seconds += share_[place] * longer + plain_share_[place] * added;
    first_ = std::min(first_, place);
    last_ = std::max(last_, place);
  }
  tried_ = figures_;
  tried_.effective_joules += cost.effective_joules;
  tried_.changes += cost.changes;
  return cost;
}

double WindowReplay::Seconds() {
  // Once: the ends of before are in the rows that a second time would write to.
  if (last_ < 0 || is_timed_) return tried_.seconds;
  is_timed_ = true;
  const int end = order_.EndOfCutBehind(last_);
  // With the lengths of before.
  for (Undo& undo : undo_) std::swap(length_[undo.place], undo.length);
  EnsureHeads(end);
  EnsureTails(end);
  for (Undo& undo : undo_) std::swap(length_[undo.place], undo.length);
  int run = 0;
  for (int place = first_; place < end; ++place) {
    bool runs = marked_[place] != 0;
    for (const TimeOrder::Arc& arc : order_.Before(place)) runs |= touched_[arc.place] != 0;
    if (!runs) continue;
    ++run;
    if (!Head(place)) continue;
    row_[place] ^= 1;
    touched_[place] = 1;
    touched_list_.push_back(place);
  }
  work_ += static_cast<std::int64_t>(run) * (lanes_ + 4) + (end - first_);
  tried_.seconds = AnyCutSeconds(last_);
  return tried_.seconds;
}

void WindowReplay::Commit() {
  if (last_ >= 0) {
    heads_end_ = order_.EndOfCutBehind(last_);
    tails_begin_ = heads_end_;
  }
  for (const Undo& undo : undo_) marked_[undo.place] = 0;
  for (const int place : touched_list_) touched_[place] = 0;
  undo_.clear();
  undo_knobs_.clear();
  touched_list_.clear();
  figures_ = tried_;
  has_trial_ = false;
}

void WindowReplay::Discard() {
  if (!has_trial_) return;
  for (const Undo& undo : undo_) {
    length_[undo.place] = undo.length;
    joules_[undo.place] = undo.joules;
    marked_[undo.place] = 0;
  }
  for (const KnobChange& change : undo_knobs_) knobs_[change.computation] = change.knob;
  for (const int place : touched_list_) {
    row_[place] ^= 1;
    touched_[place] = 0;
  }
  undo_.clear();
  undo_knobs_.clear();
  touched_list_.clear();
  has_trial_ = false;
}

void WindowReplay::Refresh() {
  Discard();
  EnsureHeads(size_);
  work_ += static_cast<std::int64_t>(size_) * (lanes_ + 4) / 4;
  std::fill(share_.begin(), share_.end(), 0.0);
  std::fill(plain_share_.begin(), plain_share_.end(), 0.0);
  const int jobs = lanes_ / samples_.pipelines;
  const auto end_of = [&](int place, int lane) { return Row(row_[place])[lane]; };
  // The last place of each job with its lane, and when it ends.
  std::vector<std::pair<int, int>> ends(jobs);
  std::vector<double> seconds(jobs, -1.0);
  for (int job = 0; job < jobs; ++job) {
    for (int p = job * samples_.pipelines; p < (job + 1) * samples_.pipelines; ++p) {
      for (const std::vector<int>& order : pipeline_.dag.rank_order) {
        if (order.empty()) continue;
        const int place = order_.PlaceOf(order.back());
        if (end_of(place, p) <= seconds[job]) continue;
        seconds[job] = end_of(place, p);
        ends[job] = {place, p};
      }
    }
  }
  const std::vector<double> weights = samples_.PathWeights(seconds);
  for (int job = 0; job < jobs; ++job) {
    int at = ends[job].first;
    const int lane = ends[job].second;
    while (at >= 0) {
      const double weight = weights[job];
      share_[at] += samples_.TimeOf(order_.order()[at])[lane] * weight / jobs;
      plain_share_[at] += weight / jobs;
      int from = -1;
      double latest = pipeline_.dag.start_delay_seconds[order_.order()[at]];
      for (const TimeOrder::Arc& arc : order_.Before(at)) {
        const double end = end_of(arc.place, lane) + arc.delay_seconds;
        if (end <= latest) continue;
        latest = end;
        from = arc.place;
      }
      at = from;
    }
  }
}

}  // namespace perseus::robust
