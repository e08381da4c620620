// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_ROBUST_REPLAY_TIME_ORDER_H_
#define PERSEUS_ROBUST_REPLAY_TIME_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "perseus/costed_pipeline.h"

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

}  // namespace perseus::robust

#endif  // PERSEUS_ROBUST_REPLAY_TIME_ORDER_H_
