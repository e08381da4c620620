// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/reports.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>

namespace perseus::server {
namespace {

tl::unexpected<Failure> NotRegistered(int rank, const char* list, std::size_t number) {
  return Fail(FailureCode::kConflict,
              fmt::format("rank {} is not registered; register it first", rank),
              fmt::format("{}[{}].rank", list, number));
}

}  // namespace

Outcome<void> CheckReports(const JobLife& job, std::int64_t last_version,
                           const std::vector<IterationReport>& reports,
                           const std::vector<ClientReport>& clients) {
  if (job.phase.is_gone) return JobWasDeleted();
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const IterationReport& report = reports[i];
    if (!job.ranks.contains(report.rank)) return NotRegistered(report.rank, "reports", i);
    if (!std::isfinite(report.time_seconds) || report.time_seconds <= 0) {
      return Fail(FailureCode::kInvalid, "'time_s' must be seconds, above 0",
                  fmt::format("reports[{}].time_s", i));
    }
    if (report.plan_version < 0 || report.plan_version > last_version) {
      return Fail(FailureCode::kInvalid,
                  fmt::format("'plan_version' is {}, but the last one is {}", report.plan_version,
                              last_version),
                  fmt::format("reports[{}].plan_version", i));
    }
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (!job.ranks.contains(clients[i].rank)) return NotRegistered(clients[i].rank, "clients", i);
  }
  return {};
}

}  // namespace perseus::server
