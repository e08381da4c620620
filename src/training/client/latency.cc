// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/latency.h"

#include <algorithm>
#include <cmath>

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

}  // namespace perseus::client
