// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/profile_fit.h"

#include <algorithm>
#include <cmath>

#include "measure/curve.h"
#include "measure/energy_fit.h"

namespace perseus::measure {
namespace {

// With less waiting than this share of the time there is no power of waiting,
// nor where its standard error is more than this share of it.
constexpr double kLeastWaiting = 0.01;
constexpr double kMostBlockingError = 0.25;
constexpr double kLeastResidual = 1e-3;

// Mean work over all clocks; 0: not known.
double MeanWork(const std::vector<ClockRecord>& records, std::size_t kind) {
  double work = 0;
  double count = 0;
  for (const ClockRecord& record : records) {
    if (kind >= record.times.size()) continue;
    const auto samples = static_cast<double>(record.times[kind].samples);
    work += samples * record.times[kind].work;
    count += samples;
  }
  return count > 0 ? work / count : 0;
}

// Seconds of a kind at each record, at its mean work; variances are those of the seconds.
struct FittedTimes {
  std::vector<CurveValue> seconds;  // [record]
  double residual = 0;              // Spread of single computations, relative.
  double jump = 0;                  // See ProfileFit.
};

FittedTimes FitTimes(const std::vector<ClockRecord>& records, std::size_t kind, double work,
                     int highest_mhz) {
  FittedTimes fitted;
  fitted.seconds.resize(records.size());
  double squares = 0;
  double freedom = 0;
  for (const ClockRecord& record : records) {
    if (record.predicted || !record.Has(kind) || record.times[kind].samples < 2) continue;
    const TimeSummary& time = record.times[kind];
    const double count = static_cast<double>(time.samples) - 1;
    squares += count * time.residual_variance / (time.seconds * time.seconds);
    freedom += count;
  }
  fitted.residual = std::max(kLeastResidual, freedom > 0 ? std::sqrt(squares / freedom) : 0);
  std::vector<CurvePoint> points;
  std::vector<CurvePoint> between;
  std::vector<CurveValue> logs;
  std::vector<std::size_t> places;
  std::vector<std::size_t> places_between;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const ClockRecord& record = records[i];
    if (!record.Has(kind)) continue;
    const CurvePoint point{1 - static_cast<double>(record.mhz) / highest_mhz, record.throttled};
    if (record.predicted) {
      between.push_back(point);
      places_between.push_back(i);
      continue;
    }
    const TimeSummary& time = record.times[kind];
    const double seconds =
        std::max(time.seconds * 0.1, time.seconds + time.per_work.value_or(0) * (work - time.work));
    points.push_back(point);
    places.push_back(i);
    logs.push_back(
        {std::log(seconds), fitted.residual * fitted.residual / static_cast<double>(time.samples)});
  }
  if (points.empty()) return fitted;
  const SmoothedCurve curve = SmoothCurve(points, logs, between);
  const std::vector<CurveValue>& smooth = curve.values;
  fitted.jump = curve.jump;
  places.insert(places.end(), places_between.begin(), places_between.end());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const double seconds = std::exp(smooth[i].value);
    fitted.seconds[places[i]] = {seconds, smooth[i].variance * seconds * seconds};
  }
  return fitted;
}

}  // namespace

ProfileFit FitProfile(const std::vector<Kind>& kinds, const std::vector<ClockRecord>& records,
                      bool thorough) {
  std::vector<bool> varies(kinds.size());
  int highest_mhz = 1;
  for (const ClockRecord& record : records) {
    highest_mhz = std::max(highest_mhz, record.mhz);
    for (std::size_t kind = 0; kind < record.times.size(); ++kind) {
      if (record.times[kind].per_work) varies[kind] = true;
    }
  }
  const FittedWatts watts = FitWatts(records, varies, thorough);
  std::vector<FittedTimes> times;
  std::vector<double> works;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    works.push_back(MeanWork(records, kind));
    times.push_back(FitTimes(records, kind, works.back(), highest_mhz));
  }
  ProfileFit fit;
  for (const FittedTimes& fitted : times) fit.jump = std::max(fit.jump, fitted.jump);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const ClockRecord& record = records[i];
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      const bool measured = !record.predicted && record.stretches.stretches > 0;
      if (!record.Has(kind) || !(measured || record.predicted)) continue;
      const TimeSummary time = measured ? record.times[kind] : TimeSummary{};
      if (!(times[kind].seconds[i].value > 0)) continue;
      const CurveValue seconds = times[kind].seconds[i];
      const CurveValue power = watts.clocks[i].power[kind];
      const CurveValue extra = watts.clocks[i].work[kind];
      Estimate row;
      row.kind = kinds[kind];
      row.mhz = record.mhz;
      row.seconds = seconds.value;
      row.joules = power.value * seconds.value;
      if (time.per_work && time.work > 0) {
        row.joules += extra.value * time.seconds * (works[kind] / time.work - 1);
      }
      row.samples = time.samples;
      row.seconds_std = std::sqrt(seconds.variance);
      row.joules_std = std::sqrt(power.variance * seconds.value * seconds.value +
                                 seconds.variance * power.value * power.value);
      row.seconds_residual_std = times[kind].residual * row.seconds;
      row.joules_residual_std = std::hypot(times[kind].residual, watts.spread) * row.joules;
      row.work = works[kind];
      if (time.per_work && time.work > 0) {
        row.seconds_per_work = time.per_work;
        row.joules_per_work = power.value * *time.per_work + extra.value * time.seconds / time.work;
      }
      row.temperature_celsius = record.temperature_celsius;
      row.throttled = record.throttled;
      if (row.joules > 0) fit.rows.push_back(row);
    }
  }
  double seconds = 0;
  double waiting = 0;
  for (const ClockRecord& record : records) {
    seconds += record.stretches.seconds;
    waiting += record.stretches.waiting_seconds;
  }
  const double error = std::sqrt(watts.waiting.variance);
  if (waiting > kLeastWaiting * seconds && error < kMostBlockingError * watts.waiting.value) {
    fit.blocking = BlockingPower{watts.waiting.value, error};
  }
  return fit;
}

}  // namespace perseus::measure
