// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "robust/lane_replay.h"

#include <algorithm>
#include <utility>

#include "switching/clock_replay.h"

namespace perseus::robust {

LaneReplay::LaneReplay(const CostedPipeline& pipeline, const ClockSwitching& switching,
                       const Samples& samples, bool in_fours)
    : pipeline_(pipeline),
      switching_(switching),
      latencies_(switching::LatenciesOf(switching, pipeline)),
      samples_(samples),
      lanes_(samples.lanes),
      in_fours_(in_fours),
      options_(pipeline) {
  const PipelineDag& dag = pipeline.dag;
  previous_.resize(dag.size());
  next_.resize(dag.size());
  first_.assign(dag.size(), false);
  for (const std::vector<int>& order : dag.rank_order) {
    if (order.empty()) continue;
    for (std::size_t k = 0; k < order.size(); ++k) {
      previous_[order[k]] = order[k == 0 ? order.size() - 1 : k - 1];
      next_[order[k]] = order[k + 1 == order.size() ? 0 : k + 1];
    }
    first_[order.front()] = true;
    last_of_rank_.push_back(order.back());
  }
  nodes_.resize(dag.size());
  trial_.resize(dag.size());
  for (int i = 0; i < dag.size(); ++i) {
    nodes_[i].end_row = 4 * i;
    nodes_[i].call_row = 4 * i + 1;
    trial_[i].end_row = 4 * i + 2;
    trial_[i].call_row = 4 * i + 3;
  }
  touched_.assign(dag.size(), 0);
  marked_.assign(dag.size(), 0);
  rows_.assign(static_cast<std::size_t>(4) * dag.size() * lanes_, 0.0);
}

// Fills in the node's energy, times and calls from what is before it; returns
// whether something differs from the node that holds.
template <typename Block>
PERSEUS_LANE_LOOP bool LaneReplay::Run(int i, Node* node) {
  using Part = typename Block::Part;
  constexpr int kParts = Block::kParts;
  const PipelineDag& dag = pipeline_.dag;
  const int knob = knobs_[i];
  const int before = KnobBefore(i);
  const bool changes = knob != before;
  const OptionTable::Option& option = options_.Of(i, knob);
  const int rank = dag.computations[i].rank;
  const double* const factors = samples_.TimeOf(i);
  const double* const energy = samples_.EnergyOf(rank);
  const double stall = changes ? switching_.stall_seconds : 0;
  const double latency = latencies_[static_cast<std::size_t>(knob)];
  // Calls of the last iteration have ended by the first computation of the next.
  const Node* const last = first_[i] ? nullptr : &Now(previous_[i]);
  const bool was_calling = last != nullptr && last->calling;
  const bool late = was_calling || (changes && latency > 0);
  node->old_knob = was_calling && !changes ? last->old_knob : before;
  const OptionTable::Option& old = options_.OfLate(i, node->old_knob, knob);
  const double gain = (old.effective_joules - option.effective_joules) / old.seconds;
  const double share = option.seconds / old.seconds;
  node->effective_joules = option.effective_joules * samples_.weight[i];
  node->calling = false;
  double late_joules = 0;
  // In each lane: one for all would make lanes wait in turn.
  Part differs[kParts] = {};
  Part outlasts[kParts] = {};  // By how much a call outlasts the computation.
  const auto row_at = [this](int row, int block) {
    return rows_.data() + static_cast<std::size_t>(row) * lanes_ + block;
  };
  for (int block = 0; block < lanes_; block += kBlockLanes<Block>) {
    Part ready[kParts];
    Part end[kParts];
    for (int s = 0; s < kParts; ++s) ready[s] = Part{} + dag.start_delay_seconds[i];
    for (int k = dag.first_precedence[i]; k < dag.first_precedence[i + 1]; ++k) {
      const Precedence& precedence = dag.precedences[k];
      const double* const from = row_at(Now(precedence.from).end_row, block);
      const double delay = precedence.delay_seconds;
      for (int s = 0; s < kParts; ++s) {
        Part at;
        Load<Block>(from, s, &at);
        at += delay;
        ready[s] = at > ready[s] ? at : ready[s];
      }
    }
    for (int s = 0; s < kParts; ++s) ready[s] += stall;
    if (!late) {
      for (int s = 0; s < kParts; ++s) {
        Part factor;
        Load<Block>(factors + block, s, &factor);
        end[s] = ready[s] + option.seconds * factor;
      }
    } else {
      Part called[kParts] = {};
      if (was_calling) {
        const double* const last_call = row_at(last->call_row, block);
        for (int s = 0; s < kParts; ++s) Load<Block>(last_call, s, &called[s]);
      }
      if (changes) {
        Part ask[kParts] = {};
        if (switching_.call_ahead == CallAhead::kNone) {
          for (int s = 0; s < kParts; ++s) ask[s] = ready[s];
        } else if (switching_.call_ahead == CallAhead::kPredicted) {
          for (int s = 0; s < kParts; ++s) ask[s] = ready[s] - latency;
        } else if (last != nullptr) {
          const double* const last_end = row_at(last->end_row, block);
          for (int s = 0; s < kParts; ++s) Load<Block>(last_end, s, &ask[s]);
        }
        for (int s = 0; s < kParts; ++s) {
          called[s] = (called[s] > ask[s] ? called[s] : ask[s]) + latency;
        }
      }
      double joules[kBlockLanes<Block>];
      for (int s = 0; s < kParts; ++s) {
        Part factor;
        Part of_rank;
        Load<Block>(factors + block, s, &factor);
        Load<Block>(energy + block, s, &of_rank);
        Part wait = called[s] - ready[s];
        wait = wait > Part{} ? wait : Part{};
        const Part at_old = old.seconds * factor;
        wait = wait < at_old ? wait : at_old;
        end[s] = ready[s] + wait + (at_old - wait) * share;
        const Part outlasting = called[s] - end[s];
        outlasts[s] = outlasting > outlasts[s] ? outlasting : outlasts[s];
        Store<Block>(wait * of_rank, s, joules);
        Store<Block>(called[s], s, row_at(node->call_row, block));
      }
      for (const double of_lane : joules) late_joules += of_lane;
    }
    double* const row = row_at(node->end_row, block);
    const double* const old_row = row_at(nodes_[i].end_row, block);
    for (int s = 0; s < kParts; ++s) {
      Part held;
      Load<Block>(old_row, s, &held);
      const Part difference = held > end[s] ? held - end[s] : end[s] - held;
      differs[s] = difference > differs[s] ? difference : differs[s];
      Store<Block>(end[s], s, row);
    }
  }
  if (late) {
    node->effective_joules += gain * late_joules / lanes_;
    node->calling = AnyAboveZero<Block>(outlasts);
  }
  return AnyAboveZero<Block>(differs);
}

PERSEUS_FOUR_WIDE bool LaneReplay::RunInFours(int computation, Node* node) {
  return Run<EightInFours>(computation, node);
}

bool LaneReplay::RunAny(int computation, Node* node) {
  if (lanes_ % 8 != 0) return Run<OneLane>(computation, node);
  return in_fours_ ? RunInFours(computation, node) : Run<EightInTwos>(computation, node);
}

double LaneReplay::JobSeconds() const {
  const std::vector<double> sums = GroupSums();
  const double end_delay = pipeline_.dag.end_delay_seconds;
  return samples_.groups() == 1 ? sums[0] / samples_.jobs() + end_delay
                                : samples_.Seconds(sums, end_delay);
}

std::vector<double> LaneReplay::GroupSums() const {
  std::vector<double> sums(samples_.scale.size(), 0.0);
  for (int lane = 0; lane < lanes_; lane += samples_.pipelines) {
    double last = 0;
    for (const int i : last_of_rank_) {
      const double* const row =
          rows_.data() + static_cast<std::size_t>(Now(i).end_row) * lanes_ + lane;
      for (int p = 0; p < samples_.pipelines; ++p) last = std::max(last, row[p]);
    }
    sums[samples_.group[lane / samples_.pipelines]] += last;
  }
  return sums;
}

void LaneReplay::Reset(std::span<const int> knobs) {
  Discard();
  knobs_.assign(knobs.begin(), knobs.end());
  figures_ = {};
  for (int i = 0; i < pipeline_.dag.size(); ++i) {
    RunAny(i, &nodes_[i]);
    figures_.effective_joules += nodes_[i].effective_joules;
    if (knobs_[i] != KnobBefore(i)) ++figures_.changes;
  }
  figures_.seconds = JobSeconds();
}

const LaneFigures& LaneReplay::Try(std::span<const KnobChange> changes) {
  Discard();
  tried_ = figures_;
  int first = pipeline_.dag.size();
  const auto mark = [&](int i) {
    if ((marked_[i] & 1) == 0) {
      marked_[i] |= 1;
      if (knobs_[i] != KnobBefore(i)) --tried_.changes;
    }
    first = std::min(first, i);
  };
  for (const KnobChange& change : changes) {
    if (knobs_[change.computation] == change.knob) continue;
    mark(change.computation);
    mark(next_[change.computation]);
  }
  for (const KnobChange& change : changes) {
    undo_.push_back({change.computation, knobs_[change.computation]});
    knobs_[change.computation] = change.knob;
  }
  has_trial_ = true;
  const PipelineDag& dag = pipeline_.dag;
  for (int i = first; i < dag.size(); ++i) {
    if ((marked_[i] & 1) != 0 && knobs_[i] != KnobBefore(i)) ++tried_.changes;
    bool runs = marked_[i] != 0;
    for (int k = dag.first_precedence[i]; !runs && k < dag.first_precedence[i + 1]; ++k) {
      runs = touched_[dag.precedences[k].from] != 0;
    }
    marked_[i] = 0;
    if (!runs) continue;
    Node& node = trial_[i];
    const bool differs = RunAny(i, &node);
    tried_.effective_joules += node.effective_joules - nodes_[i].effective_joules;
    const bool calls = node.calling || nodes_[i].calling;
    if (!differs && !calls && node.effective_joules == nodes_[i].effective_joules) continue;
    touched_[i] = 1;
    touched_list_.push_back(i);
    if (calls && next_[i] > i) marked_[next_[i]] |= 2;
  }
  tried_.seconds = JobSeconds();
  return tried_;
}

void LaneReplay::Commit() {
  for (const int i : touched_list_) {
    std::swap(nodes_[i], trial_[i]);
    touched_[i] = 0;
  }
  touched_list_.clear();
  undo_.clear();
  figures_ = tried_;
  has_trial_ = false;
}

void LaneReplay::Discard() {
  if (!has_trial_) return;
  for (const KnobChange& change : undo_) knobs_[change.computation] = change.knob;
  undo_.clear();
  for (const int i : touched_list_) touched_[i] = 0;
  touched_list_.clear();
  has_trial_ = false;
}

std::vector<double> LaneReplay::Criticality() const {
  const PipelineDag& dag = pipeline_.dag;
  std::vector<double> criticality(dag.size(), 0.0);
  const int jobs = lanes_ / samples_.pipelines;
  const auto end_of = [&](int i, int lane) {
    return rows_[static_cast<std::size_t>(nodes_[i].end_row) * lanes_ + lane];
  };
  // The last computation of each job with its lane, and when it ends.
  std::vector<std::pair<int, int>> ends(jobs);
  std::vector<double> seconds(jobs, -1.0);
  for (int job = 0; job < jobs; ++job) {
    for (int p = job * samples_.pipelines; p < (job + 1) * samples_.pipelines; ++p) {
      for (const int i : last_of_rank_) {
        if (end_of(i, p) > seconds[job]) {
          seconds[job] = end_of(i, p);
          ends[job] = {i, p};
        }
      }
    }
  }
  const std::vector<double> weights = samples_.PathWeights(seconds);
  for (int job = 0; job < jobs; ++job) {
    int at = ends[job].first;
    const int lane = ends[job].second;
    while (at >= 0) {
      criticality[at] += samples_.TimeOf(at)[lane] * weights[job] / jobs;
      int from = -1;
      double latest = dag.start_delay_seconds[at];
      for (int k = dag.first_precedence[at]; k < dag.first_precedence[at + 1]; ++k) {
        const Precedence& precedence = dag.precedences[k];
        const double end = end_of(precedence.from, lane) + precedence.delay_seconds;
        if (end > latest) {
          latest = end;
          from = precedence.from;
        }
      }
      at = from;
    }
  }
  return criticality;
}

}  // namespace perseus::robust
