// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DETECT_SHIFT_DETECTOR_H_
#define PERSEUS_SERVER_DETECT_SHIFT_DETECTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/base/shift_settings.h"

namespace perseus::server {

// The quantile of the standard normal distribution at `p`, to 0.01 for p from 0.03 to 0.97 (an
// approximation by Tukey's lambda distribution).
double NormalQuantile(double p);

// Detects when a noisy series around 0 shifts upwards for good, and when the shift ends. The values
// are logarithms of ratios: 0.18 is 20 % slower.
//
// A shift is reported when three conditions hold:
//   - The median of the last `window` values is above three quarters of the threshold, and so is
//     the median of the newest three quarters of these values. (The limit is not the threshold
//     itself: if the shift equals the threshold, the median is above it only half the time.)
//   - Three quarters of these values are above half the threshold. This sign test excludes large
//     values that come only now and then.
//   - A CUSUM test reaches its limit. A single value counts as at most three standard deviations.
//     Siegmund's approximation sets the limit, so that a series without shift gives one false
//     alarm in 10^10 values. The standard deviation is increased if noise is correlated in time.
//     Three such tests run at once, for shifts of about 1, 4 and 16 times the threshold.
// A shift ends when the same CUSUM finds the series nearer to 0 than to the shift's level, and the
// whole newest quarter of the window is below half the threshold. That is quick, because a slow
// rank is not fast by chance, and a job wastes time while it allows for a straggler that is gone.
// If the series shifts again within eight windows, the next shift ends only after one window
// without it, then after two, four and eight windows. So a shift that comes and goes is reported
// twice and not every time. While a shift lasts, its level is updated when it is wrong by half the
// threshold.
// If noise is large, half of its deviation replaces the threshold, because no smaller shift can be
// distinguished from noise.
//
// Source: Page, "Continuous inspection schemes", Biometrika 41 (1954); Siegmund,
// "Sequential Analysis" (1985), 2.6. A value; not thread-safe.
class ShiftDetector {
 public:
  enum class Change : std::uint8_t { kNone, kShifted, kMoved, kRecovered };

  // Estimates the noise from values seen before the first Add(). Uses the newest of them.
  void Learn(std::span<const float> deviations);

  Change Add(double deviation, const ShiftSettings& settings);

  // Subtracts `by` from all values in the window, because their reference has changed.
  void Rebase(double by);

  // Restores a shift after a restart.
  void SetShifted(double level);

  bool shifted() const { return shifted_; }
  double level() const { return shifted_ ? level_ : 0; }
  // Whether the window alone suggests a shift, for callers that have other evidence: the medians
  // are above three quarters of the threshold, or above the limit that large noise sets instead.
  bool LooksShifted(const ShiftSettings& settings) const;
  // Starts a shift because of other evidence.
  void TellShift(const ShiftSettings& settings);
  // Ends the shift because of other evidence.
  void EndShift();
  // The shift of another series with the same cause has ended. If this series shifts next, that
  // counts as a return of that shift.
  void ShareHold(const ShiftDetector& other);
  // Number of values since the shift probably began, including the last one.
  int since() const { return since_; }
  // Robust estimate of the standard deviation of one value.
  double noise() const { return seen_noise_; }
  // Upper limit of the standard deviation for sums of values, which includes correlation in time.
  double lasting_noise() const { return lasting_noise_; }

 private:
  static constexpr std::size_t kNoiseValues = 64;
  // No shift is reported before there are this many values, or a window if that is shorter.
  static constexpr std::size_t kLeastNoiseValues = 16;
  static constexpr int kTests = 3;
  static constexpr std::int64_t kNoShift = std::int64_t{1} << 62;

  void Push(float value, std::size_t window);
  void Older(float value);
  void EstimateNoise();
  double Limit(double reference) const;
  double Threshold(const ShiftSettings& settings) const;
  double LeastTold(const ShiftSettings& settings) const;
  bool WindowIsAbove(double least, const ShiftSettings& settings) const;
  Change WhileWell(double deviation, const ShiftSettings& settings);
  Change WhileShifted(double deviation, const ShiftSettings& settings);
  bool MostAre(bool above, double than) const;
  double NewestMedian() const;
  bool NewestAreBelow(double than) const;

  std::vector<float> window_;  // A ring buffer. Once it is full, the oldest value is at next_.
  std::size_t next_ = 0;
  std::vector<float> older_;  // A ring buffer of values that have left the window, except shifts.
  std::size_t older_next_ = 0;
  int until_estimate_ = 0;
  double seen_noise_ = 0;
  double noise_ = 0;          // Upper limit of the noise.
  double lasting_noise_ = 0;  // The same, including correlation in time.
  std::array<double, kTests> up_ = {};
  int since_ = 0;
  double down_ = 0;
  int down_since_ = 0;                // Values since down_ was 0.
  int hold_ = 0;                      // Number of normal values that end the shift.
  std::int64_t well_for_ = kNoShift;  // Values since the last shift ended.
  bool shifted_ = false;
  double level_ = 0;
  int at_level_ = 0;  // Number of values since level_ was set.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DETECT_SHIFT_DETECTOR_H_
