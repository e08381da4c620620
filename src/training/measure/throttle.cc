// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/throttle.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace perseus::measure {
namespace {

constexpr std::size_t kFewestAlike = 3;  // Clocks.
constexpr std::size_t kBelow = 4;        // Clocks whose slope is compared.
// Slopes are of logarithms over that of the clock. Below the bend, time changes with the clock and
// power does, too; above it, by no more than this share of that.
constexpr double kLeastTimeSlope = 0.3;
constexpr double kLeastPowerSlope = 0.5;
constexpr double kMostShare = 0.2;
constexpr double kThrottleSigmas = 3;

struct Slope {
  double value = 0;
  double std = 0;
};

// Of one kind, from the highest clock down.
struct Logs {
  std::vector<double> clock;
  std::vector<double> time;
  std::vector<double> power;
};

// A line through [begin, end); its error from how far values are off it.
Slope SlopeOf(const std::vector<double>& clock, const std::vector<double>& value, std::size_t begin,
              std::size_t end) {
  const auto count = static_cast<double>(end - begin);
  double clock_mean = 0;
  double value_mean = 0;
  for (std::size_t i = begin; i < end; ++i) {
    clock_mean += clock[i] / count;
    value_mean += value[i] / count;
  }
  double squares = 0;
  double products = 0;
  for (std::size_t i = begin; i < end; ++i) {
    squares += (clock[i] - clock_mean) * (clock[i] - clock_mean);
    products += (clock[i] - clock_mean) * (value[i] - value_mean);
  }
  if (!(squares > 0)) return {};
  Slope slope = {products / squares, 0};
  double residuals = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const double off = value[i] - value_mean - slope.value * (clock[i] - clock_mean);
    residuals += off * off;
  }
  slope.std = std::sqrt(residuals / std::max(1.0, count - 2) / squares);
  return slope;
}

// Whether a value hardly changes from the highest clock to the `alike`-th, and much below it.
bool Bends(const std::vector<double>& clock, const std::vector<double>& value, std::size_t alike,
           double least) {
  const Slope above = SlopeOf(clock, value, 0, alike);
  const Slope below = SlopeOf(clock, value, alike - 1, alike - 1 + kBelow);
  const double change = std::abs(below.value) - std::abs(above.value);
  return std::abs(below.value) >= least &&
         std::abs(above.value) <= kMostShare * std::abs(below.value) &&
         change > kThrottleSigmas * std::hypot(above.std, below.std);
}

bool IsThrottled(const Logs& logs, std::size_t alike) {
  return Bends(logs.clock, logs.time, alike, kLeastTimeSlope) &&
         Bends(logs.clock, logs.power, alike, kLeastPowerSlope);
}

}  // namespace

std::vector<int> ThrottledClocks(const std::vector<Estimate>& rows) {
  std::map<int, std::map<Kind, const Estimate*>, std::greater<>> by_clock;
  std::map<Kind, Logs> kinds;
  for (const Estimate& row : rows) {
    by_clock[row.mhz][row.kind] = &row;
    kinds[row.kind];
  }
  std::vector<int> clocks;
  for (const auto& [mhz, of_clock] : by_clock) {
    if (of_clock.size() != kinds.size()) continue;
    clocks.push_back(mhz);
    for (const auto& [kind, row] : of_clock) {
      Logs& logs = kinds[kind];
      logs.clock.push_back(std::log(mhz));
      logs.time.push_back(std::log(row->seconds));
      logs.power.push_back(std::log(row->joules / row->seconds));
    }
  }
  // The lowest bend: above it, the curve is flat all the way.
  for (std::size_t alike = clocks.size(); alike >= kFewestAlike; --alike) {
    if (alike - 1 + kBelow > clocks.size()) continue;
    const bool all = std::all_of(kinds.begin(), kinds.end(),
                                 [&](const auto& kind) { return IsThrottled(kind.second, alike); });
    if (all) return {clocks.begin(), clocks.begin() + static_cast<std::ptrdiff_t>(alike) - 1};
  }
  return {};
}

}  // namespace perseus::measure
