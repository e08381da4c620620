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
  // After the first pass, measure a quarter as many more, where the lower convex hull of time and
  // energy (from which plans are made) is least certain. If times jump between clocks by
  // kRoughJump, measure all clocks: interpolation would be wrong.
  bool coarse = false;
  // Measure the clocks of each pass in random order, after the highest.
  bool shuffle = false;
  std::uint64_t seed = 0;
};

// Decides which clock is measured next. The first pass goes down from the highest clock in steps of
// kCoarseStride; three others fill in what it left out, upwards, downwards and upwards. So
// neighbouring clocks are measured at times far apart, and a card that warms up does not tilt its
// curve.
//
// Plans look at *effective* energy: a computation's joules less what its rank would draw if it
// waited instead. A kind of computation needs no lower clocks once its effective energy has risen
// at kRisesToStop measured clocks, the lowest ones, and a look half way to the end shows the same.
// Risen: by more than kSigmas standard errors and by more than kLeastRise over the least one seen.
// So neither a plateau nor a bump ends the sweep. Where joules have risen too, clocks are not
// filled in, and none below kLeastShare of the highest is measured: there is little left to save. A
// sweep goes as low as the kind that needs most. Depends only on its settings and the measurements.
// For one thread.
class ClockOrder {
 public:
  static constexpr std::size_t kRisesToStop = 3;
  static constexpr double kSigmas = 3;
  static constexpr double kLeastRise = 0.02;  // Of the joules.
  static constexpr double kLeastShare = 0.4;
  static constexpr std::size_t kCoarseStride = 4;
  static constexpr double kRoughJump = 0.01;
  // The assumed power of a waiting rank if it was not measured: a share of its power while it
  // computes at the highest clock.
  static constexpr double kAssumedWaiting = 0.25;

  // `clocks_mhz`: ascending, not empty.
  ClockOrder(const std::vector<int>& clocks_mhz, const OrderSettings& settings);

  int clock_mhz() const { return current_ ? clocks_mhz_[*current_] : 0; }  // 0: none is left.
  int highest_mhz() const { return clocks_mhz_.front(); }
  std::size_t clocks() const { return clocks_mhz_.size(); }
  bool first_pass_ended() const { return first_pass_ended_; }

  // Skips clocks that were measured and reported before a restart. Call it before the first Next().
  void Leave(const std::vector<int>& clocks_mhz);
  // Clocks between measured ones that are not measured.
  std::vector<int> PassedOver() const;
  // The current clock is measured, or cannot be. `rows`: estimates of all clocks so far. `waiting`:
  // none if it is not known. `jump`: see ProfileFit.
  void Next(const std::vector<Estimate>& rows, const std::optional<BlockingPower>& waiting,
            double jump);
  // Whether the coarse pass showed that clocks differ too much from their neighbours, so that all
  // clocks are measured.
  bool rough() const { return rough_; }

 private:
  // Of one kind at one clock.
  struct Point {
    std::size_t index = 0;
    double seconds = 0;
    double joules = 0;
    double joules_std = 0;
    double count = 0;
  };
  // A kind, from the highest clock down.
  struct Curve {
    std::vector<Point> points;
    BlockingPower waiting;
  };
  // The first clocks that no kind needs.
  struct Ends {
    std::size_t measured = 0;  // By effective energy, or so low that nothing is to be saved.
    std::size_t filled = 0;    // By joules.
  };
  std::vector<Curve> CurvesOf(const std::vector<Estimate>& rows,
                              const std::optional<BlockingPower>& waiting) const;
  Ends EndsOf(const std::vector<Curve>& curves) const;
  std::optional<std::size_t> Look(std::size_t end) const;
  // The first clock of a queue that is not visited, and is before `end`.
  std::optional<std::size_t> Take(std::deque<std::size_t>* queue, std::size_t end);
  void QueueTheRest();
  void Shuffle(std::deque<std::size_t>* queue);
  std::optional<std::size_t> Refinement(const std::vector<Curve>& curves) const;

  std::vector<int> clocks_mhz_;  // Descending.
  bool coarse_;
  std::optional<std::uint64_t> shuffle_seed_;
  std::vector<bool> visited_;
  std::deque<std::size_t> first_pass_;
  std::deque<std::size_t> fill_in_;
  std::optional<std::size_t> current_;
  std::size_t measured_ = 0;
  std::size_t reach_ = 0;                        // Clocks that are at least kLeastShare.
  std::optional<std::size_t> refinements_left_;  // None: still in the first pass.
  bool first_pass_ended_ = false;
  bool rough_ = false;
};

}  // namespace perseus::measure

#endif  // PERSEUS_MEASURE_CLOCK_ORDER_H_
