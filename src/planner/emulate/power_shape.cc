// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "emulate/power_shape.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstddef>
#include <numeric>

#include "emulate/fourier.h"

namespace perseus::emulate {
namespace {

// An end that rounding puts before the end of an interval does not shorten it.
constexpr double kSameEnd = 1e-12;
// Columns of the spectrum.
constexpr int kColumns = 48;

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The fastest changes from one window of `count` values to the next. Windows
// begin at every value.
std::optional<PowerRamp> RampOf(const std::vector<double>& swings, double interval_seconds,
                                double window_seconds) {
  const auto count = static_cast<std::size_t>(std::llround(window_seconds / interval_seconds));
  if (swings.size() < 2 * count) return std::nullopt;
  std::vector<double> sums(swings.size() + 1, 0);
  std::partial_sum(swings.begin(), swings.end(), sums.begin() + 1);
  PowerRamp ramp;
  for (std::size_t k = count; k + count <= swings.size(); ++k) {
    const double change = (sums[k + count] - sums[k] - (sums[k] - sums[k - count])) /
                          static_cast<double>(count) / window_seconds;
    ramp.rise_watts_per_second = std::max(ramp.rise_watts_per_second, change);
    ramp.fall_watts_per_second = std::max(ramp.fall_watts_per_second, -change);
  }
  return ramp;
}

double ColumnEdge(int column) {
  if (column == 0) return kCriticalBand.low_hz;
  if (column == kColumns) return kCriticalBand.high_hz;
  return kCriticalBand.low_hz * std::pow(kCriticalBand.high_hz / kCriticalBand.low_hz,
                                         static_cast<double>(column) / kColumns);
}

// Fills in what is in the band and in the columns.
void AddSpectrum(const std::vector<double>& swings, double variance, PowerShape* shape) {
  const std::size_t size = std::bit_ceil(swings.size());
  std::vector<std::complex<double>> values(swings.begin(), swings.end());
  values.resize(size);
  Transform(&values);
  for (int c = 0; c < kColumns; ++c) {
    shape->spectrum.push_back({.low_hz = ColumnEdge(c), .high_hz = ColumnEdge(c + 1)});
  }
  // By Parseval these add up to the variance, over all k but 0.
  const auto parts = static_cast<double>(size) * static_cast<double>(swings.size());
  constexpr double kRounding = 1e-9;  // Of what the band's ends were read as.
  const double width_hz = shape->band.high_hz - shape->band.low_hz;
  shape->band_resolved =
      width_hz * (static_cast<double>(swings.size()) * shape->interval_seconds) >= 1 - kRounding;
  double in_band = 0;
  double strongest = 0;
  int column = 0;
  for (std::size_t k = 1; k <= size / 2; ++k) {
    const double hz =
        static_cast<double>(k) / (static_cast<double>(size) * shape->interval_seconds);
    const double part = (2 * k == size ? 1 : 2) * std::norm(values[k]) / parts;
    if (shape->band_resolved && hz >= shape->band.low_hz && hz <= shape->band.high_hz) {
      in_band += part;
      if (part > strongest) {
        strongest = part;
        shape->strongest_hz = hz;
      }
    }
    if (hz < kCriticalBand.low_hz || hz > kCriticalBand.high_hz) continue;
    while (column + 1 < kColumns && hz >= shape->spectrum[column].high_hz) ++column;
    shape->spectrum[column].rms_watts += part;
  }
  for (SpectrumColumn& each : shape->spectrum) each.rms_watts = std::sqrt(each.rms_watts);
  shape->band_rms_watts = std::sqrt(in_band);
  shape->band_share = variance > 0 ? std::min(1.0, in_band / variance) : 0;
}

}  // namespace

double BallastJoules(std::span<const double> watts, double interval_seconds,
                     double watts_per_second) {
  if (watts.empty()) return 0;
  const double step = watts_per_second * interval_seconds;
  // The least power above all cones that fall by the limit to both sides.
  std::vector<double> held(watts.begin(), watts.end());
  for (std::size_t k = 1; k < held.size(); ++k) held[k] = std::max(held[k], held[k - 1] - step);
  for (std::size_t k = held.size() - 1; k-- > 0;) held[k] = std::max(held[k], held[k + 1] - step);
  double joules = 0;
  for (std::size_t k = 0; k < held.size(); ++k) joules += (held[k] - watts[k]) * interval_seconds;
  return joules;
}

PowerShape ShapeOf(std::span<const double> watts, double interval_seconds,
                   const PowerShapeSpec& spec) {
  // Swings by less than this share of the mean are rounding.
  constexpr double kNoSwing = 1e-9;
  PowerShape shape;
  shape.band = spec.band;
  if (watts.empty()) return shape;
  shape.interval_seconds = interval_seconds;
  shape.values = static_cast<std::int64_t>(watts.size());
  const double mean = Mean(watts);
  std::vector<double> swings;
  swings.reserve(watts.size());
  double squares = 0;
  for (const double each : watts) {
    swings.push_back(each - mean);
    squares += swings.back() * swings.back();
  }
  double variance = squares / static_cast<double>(swings.size());
  if (std::sqrt(variance) <= kNoSwing * mean) {
    variance = 0;
    swings.assign(swings.size(), 0);
  }
  shape.rms_watts = std::sqrt(variance);
  shape.ramp_1s = RampOf(swings, interval_seconds, 1);
  shape.ramp_100ms = RampOf(swings, interval_seconds, 0.1);
  AddSpectrum(swings, variance, &shape);
  if (spec.ramp_limit_watts_per_second.value_or(0) > 0) {
    shape.ballast_joules =
        BallastJoules(watts, interval_seconds, *spec.ramp_limit_watts_per_second);
  }
  return shape;
}

void ShapeBuilder::BeginIteration(double start_seconds) {
  start_seconds_ = start_seconds;
  if (trace_) trace_->BeginIteration(start_seconds);
}

void ShapeBuilder::Add(std::span<const PowerSegment> segments, double last_end_seconds,
                       double copies) {
  if (!trace_) return;
  constexpr double kLongest = kLongestShapeInterval * (kMostShapeValues - 2);
  if (start_seconds_ + last_end_seconds > kLongest) {
    trace_.reset();
    return;
  }
  trace_->Add(segments, last_end_seconds, copies);
}

PowerShape ShapeBuilder::Finish(double seconds) {
  PowerShape none;
  none.band = spec_.band;
  if (!trace_) return none;
  PowerTrace trace = trace_->Finish(seconds);
  trace_.reset();
  // A last value that is one of less than a whole interval is none.
  const double whole = std::floor(seconds / trace.interval_seconds * (1 + kSameEnd));
  trace.watts.resize(std::min(trace.watts.size(), static_cast<std::size_t>(whole)));
  return ShapeOf(trace.watts, trace.interval_seconds, spec_);
}

}  // namespace perseus::emulate
