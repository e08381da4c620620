// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "measure/profile_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <set>
#include <utility>

#include "measure/curve.h"
#include "measure/energy_fit.h"
#include "measure/waiting_curve.h"

namespace perseus::measure {
namespace {

// With less waiting than this share of the time there is no power of waiting,
// nor where its standard error is more than this share of it.
constexpr double kLeastWaiting = 0.01;
constexpr double kMostBlockingError = 0.25;
constexpr std::size_t kFewestWaitingClocks = 4;  // For a curve of three unknowns.
constexpr double kLeastResidual = 1e-3;
// Of joules. Where iterations last as long each time, the counter's steps fall at the same places
// in them, and that does not average out.
constexpr double kLeastEnergyError = 1e-3;

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

// The logarithms of seconds at the targets, each kind at its mean work.
struct FittedTimes {
  CurveValues logs;               // [target]
  std::vector<double> residuals;  // [kind]: spread of single computations, relative.
  double jump = 0;                // See ProfileFit.
};

double ResidualOf(const std::vector<ClockRecord>& records, std::size_t kind) {
  double squares = 0;
  double freedom = 0;
  for (const ClockRecord& record : records) {
    if (record.predicted || !record.Has(kind) || record.times[kind].samples < 2) continue;
    const TimeSummary& time = record.times[kind];
    const double count = static_cast<double>(time.samples) - 1;
    squares += count * time.residual_variance / (time.seconds * time.seconds);
    freedom += count;
  }
  return std::max(kLeastResidual, freedom > 0 ? std::sqrt(squares / freedom) : 0);
}

FittedTimes FitTimes(const std::vector<ClockRecord>& records, const std::vector<double>& works,
                     const std::vector<Target>& targets, int highest_mhz, bool drifts) {
  FittedTimes fitted;
  std::vector<CurvePoint> points;
  std::vector<double> logs;
  std::vector<double> variances;
  for (std::size_t kind = 0; kind < works.size(); ++kind) {
    fitted.residuals.push_back(ResidualOf(records, kind));
    const double residual = fitted.residuals.back();
    for (const ClockRecord& record : records) {
      if (record.predicted || !record.Has(kind)) continue;
      const TimeSummary& time = record.times[kind];
      const double seconds = std::max(
          time.seconds * 0.1, time.seconds + time.per_work.value_or(0) * (works[kind] - time.work));
      points.push_back(PointOf(record, kind, highest_mhz));
      logs.push_back(std::log(seconds));
      variances.push_back(residual * residual / static_cast<double>(time.samples));
    }
  }
  std::vector<CurvePoint> at;
  at.reserve(targets.size());
  for (const Target& target : targets) at.push_back(target.point);
  SmoothedCurves smooth = SmoothCurves(points, logs, variances, at, drifts);
  fitted.logs = std::move(smooth.at);
  fitted.jump = smooth.jump;
  return fitted;
}

// What was measured of a kind at a clock, in all its visits.
struct Measured {
  std::int64_t samples = 0;
  TimeSummary time;  // Of the last visit.
  double extra_watts = 0;
  bool throttled = true;  // In all visits.
  double celsius_sum = 0;
  int celsius_count = 0;

  void Add(const ClockRecord& record, std::size_t kind, double work_watts) {
    if (record.predicted || !record.Has(kind)) return;
    time = record.times[kind];
    samples += time.samples;
    extra_watts = work_watts;
    throttled = throttled && record.throttled;
    if (!record.temperature_celsius) return;
    celsius_sum += *record.temperature_celsius;
    ++celsius_count;
  }
};

// The clocks, with every kind that has a curve there.
std::vector<Target> TargetsOf(const std::vector<ClockRecord>& records, std::size_t kinds,
                              int highest_mhz) {
  std::vector<bool> has_curve(kinds);
  for (const ClockRecord& record : records) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      if (!record.predicted && record.Has(kind)) has_curve[kind] = true;
    }
  }
  std::vector<Target> targets;
  for (const ClockRecord& record : records) {
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      const bool measured = !record.predicted && record.stretches.stretches > 0;
      if (!record.Has(kind) || !has_curve[kind] || !(measured || record.predicted)) continue;
      const auto known = std::find_if(targets.begin(), targets.end(), [&](const Target& target) {
        return target.mhz == record.mhz && target.point.curve == kind;
      });
      if (known == targets.end()) {
        targets.push_back({record.mhz, PointOf(record, kind, highest_mhz)});
      } else {
        known->point.apart = known->point.apart && record.throttled;
      }
    }
  }
  return targets;
}

// The clocks that were measured and that the card kept, highest first.
std::set<int, std::greater<>> MeasuredClocks(const std::vector<ClockRecord>& records) {
  std::set<int, std::greater<>> clocks;
  for (const ClockRecord& record : records) {
    const bool unlocked = record.mhz == kUnlockedMhz;
    if (!record.predicted && !record.throttled && !unlocked && record.stretches.stretches > 0)
      clocks.insert(record.mhz);
  }
  return clocks;
}

// With the power of waiting by clock where that shows, else with one number.
FittedWatts FitWattsAndWaiting(const std::vector<ClockRecord>& records,
                               const std::vector<bool>& varies, const std::vector<Target>& targets,
                               PriorsTried tried) {
  const std::set<int, std::greater<>> clocks = MeasuredClocks(records);
  tried.waiting_by_clock = tried.several && clocks.size() >= kFewestWaitingClocks;
  FittedWatts watts = FitWatts(records, varies, targets, tried);
  if (!watts.waiting_curve || watts.waiting_curve->DependsOnClock(*clocks.rbegin())) return watts;
  tried.waiting_by_clock = false;
  return FitWatts(records, varies, targets, tried);
}

bool WentBack(const std::vector<ClockRecord>& records) {
  std::set<int> clocks;
  return !std::all_of(records.begin(), records.end(),
                      [&](const ClockRecord& record) { return clocks.insert(record.mhz).second; });
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
  std::vector<double> works;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) works.push_back(MeanWork(records, kind));
  ProfileFit fit;
  const std::vector<Target> targets = TargetsOf(records, kinds.size(), highest_mhz);
  if (targets.empty()) return fit;
  // Nothing tells how much a card drifts that was at each clock once.
  const bool drifts = thorough && WentBack(records);
  const FittedWatts watts =
      FitWattsAndWaiting(records, varies, targets, {.several = thorough, .drifts = drifts});
  const FittedTimes times = FitTimes(records, works, targets, highest_mhz, drifts);
  fit.jump = times.jump;
  SymmetricMatrix power_covariance(targets.size());  // Relative.
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (std::size_t j = 0; j < targets.size(); ++j) {
      power_covariance.at(i, j) =
          watts.power.covariance.at(i, j) / (watts.power.values[i] * watts.power.values[j]);
    }
  }
  std::vector<std::vector<double>> time_sources;
  std::vector<std::vector<double>> power_sources;
  if (thorough) {
    time_sources = LargestFactors(times.logs.covariance, kErrorSources);
    power_sources = LargestFactors(power_covariance, kErrorSources);
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::size_t kind = targets[i].point.curve;
    Measured measured;
    for (std::size_t record = 0; record < records.size(); ++record) {
      if (records[record].mhz != targets[i].mhz) continue;
      measured.Add(records[record], kind, watts.work[record][kind]);
    }
    const TimeSummary& time = measured.time;
    const double power = watts.power.values[i];
    const double time_variance = std::max(0.0, times.logs.covariance.at(i, i));  // Relative.
    Estimate row;
    row.kind = kinds[kind];
    row.mhz = targets[i].mhz;
    row.seconds = std::exp(times.logs.values[i]);
    row.joules = power * row.seconds;
    if (time.per_work && time.work > 0) {
      row.joules += measured.extra_watts * time.seconds * (works[kind] / time.work - 1);
    }
    row.samples = measured.samples;
    row.seconds_std = std::sqrt(time_variance) * row.seconds;
    row.joules_std = std::sqrt(std::max(0.0, power_covariance.at(i, i)) + time_variance +
                               kLeastEnergyError * kLeastEnergyError) *
                     power * row.seconds;
    for (const auto& source : time_sources) row.time_errors.push_back(source[i]);
    for (const auto& source : power_sources) row.power_errors.push_back(source[i]);
    row.seconds_residual_std = times.residuals[kind] * row.seconds;
    row.joules_residual_std = std::hypot(times.residuals[kind], watts.spread) * row.joules;
    row.work = works[kind];
    if (time.per_work && time.work > 0) {
      row.seconds_per_work = time.per_work;
      row.joules_per_work =
          power * *time.per_work + measured.extra_watts * time.seconds / time.work;
    }
    if (measured.celsius_count > 0) {
      row.temperature_celsius = measured.celsius_sum / measured.celsius_count;
    }
    row.throttled = measured.samples > 0 && measured.throttled;
    if (row.joules > 0) fit.rows.push_back(row);
  }
  double seconds = 0;
  double waiting = 0;
  for (const ClockRecord& record : records) {
    seconds += record.stretches.seconds;
    waiting += record.stretches.waiting_seconds;
  }
  const BlockingPower& blocking = watts.waiting;
  if (waiting > kLeastWaiting * seconds &&
      blocking.watts_std < kMostBlockingError * blocking.watts) {
    fit.blocking = blocking;
    if (watts.waiting_curve) {
      for (const int mhz : MeasuredClocks(records)) {
        fit.waiting.push_back({.mhz = mhz, .power = watts.waiting_curve->At(mhz)});
      }
    }
  }
  return fit;
}

}  // namespace perseus::measure
