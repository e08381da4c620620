// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_WATCH_SHIFT_DETECTOR_H_
#define PERSEUS_SERVER_WATCH_SHIFT_DETECTOR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "server/base/shift_settings.h"

namespace perseus::server {

// The median; reorders `values`. 0 of none.
double MedianOf(std::span<float> values);

// The point below which a standard normal variable falls with probability `p`,
// within 0.01 for p from 0.03 to 0.97: Tukey's lambda distribution.
double NormalQuantile(double p);

// Whether a noisy series that should be about 0 has moved up for good, and when
// it is back. The values are logarithms of ratios: 0.18 is 20 % slower.
//
// A shift is told when three things hold:
//   - the median of the last `window` values is above three quarters of the threshold, and that
//     of the newest three quarters of them (a shift of just the threshold is above it half the
//     time only);
//   - three quarters of them are above half the threshold (a sign test: what comes
//     now and then, however large, is no shift);
//   - a CUSUM test is sure. One value counts for three standard deviations at
//     most; the limit is set by Siegmund's approximation of the mean time between
//     false alarms of a series without shift (10^10 values), with a standard
//     deviation that noise which lasts makes larger. Three tests run at once,
//     for shifts of about one, four and sixteen times the threshold.
// It is over when the same CUSUM finds it nearer to 0 than to its level, and the
// newest quarter of the window is below half the threshold, all of it: what is
// slow is not fast by chance, and a job that waits for nobody wastes time. What is
// slow again within eight windows must be well for a window before it is over, then for
// two, four and eight: what comes and goes is told twice, not each time. In
// between nothing changes but the level, once it is off by half the threshold.
// Where noise is large, half of its deviation stands for the threshold: a smaller
// shift is not to be told from it.
//
// Source: Page, "Continuous inspection schemes", Biometrika 41 (1954); Siegmund,
// "Sequential Analysis" (1985), 2.6. A value; not thread-safe.
class ShiftDetector {
 public:
  enum class Change : std::uint8_t { kNone, kShifted, kMoved, kRecovered };

  // What is known of the noise before the first value; the newest of it counts.
  void Learn(std::span<const float> deviations);

  Change Add(double deviation, const ShiftSettings& settings);

  // Values are `by` too high, those of the window too.
  void Rebase(double by);

  // As a restart finds it.
  void SetShifted(double level);

  bool shifted() const { return shifted_; }
  double level() const { return shifted_ ? level_ : 0; }
  // Whether the window alone shows a shift, for who has other evidence of it: three quarters of
  // the threshold, unless noise stands for that.
  bool LooksShifted(const ShiftSettings& settings) const;
  // Tells it, by such evidence.
  void TellShift(const ShiftSettings& settings);
  // It is over, by other evidence.
  void EndShift();
  // The shift of another series with the same cause is over: one here is slow again, too.
  void ShareHold(const ShiftDetector& other);
  // Values since the shift seems to have begun, this one included.
  int since() const { return since_; }
  // Standard deviation of one value, robustly.
  double noise() const { return seen_noise_; }
  // The most that it may be, for sums of values, as noise may last.
  double lasting_noise() const { return lasting_noise_; }

 private:
  static constexpr std::size_t kNoiseValues = 64;
  static constexpr std::size_t kLeastNoiseValues = 16;  // Or a window: nothing is told before.
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

  std::vector<float> window_;  // A ring, the oldest at next_ once it is full.
  std::size_t next_ = 0;
  std::vector<float> older_;  // A ring of what has left the window, without shifts.
  std::size_t older_next_ = 0;
  int until_estimate_ = 0;
  double seen_noise_ = 0;
  double noise_ = 0;          // The most that it may be.
  double lasting_noise_ = 0;  // With what it lasts for.
  std::array<double, kTests> up_ = {};
  int since_ = 0;
  double down_ = 0;
  int down_since_ = 0;                // Values since down_ was 0.
  int hold_ = 0;                      // So many it takes to be over.
  std::int64_t well_for_ = kNoShift;  // Values since the last shift was over.
  bool shifted_ = false;
  double level_ = 0;
  int at_level_ = 0;  // Values since the level was set.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_WATCH_SHIFT_DETECTOR_H_
