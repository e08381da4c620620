// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/noise_estimate.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/median.h"

namespace perseus::client {
namespace {

constexpr std::size_t kLeastPairs = 8;
constexpr std::size_t kLeastDifferences = 2;  // Of a pair.
constexpr std::size_t kGroups = 20;           // Of the jackknife.
// What is so many deviations off is no noise. Of 100,000 normal draws, less than one is.
constexpr double kOutlier = 5;
// What stands out counts up to this. Measured on an H100 without a power cap, 1.5 % of computations
// stand out, and none by more than 11 % (docs/evidence/gpu.md).
constexpr double kMostRare = 0.2;
// A pair whose own spread is so many times the usual one holds more than noise.
constexpr double kOddSpread = 4;
constexpr double kDeviationsOfMad = 1.4826;  // Of a normal distribution.
constexpr double kLeastScale = 1e-6;         // Steps of the clock that times are read from.
constexpr double kMostCorrelation = 0.98;
constexpr double kCorrelationStep = 0.02;
// What is left of a correlation at the greatest distance in an iteration: with more, it cannot be
// told from what the whole iteration shares, and counts as that.
constexpr double kLeastDecay = 0.3;

}  // namespace

void NoiseEstimate::Moments::Add(const Moments& other, double sign) {
  for (std::size_t k = 0; k < sums.size(); ++k) {
    sums[k] += sign * other.sums[k];
    counts[k] += sign * other.counts[k];
  }
}

void NoiseEstimate::AddIteration(std::int64_t iteration, std::int64_t plan_version,
                                 std::vector<Time> times) {
  const bool follows =
      !before_.empty() && iteration == iteration_ + 1 && plan_version == plan_version_;
  if (follows) AddPair(before_, times);
  iteration_ = iteration;
  plan_version_ = plan_version;
  // Each iteration is in one pair only, so that pairs do not depend on each other.
  before_.clear();
  if (!follows) before_ = std::move(times);
}

void NoiseEstimate::AddPair(const std::vector<Time>& first, const std::vector<Time>& second) {
  std::vector<std::pair<std::ptrdiff_t, double>> differences;  // By row.
  auto other = second.begin();
  for (const Time& time : first) {
    while (other != second.end() && other->row < time.row) ++other;
    if (other == second.end() || differences.size() >= kMostRows) break;
    if (other->row != time.row || other->mhz != time.mhz || time.ns <= 0 || other->ns <= 0)
      continue;
    // Each of the two has half of the variance.
    differences.emplace_back(time.row, std::log(other->ns / time.ns) / std::sqrt(2.0));
  }
  if (differences.size() < kLeastDifferences) return;
  std::vector<double> values;
  values.reserve(differences.size());
  for (const auto& [row, value] : differences) values.push_back(value);
  Pair pair;
  pair.median = UpperMedianOf(values);
  for (double& value : values) value = std::abs(value - pair.median);
  pair.scale = std::max(kLeastScale, kDeviationsOfMad * UpperMedianOf(values));
  // That of few computations is sometimes much too small.
  double usual = pair.scale;
  if (pairs_.size() >= kLeastPairs) {
    std::vector<double> scales;
    scales.reserve(pairs_.size());
    for (const Pair& each : pairs_) scales.push_back(each.scale);
    usual = UpperMedianOf(std::move(scales));
  }
  const double most = kOutlier * std::clamp(usual, pair.scale, kOddSpread * pair.scale);
  pair.differences = static_cast<double>(differences.size());
  std::erase_if(differences, [&](const std::pair<std::ptrdiff_t, double>& difference) {
    const double off = std::abs(difference.second - pair.median);
    if (off <= most) return false;
    // One of the two iterations had all of it.
    const double excess = std::min(std::expm1(off * std::sqrt(2.0)), kMostRare);
    pair.rare += excess * excess / 2;
    ++pair.rare_count;
    return true;
  });
  for (std::size_t k = 0; k < kLags.size(); ++k) {
    auto ahead = differences.begin();
    for (const auto& [row, value] : differences) {
      while (ahead != differences.end() && ahead->first < row + kLags[k]) ++ahead;
      if (ahead == differences.end()) break;
      if (ahead->first != row + kLags[k]) continue;
      pair.moments.sums[k] += value * ahead->second;
      ++pair.moments.counts[k];
    }
  }
  pairs_.push_back(pair);
  if (pairs_.size() > kMostPairs) pairs_.pop_front();
}

// Least squares of: the product at distance d is variance x correlation^d + rank_variance.
NoiseEstimate::Fit NoiseEstimate::FitAt(const Moments& moments, double correlation,
                                        double* residual) {
  double n = 0;
  double x = 0;
  double xx = 0;
  double y = 0;
  double xy = 0;
  double yy = 0;
  for (std::size_t k = 0; k < kLags.size(); ++k) {
    const double count = moments.counts[k];
    if (count <= 0) continue;
    const double power = kLags[k] == 0 ? 1 : std::pow(correlation, kLags[k]);
    const double mean = moments.sums[k] / count;
    n += count;
    x += count * power;
    xx += count * power * power;
    y += count * mean;
    xy += count * power * mean;
    yy += count * mean * mean;
  }
  const double spread = n * xx - x * x;
  Fit fit;
  fit.correlation = correlation;
  fit.variance = spread > 1e-9 * n * n ? (n * xy - x * y) / spread : 0;
  fit.rank_variance = n > 0 ? (y - fit.variance * x) / n : 0;
  *residual = yy - fit.variance * xy - fit.rank_variance * y;
  return fit;
}

NoiseEstimate::Fit NoiseEstimate::FitOf(const Moments& moments) {
  double least = 0;
  Fit best = FitAt(moments, 0, &least);
  // Three unknowns need three distances besides the first. And what follows from one computation to
  // the next shows in those next to each other.
  if (moments.counts[1] <= 0 || moments.counts[3] <= 0) return best;
  int farthest = 0;
  for (std::size_t k = 0; k < kLags.size(); ++k) {
    if (moments.counts[k] > 0) farthest = kLags[k];
  }
  const double most = std::min(kMostCorrelation, std::pow(kLeastDecay, 1.0 / farthest));
  const auto steps = static_cast<int>(most / kCorrelationStep);
  for (int step = 1; step <= steps; ++step) {
    double residual = 0;
    const Fit fit = FitAt(moments, step * kCorrelationStep, &residual);
    if (residual < least && fit.variance > 0) {
      least = residual;
      best = fit;
    }
  }
  return best;
}

std::optional<NoiseFigures> NoiseEstimate::Figures() const {
  if (pairs_.size() < kLeastPairs) return std::nullopt;
  std::vector<double> sizes;
  std::vector<double> scales;
  for (const Pair& pair : pairs_) {
    sizes.push_back(std::abs(pair.median));
    scales.push_back(pair.scale);
  }
  const double usual = UpperMedianOf(std::move(scales));
  const double most =
      kOutlier * std::max(kDeviationsOfMad * UpperMedianOf(std::move(sizes)), usual / 4);
  std::array<Moments, kGroups> groups;
  Moments all;
  std::size_t used = 0;
  double rare = 0;
  double rare_squares = 0;
  double rare_count = 0;
  double differences = 0;
  for (const Pair& pair : pairs_) {
    if (std::abs(pair.median) > most || pair.scale > kOddSpread * usual) continue;
    groups[used++ % kGroups].Add(pair.moments, 1);
    all.Add(pair.moments, 1);
    rare += pair.rare;
    rare_squares += pair.rare * pair.rare;
    rare_count += pair.rare_count;
    differences += pair.differences;
  }
  if (used < kLeastPairs || all.counts[0] <= 0) return std::nullopt;
  const Fit fit = FitOf(all);
  const std::size_t parts = std::min(used, kGroups);
  std::array<Fit, kGroups> without;
  for (std::size_t i = 0; i < parts; ++i) {
    Moments rest = all;
    rest.Add(groups[i], -1);
    without[i] = FitOf(rest);
  }
  const auto error_of = [&](double Fit::*member) {
    double mean = 0;
    for (std::size_t i = 0; i < parts; ++i) mean += without[i].*member / static_cast<double>(parts);
    double squares = 0;
    for (std::size_t i = 0; i < parts; ++i) {
      squares += (without[i].*member - mean) * (without[i].*member - mean);
    }
    return std::sqrt(squares * static_cast<double>(parts - 1) / static_cast<double>(parts));
  };
  NoiseFigures figures;
  figures.iterations = static_cast<std::int64_t>(2 * used);
  figures.computations = static_cast<std::int64_t>(2 * all.counts[0]);
  const double least_error = std::abs(fit.variance) * std::sqrt(2 / all.counts[0]);
  figures.variance = {fit.variance, std::max(least_error, error_of(&Fit::variance))};
  figures.rank_variance = {fit.rank_variance, error_of(&Fit::rank_variance)};
  // Of a sum of independent pairs; those are rare, so what they add has no mean to be taken off.
  figures.rare_variance = {rare / differences, std::sqrt(rare_squares) / differences};
  // Half a computation each. None in so many is not yet that there are none.
  figures.rare_share = {rare_count / (2 * differences),
                        std::sqrt(rare_count + 1) / (2 * differences)};
  const bool is_told =
      fit.variance > 2 * figures.variance.error && all.counts[1] > 0 && all.counts[3] > 0;
  if (is_told) {
    // The jackknife sees no error where the fit stays at its limit.
    const double least = std::max(kCorrelationStep, 1 / std::sqrt(all.counts[1]));
    figures.correlation = {fit.correlation, std::max(least, error_of(&Fit::correlation))};
  }
  return figures;
}

}  // namespace perseus::client
