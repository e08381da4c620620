// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "fleet/power_curve.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace perseus::fleet {
namespace {

struct PowerPoint {
  double x = 0;
  double watts = 0;
};

// The lower hull of points with ascending x.
std::vector<PowerPoint> LowerHull(const std::vector<PowerPoint>& points) {
  std::vector<PowerPoint> hull;
  hull.reserve(points.size());
  for (const PowerPoint& point : points) {
    if (!hull.empty() && point.x == hull.back().x) {
      if (point.watts >= hull.back().watts) continue;
      hull.pop_back();
    }
    while (hull.size() >= 2) {
      const PowerPoint& a = hull[hull.size() - 2];
      const PowerPoint& b = hull.back();
      if ((b.watts - a.watts) * (point.x - b.x) < (point.watts - b.watts) * (b.x - a.x)) break;
      hull.pop_back();
    }
    hull.push_back(point);
  }
  return hull;
}

double Between(double from, double to, double low, double high, double at) {
  return from + (to - from) * ((at - low) / (high - low));
}

// The index of the segment that holds `value`, of a list with two elements or more.
std::size_t SegmentOf(const std::vector<double>& ascending, double value) {
  const auto next = std::upper_bound(ascending.begin() + 1, ascending.end() - 1, value);
  return static_cast<std::size_t>(next - ascending.begin()) - 1;
}

// Cuts what is left of `x`. The first corner is at it or before it.
void CutBefore(double x, PowerCurve* curve) {
  if (x <= curve->x.front()) return;
  if (x >= curve->x.back()) {
    *curve = {{curve->x.back()}, {curve->watts.back()}};
    return;
  }
  const double watts = curve->WattsAt(x);
  const auto cut = std::upper_bound(curve->x.begin(), curve->x.end(), x) - curve->x.begin();
  curve->x.erase(curve->x.begin(), curve->x.begin() + (cut - 1));
  curve->watts.erase(curve->watts.begin(), curve->watts.begin() + (cut - 1));
  curve->x.front() = x;
  curve->watts.front() = watts;
}

void CutAfter(double x, PowerCurve* curve) {
  if (x >= curve->x.back()) return;
  const double watts = curve->WattsAt(x);
  const auto cut = std::lower_bound(curve->x.begin(), curve->x.end(), x) - curve->x.begin();
  curve->x.resize(static_cast<std::size_t>(cut) + 1);
  curve->watts.resize(static_cast<std::size_t>(cut) + 1);
  curve->x.back() = x;
  curve->watts.back() = watts;
}

// Leaves out corners between segments whose slopes, as SlopeAfter() computes them, do not rise:
// what searches by slope relies on it.
PowerCurve WithRisingSlopes(const PowerCurve& curve) {
  PowerCurve kept;
  for (std::size_t k = 0; k < curve.size(); ++k) {
    const auto slope_to = [&](std::size_t from) {
      return (curve.watts[k] - kept.watts[from]) / (curve.x[k] - kept.x[from]);
    };
    while (kept.size() >= 2 && slope_to(kept.size() - 1) <= kept.SlopeAfter(kept.size() - 2)) {
      kept.x.pop_back();
      kept.watts.pop_back();
    }
    kept.x.push_back(curve.x[k]);
    kept.watts.push_back(curve.watts[k]);
  }
  return kept;
}

}  // namespace

double PowerCurve::WattsAt(double at) const {
  if (size() == 1 || at <= x.front()) return watts.front();
  if (at >= x.back()) return watts.back();
  const std::size_t k = SegmentOf(x, at);
  return Between(watts[k], watts[k + 1], x[k], x[k + 1], at);
}

double PowerCurve::ThroughputAt(double power) const {
  if (size() == 1 || power <= watts.front()) return x.front();
  if (power >= watts.back()) return x.back();
  const std::size_t k = SegmentOf(watts, power);
  return Between(x[k], x[k + 1], watts[k], watts[k + 1], power);
}

JobScale::JobScale(const FleetJob& job, double meter_factor)
    : factor(meter_factor),
      pipelines(job.pipelines - static_cast<double>(job.late.size())),
      constant_watts(job.fixed_watts),
      fastest(std::numeric_limits<double>::infinity()) {
  for (const LatePipeline& late : job.late) {
    late_joules += late.point.energy_joules - job.waiting_watts * late.point.time_seconds;
    constant_watts += job.waiting_watts;
    fastest = std::min(fastest, 1 / late.point.time_seconds);
  }
}

PowerCurve MakePowerCurve(const FleetJob& job, double meter_factor,
                          std::span<const IterationPoint> points) {
  const JobScale scale(job, meter_factor);
  std::vector<PowerPoint> all = {{0, job.waiting_watts}};
  all.reserve(points.size() + 1);
  for (const IterationPoint& point : points) {
    all.push_back({1 / point.time_seconds, point.energy_joules / point.time_seconds});
  }
  std::sort(all.begin(), all.end(), [](const PowerPoint& a, const PowerPoint& b) {
    return a.x != b.x ? a.x < b.x : a.watts < b.watts;
  });
  PowerCurve curve;
  for (const PowerPoint& corner : LowerHull(all)) {
    curve.x.push_back(corner.x);
    curve.watts.push_back(scale.WattsOfJob(corner.x, corner.watts));
  }
  CutAfter(scale.fastest, &curve);
  if (job.slowest_seconds) CutBefore(1 / *job.slowest_seconds, &curve);
  // From here on more power always means more throughput.
  std::size_t useful = 0;
  while (useful + 1 < curve.size() && curve.watts[useful + 1] <= curve.watts[useful]) ++useful;
  CutBefore(curve.x[useful], &curve);
  CutBefore(curve.ThroughputAt(meter_factor * job.least_watts), &curve);
  return WithRisingSlopes(curve);
}

}  // namespace perseus::fleet
