// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/latency.h"

#include <algorithm>
#include <cmath>

namespace perseus::client {

void LatencyRecord::AddCall(std::int64_t call_ns) {
  calls_ns_[count_ % kWindow] = call_ns;
  ++count_;
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
  constexpr std::size_t kLeastCalls = 8;
  // Settling is read in steps of the card's own period, and looked at in steps of half a
  // millisecond.
  constexpr double kSettlingErrorSeconds = 0.5e-3;
  // A normal distribution has as many standard deviations between its 16 % and 84 % quantiles.
  constexpr double kLow = 0.16;
  constexpr double kHigh = 0.84;
  const std::size_t calls = std::min(count_, kWindow);
  if (calls < kLeastCalls) return std::nullopt;
  const auto n = static_cast<double>(calls);
  const double spread = static_cast<double>(QuantileNs(kHigh) - QuantileNs(kLow)) * 1e-9 / 2;
  const double settling_error = settlings_ > 0 ? kSettlingErrorSeconds : 0;
  LatencyFigures figures;
  figures.calls = static_cast<std::int64_t>(calls);
  // Standard errors of the median and of the spread, as for normal draws.
  figures.seconds = {static_cast<double>(MedianNs()) * 1e-9,
                     std::hypot(1.25 * spread / std::sqrt(n), settling_error)};
  figures.spread_seconds = {spread, spread / std::sqrt(n)};
  return figures;
}

std::int64_t LatencyRecord::QuantileNs(double share) const {
  if (count_ == 0) return kUnmeasuredNs;
  const std::size_t size = std::min(count_, kWindow);
  std::array<std::int64_t, kWindow> sorted = calls_ns_;
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(size);
  const auto at = sorted.begin() + std::lround(share * static_cast<double>(size - 1));
  std::nth_element(sorted.begin(), at, end);
  return *at + settling_ns_;
}

}  // namespace perseus::client
