// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/window_replay.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace perseus::robust {

bool WindowReplay::Suits(const CostedPipeline& pipeline, const ClockSwitching& switching,
                         const Samples& samples) {
  if (!(switching.latency_seconds > 0)) return true;
  if (switching.call_ahead == CallAhead::kEnd) return false;
  double shortest = 1e300;
  for (const CostTable& table : pipeline.tables) {
    for (const CostOption& option : table.all_options) {
      shortest = std::min(shortest, option.time_seconds);
    }
  }
  const double least = *std::min_element(samples.time.begin(), samples.time.end());
  return shortest * least > switching.latency_seconds;
}

WindowReplay::WindowReplay(const CostedPipeline& pipeline, const ClockSwitching& switching,
                           const Samples& samples)
    : pipeline_(pipeline),
      switching_(switching),
      samples_(samples),
      lanes_(samples.lanes),
      size_(pipeline.dag.size()),
      options_(pipeline) {
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
  // By their starts at the baseline's clocks: a topological order, too.
  std::vector<double> seconds(size_);
  for (int i = 0; i < size_; ++i) seconds[i] = pipeline.TableOf(i).baseline.time_seconds;
  const Timing timing = Replay(dag, seconds);
  order_.resize(size_);
  std::iota(order_.begin(), order_.end(), 0);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return timing.start_seconds[a] < timing.start_seconds[b]; });
  place_.resize(size_);
  for (int place = 0; place < size_; ++place) place_[order_[place]] = place;
  first_before_.assign(size_ + 1, 0);
  first_after_.assign(size_ + 1, 0);
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
  row_.resize(size_);
  for (int place = 0; place < size_; ++place) row_[place] = 2 * place;
  ends_.assign((static_cast<std::size_t>(2) * size_ + 1) * lanes_, 0.0);
  tails_.assign((static_cast<std::size_t>(size_) + 1) * lanes_, 0.0);
  length_.resize(size_);
  joules_.assign(size_, 0.0);
  share_.assign(size_, 0.0);
  marked_.assign(size_, 0);
  touched_.assign(size_, 0);

  // Arcs that lead from before a cut to behind it; what begins behind it by itself, and
  // what nothing follows before it, count from the row of zeros.
  constexpr std::int64_t kMostArcs = 1 << 22;
  const std::int64_t about = static_cast<std::int64_t>(size_) * 3 * (dag.num_ranks + 1);
  stride_ = static_cast<int>(about / kMostArcs) + 1;
  std::vector<CutArc> crossing;
  for (int place = 0; place < size_; ++place) {
    const bool alone = first_before_[place] == first_before_[place + 1];
    const double delay = dag.start_delay_seconds[order_[place]];
    if (alone || delay > 0) crossing.push_back({-1, place, delay});
  }
  for (int place = 0; place < size_; ++place) {
    std::erase_if(crossing, [&](const CutArc& arc) { return arc.to == place; });
    for (int k = first_after_[place]; k < first_after_[place + 1]; ++k) {
      crossing.push_back({place, after_[k].place, after_[k].delay});
    }
    if (first_after_[place] == first_after_[place + 1]) crossing.push_back({place, size_, 0});
    if (place + 1 < size_ && (place + 1) % stride_ != 0) continue;
    first_cut_.push_back(static_cast<int>(cuts_.size()));
    cuts_.insert(cuts_.end(), crossing.begin(), crossing.end());
  }
  first_cut_.push_back(static_cast<int>(cuts_.size()));
}

int WindowReplay::LastBefore(int cut) const { return std::min(size_, (cut + 1) * stride_) - 1; }

// The length of a computation and its energy, at its knob after the one before.
double WindowReplay::Set(int i) {
  const int before = knobs_[previous_[i]];
  const int knob = knobs_[i];
  const OptionTable::Option& option = options_.Of(i, knob);
  Length length = {option.seconds, 0};
  double joules = option.effective_joules * samples_.weight[i];
  if (knob != before) {
    length.added = switching_.stall_seconds;
    if (switching_.call_ahead == CallAhead::kNone && switching_.latency_seconds > 0) {
      const OptionTable::Option& old = options_.Of(i, before);
      const double share = switching_.latency_seconds / old.seconds;
      length.added += switching_.latency_seconds - share * option.seconds;
      joules += share * (old.effective_joules - option.effective_joules) *
                rank_energy_[pipeline_.dag.computations[i].rank];
    }
  }
  length_[place_[i]] = length;
  return joules;
}

template <int kBlock>
bool WindowReplay::RunHead(int place, double* to, const double* held) {
  const int i = order_[place];
  const double* const factor = samples_.TimeOf(i);
  const Length length = length_[place];
  const double earliest = pipeline_.dag.start_delay_seconds[i];
  const int begin = first_before_[place];
  const int end = first_before_[place + 1];
  double differs = 0;
  for (int block = 0; block < lanes_; block += kBlock) {
    double ready[kBlock];
    for (int s = 0; s < kBlock; ++s) ready[s] = earliest;
    for (int k = begin; k < end; ++k) {
      const double* const from = Row(row_[before_[k].place]) + block;
      const double delay = before_[k].delay;
      for (int s = 0; s < kBlock; ++s) {
        const double at = from[s] + delay;
        ready[s] = at > ready[s] ? at : ready[s];
      }
    }
    for (int s = 0; s < kBlock; ++s) {
      const double at = ready[s] + (length.seconds * factor[block + s] + length.added);
      const double difference = std::abs(held[block + s] - at);
      differs = difference > differs ? difference : differs;
      to[block + s] = at;
    }
  }
  return differs > 0;
}

template <int kBlock>
void WindowReplay::RunTail(int place) {
  const double* const factor = samples_.TimeOf(order_[place]);
  const Length length = length_[place];
  const int begin = first_after_[place];
  const int end = first_after_[place + 1];
  double* const to = tails_.data() + static_cast<std::size_t>(place) * lanes_;
  for (int block = 0; block < lanes_; block += kBlock) {
    double rest[kBlock] = {};
    for (int k = begin; k < end; ++k) {
      const double* const from = Tail(after_[k].place) + block;
      const double delay = after_[k].delay;
      for (int s = 0; s < kBlock; ++s) {
        const double at = from[s] + delay;
        rest[s] = at > rest[s] ? at : rest[s];
      }
    }
    for (int s = 0; s < kBlock; ++s) {
      to[block + s] = rest[s] + (length.seconds * factor[block + s] + length.added);
    }
  }
}

// Runs a computation of the trial into its other row; returns whether it differs.
bool WindowReplay::Head(int place) {
  double* const held = Row(row_[place]);
  double* const to = Row(row_[place] ^ 1);
  return lanes_ % 8 == 0 ? RunHead<8>(place, to, held) : RunHead<1>(place, to, held);
}

void WindowReplay::EnsureHeads(int end) {
  if (heads_end_ >= end) return;
  work_ += static_cast<std::int64_t>(end - heads_end_) * (lanes_ + 4);
  for (int place = heads_end_; place < end; ++place) {
    double* const row = Row(row_[place]);
    lanes_ % 8 == 0 ? RunHead<8>(place, row, row) : RunHead<1>(place, row, row);
  }
  heads_end_ = end;
}

void WindowReplay::EnsureTails(int begin) {
  if (tails_begin_ <= begin) return;
  work_ += static_cast<std::int64_t>(tails_begin_ - begin) * (lanes_ + 4);
  for (int place = tails_begin_ - 1; place >= begin; --place) {
    lanes_ % 8 == 0 ? RunTail<8>(place) : RunTail<1>(place);
  }
  tails_begin_ = begin;
}

// The mean over jobs of the longest paths across a cut.
template <int kBlock>
double WindowReplay::CutSeconds(int cut) {
  const int begin = first_cut_[cut];
  const int end = first_cut_[cut + 1];
  work_ += static_cast<std::int64_t>(end - begin) * (lanes_ + 4) / 2;
  double sum = 0;
  double job = 0;
  int left = samples_.pipelines;
  const int zeros = 2 * size_;
  for (int block = 0; block < lanes_; block += kBlock) {
    double most[kBlock] = {};
    for (int k = begin; k < end; ++k) {
      const CutArc& arc = cuts_[k];
      const double* const from = Row(arc.from < 0 ? zeros : row_[arc.from]) + block;
      const double* const to = Tail(arc.to) + block;
      const double delay = arc.delay;
      for (int s = 0; s < kBlock; ++s) {
        const double at = from[s] + delay + to[s];
        most[s] = at > most[s] ? at : most[s];
      }
    }
    for (int s = 0; s < kBlock; ++s) {
      job = most[s] > job ? most[s] : job;
      if (--left > 0) continue;
      sum += job;
      job = 0;
      left = samples_.pipelines;
    }
  }
  return sum * samples_.pipelines / lanes_ + pipeline_.dag.end_delay_seconds;
}

void WindowReplay::Reset(std::span<const int> knobs) {
  Discard();
  knobs_.assign(knobs.begin(), knobs.end());
  figures_ = {};
  for (int i = 0; i < size_; ++i) {
    joules_[place_[i]] = Set(i);
    figures_.effective_joules += joules_[place_[i]];
    if (knobs_[i] != knobs_[previous_[i]]) ++figures_.changes;
  }
  heads_end_ = 0;
  tails_begin_ = size_;
  EnsureHeads(size_);
  const int cut = CutOf(size_ - 1);
  figures_.seconds = lanes_ % 8 == 0 ? CutSeconds<8>(cut) : CutSeconds<1>(cut);
}

WindowReplay::Cost WindowReplay::Begin(std::span<const KnobChange> changes) {
  Discard();
  has_trial_ = true;
  const auto mark = [&](int i) {
    const int place = place_[i];
    if (marked_[place] != 0) return;
    marked_[place] = 1;
    undo_.push_back({place, length_[place], joules_[place]});
  };
  const bool after = switching_.stall_seconds > 0 ||
                     (switching_.call_ahead == CallAhead::kNone && switching_.latency_seconds > 0);
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
    if (after) mark(next_[i]);
  }
  first_ = size_;
  last_ = -1;
  for (const Undo& undo : undo_) {
    const int place = undo.place;
    joules_[place] = Set(order_[place]);
    cost.effective_joules += joules_[place] - undo.joules;
    const double longer = length_[place].seconds - undo.length.seconds;
    const double added = length_[place].added - undo.length.added;
    if (longer == 0 && added == 0) {
      marked_[place] = 0;
      continue;
    }
    cost.seconds += share_[place] * (longer + added);
    first_ = std::min(first_, place);
    last_ = std::max(last_, place);
  }
  tried_ = figures_;
  tried_.effective_joules += cost.effective_joules;
  tried_.changes += cost.changes;
  return cost;
}

double WindowReplay::Seconds() {
  if (last_ < 0) return tried_.seconds;
  const int cut = CutOf(last_);
  const int end = LastBefore(cut) + 1;
  // With the lengths of before.
  for (Undo& undo : undo_) std::swap(length_[undo.place], undo.length);
  EnsureHeads(end);
  EnsureTails(end);
  for (Undo& undo : undo_) std::swap(length_[undo.place], undo.length);
  int run = 0;
  for (int place = first_; place < end; ++place) {
    bool runs = marked_[place] != 0;
    for (int k = first_before_[place]; !runs && k < first_before_[place + 1]; ++k) {
      runs = touched_[before_[k].place] != 0;
    }
    if (!runs) continue;
    ++run;
    if (!Head(place)) continue;
    row_[place] ^= 1;
    touched_[place] = 1;
    touched_list_.push_back(place);
  }
  work_ += static_cast<std::int64_t>(run) * (lanes_ + 4) + (end - first_);
  tried_.seconds = lanes_ % 8 == 0 ? CutSeconds<8>(cut) : CutSeconds<1>(cut);
  return tried_.seconds;
}

void WindowReplay::Commit() {
  if (last_ >= 0) {
    const int end = LastBefore(CutOf(last_)) + 1;
    heads_end_ = end;
    tails_begin_ = end;
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
  const int jobs = lanes_ / samples_.pipelines;
  const auto end_of = [&](int place, int lane) { return Row(row_[place])[lane]; };
  for (int job = 0; job < jobs; ++job) {
    int at = -1;
    int lane = 0;
    double last = -1;
    for (int p = job * samples_.pipelines; p < (job + 1) * samples_.pipelines; ++p) {
      for (const std::vector<int>& order : pipeline_.dag.rank_order) {
        if (order.empty()) continue;
        const int place = place_[order.back()];
        if (end_of(place, p) <= last) continue;
        last = end_of(place, p);
        at = place;
        lane = p;
      }
    }
    while (at >= 0) {
      share_[at] += samples_.TimeOf(order_[at])[lane] / jobs;
      int from = -1;
      double latest = pipeline_.dag.start_delay_seconds[order_[at]];
      for (int k = first_before_[at]; k < first_before_[at + 1]; ++k) {
        const double end = end_of(before_[k].place, lane) + before_[k].delay;
        if (end <= latest) continue;
        latest = end;
        from = before_[k].place;
      }
      at = from;
    }
  }
}

}  // namespace perseus::robust
