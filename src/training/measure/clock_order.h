// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_MEASURE_CLOCK_ORDER_H_
#define PERSEUS_MEASURE_CLOCK_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "measure/kind.h"

namespace perseus::measure {

struct OrderSettings {
  int stride = 1;     // Every n-th clock only.
  int least_mhz = 0;  // Not below.
  // Every kCoarseStride-th clock first, then a quarter as many again where the lower convex
  // hull of time and energy, of which plans are made, may still bend. Where times jump from
  // clock to clock by kRoughJump, all: what lies between cannot be read off a curve.
  bool coarse = false;
  // The highest clock first, then the others of each pass in random order: a card that warms
  // up or cools down during a sweep from top to bottom makes its curve look tilted.
  bool shuffle = false;
  std::uint64_t seed = 0;
};

// Which clock is measured next. From the highest down; a kind needs no lower clock
// once its energy has risen over kRisesToStop clocks in a row, and the sweep no lower one than any
// kind needs. A pure function of its settings and of what was measured; one thread.
class ClockOrder {
 public:
  static constexpr std::size_t kRisesToStop = 5;
  static constexpr std::size_t kCoarseRisesToStop = 2;
  static constexpr std::size_t kCoarseStride = 4;
  static constexpr double kRoughJump = 0.01;

  // `clocks_mhz`: ascending, not empty.
  ClockOrder(const std::vector<int>& clocks_mhz, const OrderSettings& settings);

  int clock_mhz() const { return current_ ? clocks_mhz_[*current_] : 0; }  // 0: none is left.
  int highest_mhz() const { return clocks_mhz_.front(); }

  // Were measured before a restart, and reported. Before the first Next().
  void Leave(const std::vector<int>& clocks_mhz);
  // Clocks that were passed over between measured ones.
  std::vector<int> PassedOver() const;
  // The current clock is measured, or cannot be: what is known by now of all. `jump`: as in
  // ProfileFit.
  void Next(const std::vector<Estimate>& rows, double blocking_watts, double jump);
  // The coarse pass showed a card whose clocks say little of their neighbours, so that
  // each is measured after all.
  bool rough() const { return rough_; }

 private:
  struct Point {
    std::size_t index = 0;
    double seconds = 0;
    double joules = 0;
    double count = 0;
  };
  // Of each kind, from the highest clock down.
  std::vector<std::vector<Point>> CurvesOf(const std::vector<Estimate>& rows) const;
  void QueueTheRest();
  void DropNeedless(const std::vector<std::vector<Point>>& curves);
  std::optional<std::size_t> Refinement(const std::vector<std::vector<Point>>& curves,
                                        double blocking_watts) const;

  std::vector<int> clocks_mhz_;  // Descending.
  bool coarse_;
  std::optional<std::uint64_t> shuffle_seed_;
  std::vector<bool> visited_;
  std::deque<std::size_t> queue_;
  std::optional<std::size_t> current_;
  std::size_t measured_ = 0;
  std::optional<std::size_t> refinements_left_;  // None: still in the first pass.
  bool rough_ = false;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_CLOCK_ORDER_H_
