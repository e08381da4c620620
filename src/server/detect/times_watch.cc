// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/times_watch.h"

#include <cmath>

#include "common/report_limits.h"

namespace perseus::server {
namespace {

constexpr double kMostReports = 512;

}  // namespace

void TimesWatch::Add(const KindReport& report) {
  if (!report.is_steady || report.count <= 0 || !(report.time_seconds > 0)) return;
  if (kinds_.size() >= kMostReportedKinds && kinds_.count(report.key) == 0) return;
  Kind& kind = kinds_[report.key];
  if (kind.reports >= kMostReports) {
    constexpr double kKept = 1 - 1 / kMostReports;
    kind.reports *= kKept;
    kind.weight *= kKept;
    kind.squares *= kKept * kKept;
    kind.spread *= kKept;
  }
  const auto weight = static_cast<double>(report.count);
  kind.reports += 1;
  kind.weight += weight;
  kind.squares += weight * weight;
  const double off = report.time_seconds - kind.mean;
  kind.mean += weight / kind.weight * off;
  kind.spread += weight * off * (report.time_seconds - kind.mean);
}

std::vector<MeasuredTime> TimesWatch::Measured() const {
  std::vector<MeasuredTime> times;
  for (const auto& [key, kind] : kinds_) {
    if (kind.reports < kLeastReports || kind.weight < kLeastComputations) continue;
    // How many reports of equal weight say as much.
    const double equal = kind.weight * kind.weight / kind.squares;
    if (!(equal > 1)) continue;
    const double error = std::sqrt(kind.spread / kind.weight / (equal - 1));
    if (!(error <= kMostError * kind.mean)) continue;
    times.push_back({.stage = key.stage,
                     .type = key.type,
                     .clock_mhz = key.clock_mhz,
                     .seconds = kind.mean,
                     .error_seconds = error,
                     .computations = static_cast<std::int64_t>(kind.weight)});
  }
  return times;
}

}  // namespace perseus::server
