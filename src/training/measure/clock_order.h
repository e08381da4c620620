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
  int stride = 1;     // Measure only every n-th clock.
  int least_mhz = 0;  // Measure no lower clock.
  // Measure every kCoarseStride-th clock first. Then measure a quarter as many more, where the
  // lower convex hull of time and energy (from which plans are made) is least certain. If times
  // jump between clocks by kRoughJump, measure all clocks: interpolation would be wrong.
  bool coarse = false;
  // Measure the highest clock first, then the others of each pass in random order. In descending
  // order, a card that warms up or cools down during the sweep would tilt the curve.
  bool shuffle = false;
  std::uint64_t seed = 0;
};

// Decides which clock is measured next, from the highest down. A kind of computation needs no lower
// clocks once its energy has risen over kRisesToStop clocks in a row. The sweep ends when no kind
// needs lower clocks. Depends only on its settings and the measurements. For one thread.
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

  // Skips clocks that were measured and reported before a restart. Call it before the first Next().
  void Leave(const std::vector<int>& clocks_mhz);
  // Clocks between measured ones that are not measured.
  std::vector<int> PassedOver() const;
  // The current clock is measured, or cannot be. `rows`: estimates of all clocks so far. `jump`:
  // see ProfileFit.
  void Next(const std::vector<Estimate>& rows, double blocking_watts, double jump);
  // Whether the coarse pass showed that clocks differ too much from their neighbours, so that all
  // clocks are measured.
  bool rough() const { return rough_; }

 private:
  struct Point {
    std::size_t index = 0;
    double seconds = 0;
    double joules = 0;
    double count = 0;
  };
  // The curve of each kind, from the highest clock down.
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
