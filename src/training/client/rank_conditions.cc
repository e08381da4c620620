// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/rank_conditions.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/numbers.h"
#include "switching/look_ahead.h"

namespace perseus::client {

namespace {

// Fewer say nothing of a 90th percentile, or of a spread.
constexpr std::size_t kLeastCalls = 8;

}  // namespace

void LatencyRecord::Window::Add(std::int64_t call_ns) {
  calls_ns[count % kSize] = call_ns;
  ++count;
  least_ns = QuantileNs(0);
  high_ns = QuantileNs(0.9);
}

std::size_t LatencyRecord::Window::size() const { return std::min(count, kSize); }

std::int64_t LatencyRecord::Window::QuantileNs(double share) const {
  if (count == 0) return kUnmeasuredNs;
  std::array<std::int64_t, kSize> sorted = calls_ns;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(size());
  const auto at = sorted.begin() + std::lround(share * static_cast<double>(size() - 1));
  std::nth_element(sorted.begin(), at, end);
  return *at;
}

double LatencyRecord::Window::SpreadSeconds() const {
  // A normal distribution has as many standard deviations between its 16 % and 84 % quantiles.
  constexpr double kLow = 0.16;
  constexpr double kHigh = 0.84;
  return static_cast<double>(QuantileNs(kHigh) - QuantileNs(kLow)) * 1e-9 / 2;
}

// Welford's mean and sum of squares.
void LatencyRecord::Window::AddSettling(std::int64_t settling_ns) {
  ++settlings;
  const double apart = static_cast<double>(settling_ns) - settling_mean;
  settling_mean += apart / settlings;
  settling_squares += apart * (static_cast<double>(settling_ns) - settling_mean);
}

// With the standard error of the median of normal draws, and of the mean of what it takes to
// settle.
Estimated LatencyRecord::MedianSeconds(int mhz, const Window& window, double spread_seconds) const {
  // Settling is read in steps of the card's own period, and looked at in steps of half a
  // millisecond.
  constexpr double kSettlingErrorNs = 0.5e6;
  double settling_error_ns = 0;
  if (all_.settlings > 0) {
    const bool is_guess = mhz != 0 && Settlings(mhz) == 0;
    const int count = mhz == 0 ? all_.settlings : std::max(1, Settlings(mhz));
    // Of a clock of which none was measured: what clocks differ by. Where no spread is known, all
    // of it may be wrong by as much.
    double spread_ns = settling_spread_ns_.value_or(all_.settling_mean / 2);
    if (is_guess && all_.settlings > 1) {
      spread_ns = std::sqrt(all_.settling_squares / (all_.settlings - 1));
    }
    settling_error_ns = std::hypot(kSettlingErrorNs, spread_ns / std::sqrt(count));
  }
  const double error = 1.25 * spread_seconds / std::sqrt(static_cast<double>(window.size()));
  return {static_cast<double>(window.QuantileNs(0.5) + SettlingNs(mhz)) * 1e-9,
          std::hypot(error, settling_error_ns * 1e-9)};
}

const LatencyRecord::Window& LatencyRecord::OfClock(int mhz) const {
  const auto found = of_clock_.find(mhz);
  return found == of_clock_.end() || found->second.count < kLeastCalls ? all_ : found->second;
}

int LatencyRecord::Settlings(int mhz) const {
  const auto found = of_clock_.find(mhz);
  return found == of_clock_.end() ? 0 : found->second.settlings;
}

std::int64_t LatencyRecord::SettlingNs(int mhz) const {
  const Window& of = Settlings(mhz) > 0 ? of_clock_.at(mhz) : all_;
  return std::llround(of.settling_mean);
}

std::int64_t LatencyRecord::LeastNs(int mhz) const {
  const double settling = static_cast<double>(SettlingNs(mhz));
  return OfClock(mhz).least_ns +
         std::llround(
             std::max(0.0, settling - switching::kLeastSpreads * settling_spread_ns_.value_or(0)));
}

std::int64_t LatencyRecord::HighNs(int mhz) const {
  return OfClock(mhz).high_ns + SettlingNs(mhz) +
         std::llround(switching::kHighSpreads * settling_spread_ns_.value_or(0));
}

void LatencyRecord::AddCall(int mhz, std::int64_t call_ns) {
  all_.Add(call_ns);
  of_clock_[mhz].Add(call_ns);
  std::size_t bucket = 0;
  for (std::int64_t below_ns = 10'000; call_ns >= below_ns && bucket + 1 < buckets_.size();
       below_ns *= 2) {
    ++bucket;
  }
  ++buckets_[bucket];
}

void LatencyRecord::AddSettling(int mhz, std::int64_t settling_ns) {
  all_.AddSettling(settling_ns);
  of_clock_[mhz].AddSettling(settling_ns);
  constexpr int kLeastFreedom = 4;
  double squares = 0;
  int freedom = 0;
  for (const auto& [clock, window] : of_clock_) {
    squares += window.settling_squares;
    freedom += std::max(0, window.settlings - 1);
  }
  if (freedom >= kLeastFreedom) settling_spread_ns_ = std::sqrt(squares / freedom);
}

std::optional<LatencyFigures> LatencyRecord::Figures() const {
  if (all_.count < kLeastCalls) return std::nullopt;
  double variance = 0;
  double calls = 0;
  for (const auto& [mhz, window] : of_clock_) {
    if (window.count < kLeastCalls) continue;
    const auto n = static_cast<double>(window.size());
    variance += n * window.SpreadSeconds() * window.SpreadSeconds();
    calls += n;
  }
  const double spread = calls > 0 ? std::sqrt(variance / calls) : all_.SpreadSeconds();
  LatencyFigures figures;
  figures.calls = static_cast<std::int64_t>(all_.size());
  figures.seconds = MedianSeconds(0, all_, all_.SpreadSeconds());
  const double spread_calls = calls > 0 ? calls : static_cast<double>(all_.size());
  const double with_settling = std::hypot(spread, 1e-9 * settling_spread_ns_.value_or(0));
  figures.spread_seconds = {with_settling, with_settling / std::sqrt(spread_calls)};
  for (const auto& [mhz, window] : of_clock_) {
    if (window.count == 0) continue;
    figures.of_clock.push_back({.mhz = mhz,
                                .seconds = MedianSeconds(mhz, window, spread),
                                .calls = static_cast<std::int64_t>(window.size())});
  }
  return figures;
}

namespace {

constexpr std::size_t kLeastPairs = 8;
constexpr std::size_t kLeastDifferences = 2;  // Of a pair.
constexpr std::size_t kGroups = 20;           // Of the jackknife.
// Deviations beyond noise: of 100,000 normal draws, less than one is so far off.
constexpr double kOutlier = 5;
// Outliers count up to this. Measured on an H100 without a power cap, 1.5 % of computations stand
// out, and none by more than 11 % (docs/evidence/gpu.md).
constexpr double kMostRare = 0.2;
// A pair whose own spread is so many times the usual one holds more than noise.
constexpr double kOddSpread = 4;
constexpr double kDeviationsOfMad = 1.4826;  // Of a normal distribution.
constexpr double kLeastScale = 1e-6;         // Steps of the clock that times are read from.
constexpr double kMostCorrelation = 0.98;
constexpr double kCorrelationStep = 0.02;
// The greatest correlation left at the farthest distance in an iteration: a higher one cannot be
// told from noise of the whole iteration, and counts as that.
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
