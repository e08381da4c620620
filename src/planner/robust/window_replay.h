// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_WINDOW_REPLAY_H_
#define PERSEUS_ROBUST_WINDOW_REPLAY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "robust/lane_replay.h"
#include "robust/samples.h"

namespace perseus::robust {

// The computations of a pipeline by their starts at the baseline's clocks, which is a
// topological order, too: each has a place in it. What is near in time is near there.
class TimeOrder {
 public:
  // So many arcs across cuts are listed at most, unless one cut has more: 64 MiB.
  static constexpr std::int64_t kMostCutArcs = 1 << 22;

  explicit TimeOrder(const CostedPipeline& pipeline, std::int64_t most_cut_arcs = kMostCutArcs);

  // The most arcs across the cut behind any place. Where a stage is far ahead of the next one
  // (GPipe, and the second stage is slower), about as many as there are microbatches.
  static std::int64_t MostAcrossOneCut(const CostedPipeline& pipeline);

  // From or to the computation at a place.
  struct Arc {
    int place = 0;
    double delay_seconds = 0;
  };
  // From a place before a cut to one behind it. What begins behind the cut by itself comes from
  // nowhere (-1), and what nothing follows leads to nowhere (size()).
  struct CutArc {
    int from = 0;
    int to = 0;
    double delay_seconds = 0;
  };

  int size() const { return static_cast<int>(order_.size()); }
  const std::vector<int>& order() const { return order_; }  // [place]: computation.
  int PlaceOf(int computation) const { return place_[computation]; }

  std::span<const Arc> Before(int place) const { return Of(before_, first_before_, place); }
  std::span<const Arc> After(int place) const { return Of(after_, first_after_, place); }

  // The first place behind the first cut that is behind a place. There is a cut behind each, and
  // fewer only where they would take much memory.
  int EndOfCutBehind(int place) const { return std::min(size(), (place / stride_ + 1) * stride_); }
  // In all cuts.
  std::int64_t num_cut_arcs() const { return first_cut_.back(); }
  // All that lead across that cut.
  std::span<const CutArc> AcrossCutBehind(int place) const {
    return Of(cuts_, first_cut_, place / stride_);
  }

 private:
  template <typename T, typename Offset>
  static std::span<const T> Of(const std::vector<T>& all, const std::vector<Offset>& first, int k) {
    return {all.data() + first[k], all.data() + first[k + 1]};
  }
  void MakeCuts(const PipelineDag& dag, std::int64_t most_arcs);

  std::vector<int> order_;
  std::vector<int> place_;
  std::vector<int> first_before_;  // [place]: offsets.
  std::vector<Arc> before_;
  std::vector<int> first_after_;
  std::vector<Arc> after_;
  int stride_ = 1;                       // Of places after which there is a cut.
  std::vector<std::int64_t> first_cut_;  // [cut]: offsets.
  std::vector<CutArc> cuts_;
};

// The same lanes as LaneReplay, where a computation's time depends on its clock and the one
// before alone. Then what follows a change need not be replayed: the longest paths
// from there to the end are known, and only what lies between the first and the last
// computation that change, in the order of their starts, is run again.
//
// Longest paths from the beginning hold up to some computation, those to the end from some
// computation on; after a change both are brought up to date as far as the next one needs it.
// So changes that are near each other in time are quick to judge.
class WindowReplay {
 public:
  // Whether every call for a clock ends before the next one, so that the model is that of
  // LaneReplay, and neither memory nor one cut would be large.
  static bool Suits(const CostedPipeline& pipeline, const ClockSwitching& switching,
                    const Samples& samples);

  // All must outlive it. `in_fours`: false where the machine has no such registers.
  WindowReplay(const CostedPipeline& pipeline, const ClockSwitching& switching,
               const Samples& samples, std::int64_t most_cut_arcs = TimeOrder::kMostCutArcs,
               bool in_fours = HasFourWide());

  void SetGuard(double errors) { options_.SetGuard(errors); }  // As LaneReplay::SetGuard().
  void Reset(std::span<const int> knobs);

  const std::vector<int>& knobs() const { return knobs_; }  // With the trial.
  const LaneFigures& figures() const { return figures_; }
  const TimeOrder& order() const { return order_; }

  // Begins a trial of some other knobs (no computation twice): all but the time.
  // The trial before it is taken back. Returns what changes in effective energy and
  // in changes of clock.
  struct Cost {
    double effective_joules = 0;
    double seconds = 0;  // No less than this, at the shares that were seen last.
    int changes = 0;
  };
  Cost Begin(std::span<const KnobChange> changes);
  // The trial's mean seconds.
  double Seconds();
  void Commit();  // Precondition: Seconds() was asked for.
  void Discard();

  // Brings the shares that computations have in longest paths up to date.
  void Refresh();

  int lanes() const { return lanes_; }
  // Work done, in computations x lanes.
  std::int64_t work() const { return work_; }

 private:
  // The time of a computation: seconds x factor of a lane + added.
  struct Length {
    double seconds = 0;
    double added = 0;
  };

  double Set(int computation);  // Its length; returns its energy.
  template <typename Block>
  bool RunHead(int place, double* to, const double* held);
  bool RunHeadInFours(int place, double* to, const double* held);
  bool RunAnyHead(int place, double* to, const double* held);
  template <typename Block>
  void RunTail(int place);
  void RunTailInFours(int place);
  void RunAnyTail(int place);
  bool Head(int place);
  void EnsureHeads(int end);
  void EnsureTails(int begin);
  template <typename Block>
  double CutSeconds(int place);
  double CutSecondsInFours(int place);
  double AnyCutSeconds(int place);
  double* Row(int index) { return ends_.data() + static_cast<std::size_t>(index) * lanes_; }
  const double* Tail(int index) const {
    return tails_.data() + static_cast<std::size_t>(index) * lanes_;
  }

  const CostedPipeline& pipeline_;
  const ClockSwitching switching_;
  const Samples& samples_;
  int lanes_ = 1;
  bool in_fours_;
  int size_ = 0;
  OptionTable options_;
  std::vector<double> rank_energy_;  // [rank]: mean of the further factor of energy.
  TimeOrder order_;
  std::vector<int> previous_;
  std::vector<int> next_;
  // [computation]: how long before it starts its clock is called for, at most.
  std::vector<double> ahead_;
  std::vector<double> latencies_;  // [knob]
  double most_latency_ = 0;        // Of these.
  std::vector<int> knobs_;
  std::vector<Length> length_;       // [place]
  std::vector<double> joules_;       // [place]
  std::vector<int> row_;             // [place]: of its end.
  std::vector<double> ends_;         // Two rows for each place, and one of zeros.
  std::vector<double> tails_;        // One row for each place, and one of zeros.
  std::vector<double> group_sums_;   // [group of the samples], of CutSeconds().
  std::vector<double> share_;        // [place]: of jobs, with the factor of time.
  std::vector<double> plain_share_;  // [place]: of jobs, for what has no factor.
  std::vector<char> marked_;         // [place]: its length changes.
  std::vector<char> touched_;        // [place]: its end differs in the trial.
  std::vector<int> touched_list_;
  struct Undo {
    int place = 0;
    Length length = {};
    double joules = 0;
  };
  std::vector<Undo> undo_;
  std::vector<KnobChange> undo_knobs_;
  LaneFigures figures_;
  LaneFigures tried_;
  int first_ = 0;  // Places of the trial whose lengths change.
  int last_ = 0;
  int heads_end_ = 0;    // Ends of earlier places are up to date.
  int tails_begin_ = 0;  // Tails from this place on are.
  bool has_trial_ = false;
  bool is_timed_ = false;  // The trial: its ends are there.
  std::int64_t work_ = 0;
};

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_WINDOW_REPLAY_H_
