// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_PROFILE_PLAUSIBLE_H_
#define PERSEUS_PROFILE_PLAUSIBLE_H_

// What GPUs and their jobs are like, with room for those to come: the one table of what the checks
// of a profile (profile_checks.cc) and of a job (job/job_checks.cc) take for a wrong unit.
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
// What a rank computes in an iteration. Ten thousand iterations of 10 minutes take ten weeks.
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

}  // namespace perseus::profile

#endif  // PERSEUS_PROFILE_PLAUSIBLE_H_
