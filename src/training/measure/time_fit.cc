// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/time_fit.h"

#include <algorithm>
#include <cmath>

#include "common/median.h"

namespace perseus::measure {
namespace {

constexpr double kOutlier = 5;             // Robust standard deviations.
constexpr double kOfNormal = 1.4826;       // Standard over median absolute deviation.
constexpr double kLeastTimeSpread = 1e-3;  // Relative: what clocks of hosts blur.
constexpr double kVariesFrom = 0.02;       // Relative spread of work.
constexpr int kRounds = 3;

struct Line {
  double count = 0;
  double seconds = 0;
  double work = 0;
  double slope = 0;
  double squares = 0;  // Of the residuals.
};

Line FitLine(const std::vector<TimeSample>& samples, const std::vector<bool>& used, bool varies) {
  Line line;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!used[i]) continue;
    line.count += 1;
    line.seconds += samples[i].seconds;
    line.work += samples[i].work;
  }
  line.seconds /= line.count;
  line.work /= line.count;
  double covariance = 0;
  double variance = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!used[i]) continue;
    const double work = samples[i].work - line.work;
    covariance += work * (samples[i].seconds - line.seconds);
    variance += work * work;
  }
  if (varies && variance > 0) line.slope = covariance / variance;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!used[i]) continue;
    const double residual =
        samples[i].seconds - line.seconds - line.slope * (samples[i].work - line.work);
    line.squares += residual * residual;
  }
  return line;
}

bool WorkVaries(const std::vector<TimeSample>& samples) {
  double sum = 0;
  double squares = 0;
  for (const TimeSample& sample : samples) {
    if (!(sample.work > 0)) return false;
    sum += sample.work;
    squares += sample.work * sample.work;
  }
  const auto count = static_cast<double>(samples.size());
  const double mean = sum / count;
  return count >= 4 && squares / count - mean * mean > std::pow(kVariesFrom * mean, 2);
}

}  // namespace

TimeSummary SummariseTimes(const std::vector<TimeSample>& samples) {
  TimeSummary summary;
  if (samples.empty()) return summary;
  const bool varies = WorkVaries(samples);
  std::vector<bool> used(samples.size(), true);
  Line line = FitLine(samples, used, varies);
  for (int round = 0; round < kRounds; ++round) {
    // Residuals about their median, so that an outlier does not hide behind itself.
    std::vector<double> residuals;
    residuals.reserve(samples.size());
    for (const TimeSample& sample : samples) {
      residuals.push_back(sample.seconds - line.seconds - line.slope * (sample.work - line.work));
    }
    const double middle = UpperMedianOf(residuals);
    std::vector<double> distances;
    distances.reserve(samples.size());
    for (const double residual : residuals) distances.push_back(std::abs(residual - middle));
    const double spread =
        std::max(kOfNormal * UpperMedianOf(distances), kLeastTimeSpread * line.seconds);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      used[i] = distances[i] <= kOutlier * spread;
    }
    line = FitLine(samples, used, varies);
  }
  summary.samples = static_cast<std::int64_t>(line.count);
  summary.seconds = line.seconds;
  summary.work = line.work;
  if (varies) summary.per_work = line.slope;
  const double freedom = std::max(1.0, line.count - (varies ? 2 : 1));
  summary.residual_variance = line.squares / freedom;
  return summary;
}

}  // namespace perseus::measure
