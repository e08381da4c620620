// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/shift_detector.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "common/median.h"

namespace perseus::server {
namespace {

constexpr double kLeastNoise = 0.003;  // Clocks of a processor and its operating system.
constexpr double kFalseAlarmEvery = 1e10;
constexpr double kMostDeviations = 3;  // That one value counts for.
constexpr double kMostShare = 0.75;    // "Most" of a window.
constexpr double kLeastTold = 0.75;    // Of the threshold.
constexpr double kOfMedian = 1.25;     // A median's error, of a mean's.
constexpr double kSureDeviations = 3;
constexpr int kRelapseWindows = 8;  // In which what was over is slow again.
constexpr int kMostHoldWindows = 8;
constexpr int kEstimateEvery = 8;
constexpr double kMostCorrelation = 0.9;
constexpr double kMadToDeviation = 1.4826;
// Half of the smallest shift that each test is for, in thresholds.
constexpr std::array<double, 3> kReferences = {0.5, 2, 8};

}  // namespace

double NormalQuantile(double p) {
  constexpr double kPower = 0.14;
  return 4.91 * (std::pow(p, kPower) - std::pow(1 - p, kPower));
}

void ShiftDetector::Learn(std::span<const float> deviations) {
  const std::size_t most = std::min(deviations.size(), kNoiseValues);
  older_.assign(deviations.end() - static_cast<std::ptrdiff_t>(most), deviations.end());
  older_next_ = 0;
  EstimateNoise();
}

// Robust: the median absolute deviation, and how often two neighbours are on one
// side of the median, which gives the correlation of a normal series (sin of pi/2
// times the mean product of signs). Sums of a series whose neighbours correlate by
// rho spread as if its deviation were sqrt((1 + rho) / (1 - rho)) times as large.
void ShiftDetector::EstimateNoise() {
  until_estimate_ = kEstimateEvery;
  std::vector<float> values(older_);
  const auto median = static_cast<float>(MedianOf(values));
  double signs = 0;
  std::size_t pairs = 0;
  for (std::size_t i = 0; i + 1 < older_.size(); ++i) {
    // Oldest first, across the ring's end.
    const std::size_t size = older_.size();
    const float left = older_[(older_next_ + i) % size] - median;
    const float right = older_[(older_next_ + i + 1) % size] - median;
    if (left == 0 || right == 0) continue;
    signs += (left > 0) == (right > 0) ? 1 : -1;
    ++pairs;
  }
  for (float& value : values) value = std::abs(value - median);
  // Of few values both may be too small by chance: by two, and one, of their own deviations.
  const double error = 1 / std::sqrt(static_cast<double>(std::max<std::size_t>(pairs, 1)));
  seen_noise_ = kMadToDeviation * MedianOf(values);
  noise_ = std::max(kLeastNoise, (1 + 2 * error) * seen_noise_);
  const double agreement =
      std::min(1.0, error + signs / static_cast<double>(std::max<std::size_t>(pairs, 1)));
  const double correlation =
      std::clamp(std::sin(std::numbers::pi / 2 * agreement), 0.0, kMostCorrelation);
  lasting_noise_ = noise_ * std::sqrt((1 + correlation) / (1 - correlation));
}

void ShiftDetector::Push(float value, std::size_t window) {
  if (window_.size() > window) {  // The settings changed.
    window_.clear();
    next_ = 0;
  }
  if (window_.size() < window) {
    // Grown to another length, a ring begins anew at its oldest.
    std::rotate(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(next_),
                window_.end());
    next_ = 0;
    window_.push_back(value);
    return;
  }
  const float leaving = std::exchange(window_[next_], value);
  next_ = (next_ + 1) % window;
  if (!shifted_) Older(leaving);
}

// One more value to know the noise by.
void ShiftDetector::Older(float value) {
  if (older_.size() < kNoiseValues) {
    std::rotate(older_.begin(), older_.begin() + static_cast<std::ptrdiff_t>(older_next_),
                older_.end());
    older_next_ = 0;
    older_.push_back(value);
  } else {
    older_[older_next_] = value;
    older_next_ = (older_next_ + 1) % kNoiseValues;
  }
  if (--until_estimate_ <= 0) EstimateNoise();
}

// Of a CUSUM in deviations whose reference is `reference` away from the mean: the
// time between false alarms is (exp(2kh) - 1 - 2kh) / (2k^2), nearly.
double ShiftDetector::Limit(double reference) const {
  const double k = reference / lasting_noise_;
  return std::log1p(2 * k * k * kFalseAlarmEvery) / (2 * k);
}

double ShiftDetector::Threshold(const ShiftSettings& settings) const {
  return std::max(std::log1p(settings.threshold), lasting_noise_ / 2);
}

// Three quarters of the threshold where a window's median is known well enough; of a noisy
// series all of it.
double ShiftDetector::LeastTold(const ShiftSettings& settings) const {
  const double threshold = Threshold(settings);
  const double error = kOfMedian * lasting_noise_ / std::sqrt(static_cast<double>(settings.window));
  return std::clamp(threshold / 2 + kSureDeviations * error, kLeastTold * threshold, threshold);
}

bool ShiftDetector::LooksShifted(const ShiftSettings& settings) const {
  const double threshold = Threshold(settings);
  const bool is_noise = threshold > std::log1p(settings.threshold);
  return WindowIsAbove(is_noise ? threshold : kLeastTold * threshold, settings);
}

bool ShiftDetector::WindowIsAbove(double least, const ShiftSettings& settings) const {
  if (window_.size() < static_cast<std::size_t>(settings.window)) return false;
  std::vector<float> values(window_);
  return MostAre(true, Threshold(settings) / 2) &&
         std::min(MedianOf(values), NewestMedian()) > least;
}

bool ShiftDetector::MostAre(bool above, double than) const {
  const auto count = std::count_if(window_.begin(), window_.end(), [&](float value) {
    return above ? value > than : value < than;
  });
  return static_cast<double>(count) >= kMostShare * static_cast<double>(window_.size());
}

ShiftDetector::Change ShiftDetector::Add(double deviation, const ShiftSettings& settings) {
  if (noise_ == 0) EstimateNoise();
  Push(static_cast<float>(deviation), static_cast<std::size_t>(settings.window));
  if (older_.size() < std::min(kLeastNoiseValues, static_cast<std::size_t>(settings.window))) {
    if (shifted_) Older(static_cast<float>(deviation - level_));
    return Change::kNone;
  }
  return shifted_ ? WhileShifted(deviation, settings) : WhileWell(deviation, settings);
}

ShiftDetector::Change ShiftDetector::WhileWell(double deviation, const ShiftSettings& settings) {
  const double threshold = Threshold(settings);
  bool sure = false;
  for (std::size_t i = 0; i < up_.size(); ++i) {
    const double reference = kReferences[i] * threshold;
    const double limit = Limit(reference);
    const double step =
        std::clamp(deviation - reference, -kMostDeviations * noise_, kMostDeviations * noise_) /
        lasting_noise_;
    // Not far beyond the limit, so that what is over is soon forgotten.
    up_[i] = std::clamp(up_[i] + step, 0.0, 2 * limit);
    sure = sure || up_[i] > limit;
  }
  since_ = up_[0] > 0 ? since_ + 1 : 0;
  if (well_for_ < kNoShift) ++well_for_;
  if (!sure || !WindowIsAbove(LeastTold(settings), settings)) return Change::kNone;
  TellShift(settings);
  return Change::kShifted;
}

// What comes and goes must be well for longer each time.
void ShiftDetector::TellShift(const ShiftSettings& settings) {
  SetShifted(NewestMedian());
  const bool is_relapse = well_for_ < std::int64_t{kRelapseWindows} * settings.window;
  hold_ =
      is_relapse ? std::clamp(2 * hold_, settings.window, kMostHoldWindows * settings.window) : 0;
}

void ShiftDetector::ShareHold(const ShiftDetector& other) {
  hold_ = std::max(hold_, other.hold_);
  well_for_ = std::min(well_for_, other.well_for_);
}

bool ShiftDetector::NewestAreBelow(double than) const {
  const std::size_t count = std::max<std::size_t>(window_.size() / 4, 2);
  for (std::size_t i = 1; i <= count; ++i) {
    if (window_[(next_ + window_.size() - i) % window_.size()] >= than) return false;
  }
  return true;
}

// What is not of a shift that was just found is at the window's old end.
double ShiftDetector::NewestMedian() const {
  std::vector<float> newest(window_);
  std::rotate(newest.begin(), newest.begin() + static_cast<std::ptrdiff_t>(next_), newest.end());
  newest.erase(newest.begin(), newest.begin() + static_cast<std::ptrdiff_t>(newest.size() / 4));
  return MedianOf(newest);
}

void ShiftDetector::SetShifted(double level) {
  shifted_ = true;
  level_ = level;
  at_level_ = 0;
  down_ = 0;
  down_since_ = 0;
  up_ = {};
}

void ShiftDetector::EndShift() {
  shifted_ = false;
  well_for_ = 0;
  down_ = 0;
  since_ = 0;
  window_.clear();  // What is slow in it is over, and proves nothing any more.
  next_ = 0;
}

ShiftDetector::Change ShiftDetector::WhileShifted(double deviation, const ShiftSettings& settings) {
  const double threshold = Threshold(settings);
  ++at_level_;
  const double middle = std::max(level_, threshold) / 2;
  const double limit = Limit(middle);
  const double step =
      std::clamp(middle - deviation, -kMostDeviations * noise_, kMostDeviations * noise_) /
      lasting_noise_;
  down_ = std::clamp(down_ + step, 0.0, 2 * limit);
  down_since_ = down_ > 0 ? down_since_ + 1 : 0;
  if (window_.size() < static_cast<std::size_t>(settings.window)) return Change::kNone;
  std::vector<float> values(window_);
  const double median = MedianOf(values);
  if (down_ > limit && down_since_ >= hold_ && NewestAreBelow(threshold / 2)) {
    EndShift();
    return Change::kRecovered;
  }
  const double spread =
      3 * kOfMedian * lasting_noise_ / std::sqrt(static_cast<double>(settings.window));
  const bool moved = at_level_ >= settings.window && median > threshold / 2 &&
                     std::abs(median - level_) > threshold / 2 + spread &&
                     (median > level_ ? MostAre(true, level_ + threshold / 2)
                                      : MostAre(false, level_ - threshold / 2));
  if (!moved) return Change::kNone;
  level_ = NewestMedian();
  at_level_ = 0;
  return Change::kMoved;
}

void ShiftDetector::Rebase(double by) {
  for (float& value : window_) value -= static_cast<float>(by);
  up_ = {};
  since_ = 0;
}

}  // namespace perseus::server
