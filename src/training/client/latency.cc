// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/latency.h"

#include <algorithm>
#include <cmath>

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

// With the standard error of the median of normal draws.
Estimated LatencyRecord::MedianSeconds(const Window& window, double spread_seconds) const {
  // Settling is read in steps of the card's own period, and looked at in steps of half a
  // millisecond.
  constexpr double kSettlingErrorSeconds = 0.5e-3;
  const double error = 1.25 * spread_seconds / std::sqrt(static_cast<double>(window.size()));
  return {static_cast<double>(window.QuantileNs(0.5) + settling_ns_) * 1e-9,
          std::hypot(error, settlings_ > 0 ? kSettlingErrorSeconds : 0)};
}

const LatencyRecord::Window& LatencyRecord::OfClock(int mhz) const {
  const auto found = of_clock_.find(mhz);
  return found == of_clock_.end() || found->second.count < kLeastCalls ? all_ : found->second;
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

void LatencyRecord::AddSettling(std::int64_t settling_ns) {
  ++settlings_;
  // A mean: it is read in steps of the card's own period.
  settling_ns_ += (settling_ns - settling_ns_) / std::min(settlings_, 8);
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
  figures.seconds = MedianSeconds(all_, all_.SpreadSeconds());
  const double spread_calls = calls > 0 ? calls : static_cast<double>(all_.size());
  figures.spread_seconds = {spread, spread / std::sqrt(spread_calls)};
  for (const auto& [mhz, window] : of_clock_) {
    figures.of_clock.push_back({.mhz = mhz,
                                .seconds = MedianSeconds(window, spread),
                                .calls = static_cast<std::int64_t>(window.size())});
  }
  return figures;
}

}  // namespace perseus::client
