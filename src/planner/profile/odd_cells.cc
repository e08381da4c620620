// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Finds cells that are probably wrong: a digit lost, a unit mistaken, another
// program on the GPU.
//
// What a computation takes and uses follows its clock within narrow limits:
// time falls as the clock rises, but never by a larger factor; energy falls by
// no larger factor than that either, and rises by no more than its cube. So two
// neighbours on the curve say of each other in which range they must be, and
// the closer their clocks, the narrower the range. How far a cell is outside, in
// logarithms, is the median over the nearest three on each side: one wrong
// neighbour has no say. It is odd where that is more than the noise of the
// curve explains: six times the median distance of a cell from the line between
// its two neighbours, but at least 6 % and never more than 35 %.
//
// Measured tables (38 to 60 clocks; power-capped cards, on which time rises
// with the clock at every fourth step) stay below 2 %.

#include "profile/odd_cells.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "common/median.h"

namespace perseus::profile {
namespace {

constexpr std::size_t kNeighbours = 3;  // On each side.
constexpr std::size_t kLeastPoints = 3;
constexpr double kNoiseFactor = 6;
constexpr double kLeastThreshold = 0.06;  // In logarithms.
constexpr double kMostThreshold = 0.3;

constexpr Steepness kTimeOverClock = {-1, 0};
constexpr Steepness kEnergyOverClock = {-1, 3};
// Just above what a GPU draws when idle, little power buys much speed.
constexpr Steepness kTimeOverPower = {-3, 0};
constexpr Steepness kEnergyOverPower = {-2, 1};

// One curve in logarithms.
class Curve {
 public:
  Curve(std::span<const CurvePoint> points, const Steepness& steepness)
      : steepness_(steepness), odd_(points.size()) {
    for (const CurvePoint& point : points) {
      x_.push_back(std::log(point.speed));
      y_.push_back(std::log(std::max(point.value, std::numeric_limits<double>::min())));
    }
  }

  std::vector<OddPoint> FindOdd() {
    struct Candidate {
      double excess = 0;
      std::size_t index = 0;
    };
    const double threshold = Threshold();
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const double excess = std::fabs(Excess(i));
      if (excess > threshold) candidates.push_back({excess, i});
    }
    // The worst first: without it, its neighbours may be in order.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.excess > b.excess; });
    std::vector<OddPoint> found;
    for (const Candidate& candidate : candidates) {
      const double excess = Excess(candidate.index);
      if (!(std::fabs(excess) > threshold)) continue;
      odd_[candidate.index] = true;
      found.push_back({candidate.index, std::exp(excess)});
    }
    std::sort(found.begin(), found.end(),
              [](const OddPoint& a, const OddPoint& b) { return a.index < b.index; });
    return found;
  }

 private:
  double Threshold() const {
    std::vector<double> distances;
    for (std::size_t i = 1; i + 1 < x_.size(); ++i) {
      const double span = x_[i + 1] - x_[i - 1];
      if (!(span > 0)) continue;  // Speeds that differ by their last digit.
      const double share = (x_[i] - x_[i - 1]) / span;
      distances.push_back(std::fabs(y_[i] - (y_[i - 1] + share * (y_[i + 1] - y_[i - 1]))));
    }
    if (distances.empty()) return kLeastThreshold;
    return std::clamp(kNoiseFactor * UpperMedianOf(std::move(distances)), kLeastThreshold,
                      kMostThreshold);
  }

  // How far point i is above (or, negative, below) where point j allows it.
  double ExcessOver(std::size_t i, std::size_t j) const {
    const double dx = x_[i] - x_[j];
    const double dy = y_[i] - y_[j];
    const double low = std::min(steepness_.least * dx, steepness_.most * dx);
    const double high = std::max(steepness_.least * dx, steepness_.most * dx);
    return dy > high ? dy - high : std::min(dy - low, 0.0);
  }

  // The median over the neighbours that are not odd; of an even number, the
  // milder of the two in the middle.
  double Excess(std::size_t i) const {
    std::vector<double> excesses;
    for (std::size_t j = i, seen = 0; j > 0 && seen < kNeighbours; --j) {
      if (odd_[j - 1]) continue;
      excesses.push_back(ExcessOver(i, j - 1));
      ++seen;
    }
    for (std::size_t j = i + 1, seen = 0; j < x_.size() && seen < kNeighbours; ++j) {
      if (odd_[j]) continue;
      excesses.push_back(ExcessOver(i, j));
      ++seen;
    }
    if (excesses.size() < 2) return 0;
    std::sort(excesses.begin(), excesses.end());
    const double upper = excesses[excesses.size() / 2];
    if (excesses.size() % 2 == 1) return upper;
    const double lower = excesses[excesses.size() / 2 - 1];
    return std::fabs(lower) < std::fabs(upper) ? lower : upper;
  }

  Steepness steepness_;
  std::vector<double> x_;
  std::vector<double> y_;
  std::vector<bool> odd_;
};

}  // namespace

std::vector<OddPoint> FindOddPoints(std::span<const CurvePoint> curve, const Steepness& steepness) {
  if (curve.size() < kLeastPoints) return {};
  return Curve(curve, steepness).FindOdd();
}

std::vector<OddCell> FindOddCells(const Rows& all) {
  const bool clocks = all.knobs_are_numbers;
  if (!clocks && all.knob_unit.empty()) return {};
  std::vector<const Row*> rows;
  rows.reserve(all.rows.size());
  for (const Row& row : all.rows) rows.push_back(&row);
  const auto curve_of = [](const Row& row) { return std::tie(row.stage, row.type, row.rank); };
  std::sort(rows.begin(), rows.end(), [&](const Row* a, const Row* b) {
    // Knobs descend.
    return std::tuple(curve_of(*a), b->knob) < std::tuple(curve_of(*b), a->knob);
  });
  std::vector<OddCell> cells;
  std::vector<CurvePoint> curve;
  const auto search = [&](std::size_t begin, Column column, double Row::*value,
                          const Steepness& steepness, std::size_t end) {
    curve.clear();
    for (std::size_t i = begin; i < end; ++i) {
      curve.push_back({all.knobs[static_cast<std::size_t>(rows[i]->knob)].number, rows[i]->*value});
    }
    for (const OddPoint& odd : FindOddPoints(curve, steepness)) {
      cells.push_back({rows[begin + odd.index], column, odd.factor});
    }
  };
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    while (end < rows.size() && curve_of(*rows[end]) == curve_of(*rows[begin])) ++end;
    search(begin, Column::kTime, &Row::time_seconds, clocks ? kTimeOverClock : kTimeOverPower, end);
    search(begin, Column::kEnergy, &Row::energy_joules,
           clocks ? kEnergyOverClock : kEnergyOverPower, end);
  }
  std::sort(cells.begin(), cells.end(), [](const OddCell& a, const OddCell& b) {
    return std::tie(a.row->offset, a.column) < std::tie(b.row->offset, b.column);
  });
  return cells;
}

}  // namespace perseus::profile
