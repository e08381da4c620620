// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_PROFILE_CHECKS_H_
#define PERSEUS_PROFILE_PROFILE_CHECKS_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/note.h"
#include "perseus/profile.h"
#include "profile/rows.h"

// Plausible values of GPUs and their jobs, with room for those to come. The checks of a profile
// (profile_checks.cc) and of a job (job/job.cc) take others for a wrong unit.
namespace perseus::profile {

struct Plausible {
  double least = 0;
  double most = 0;

  bool Has(double value) const { return value >= least && value <= most; }
};

inline constexpr Plausible kComputingWatts = {5, 3000};    // Of one GPU. Measured: 120 to 1400.
inline constexpr Plausible kSwappedWatts = {50, 1500};     // Seconds over joules, taken for watts.
inline constexpr Plausible kWaitingWatts = {1, 1000};      // Of one GPU. Measured: 20 to 150.
inline constexpr Plausible kClockMegahertz = {100, 4000};  // Of SMs. Sold: 135 to 3200.
inline constexpr Plausible kPossibleMegahertz = {50, 10000};  // Others are in another unit.
// Of one computation at its fastest. Launching its kernels takes longer than the least.
inline constexpr Plausible kTaskSeconds = {1e-5, 30};
inline constexpr double kLongTaskSeconds = 10;  // Odd from there on.
// Computing time of a rank in an iteration. Ten thousand iterations of 10 minutes take ten weeks.
inline constexpr double kLongIterationSeconds = 600;
inline constexpr double kMostIterationSeconds = 3600;
inline constexpr double kFactorOfNeighbours = 3;     // A cell against its curve.
inline constexpr double kOddSlowness = 1.1;          // Of the highest clock, times as long as
inline constexpr double kImplausibleSlowness = 1.5;  // a lower one. Measured: up to 1.35.
inline constexpr double kMostSpread = 1;             // A standard deviation over its mean.
inline constexpr double kLongSwitchSeconds = 1;      // Clocks take 5 to 200 ms.
inline constexpr double kMostDelayShare = 1;         // comm_delay over a rank's computing,
inline constexpr double kMostFixedShare = 10;        // data_loading, iteration_overhead.
inline constexpr double kMostMarginShare = 0.5;      // time_margin,
inline constexpr double kMostMarginSigmas = 10;      // of which 2 or 3 are usual.

// A cell that does not fit its neighbours on the curve of its stage,
// instruction and GPU.
struct OddCell {
  const Row* row = nullptr;
  Column column = Column::kTime;  // Or kEnergy.
  // How many times more (above 1) or less (below 1) than the neighbours allow.
  double factor = 1;
};

// The cells of `all` (its rows) that are probably wrong, in the order of the
// text. Empty where knobs have no order. Time: n log n.
std::vector<OddCell> FindOddCells(const Rows& all);

// The same on one curve, for tests: indices of the odd ones.
struct CurvePoint {
  double speed = 0;  // Above 0, distinct, ascending.
  double value = 0;  // 0 or more.
};
// The least and the most that the value rises, each as a power of the speed.
struct Steepness {
  double least = 0;
  double most = 0;
};
struct OddPoint {
  std::size_t index = 0;
  double factor = 1;
};
std::vector<OddPoint> FindOddPoints(std::span<const CurvePoint> curve, const Steepness& steepness);

// "stage 0 forward at 1410".
std::string OptionName(const Rows& rows, const Row& row);

// Odd or implausible rows of `text`, against plausible values: units, the highest clock, spreads,
// cells that do not fit their curve. `tables` are made of the rows. `named_baseline`: whether
// savings are measured against a label. Without the source.
std::vector<Note> CheckProfile(std::string_view text, const Rows& rows,
                               const std::vector<OptionTable>& tables, bool named_baseline);

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_PROFILE_CHECKS_H_
