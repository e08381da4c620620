// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What ranks report of their iterations, and the sums of it.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "server/managed_job.h"

namespace perseus::server {
namespace {

// Between two writes of the sums.
constexpr double kFlushSeconds = 1;

}  // namespace

Outcome<void> ManagedJob::Report(const std::vector<IterationReport>& reports,
                                 const std::vector<ClientReport>& clients) {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return Fail(FailureCode::kNotFound, "the job was deleted");
  for (std::size_t i = 0; i < reports.size(); ++i) {
    const IterationReport& report = reports[i];
    if (!ranks_.contains(report.rank)) {
      return Fail(FailureCode::kConflict, fmt::format("rank {} is not registered", report.rank),
                  fmt::format("reports[{}].rank", i));
    }
    if (!std::isfinite(report.time_seconds) || report.time_seconds <= 0) {
      return Fail(FailureCode::kInvalid, "'time_s' must be seconds, above 0",
                  fmt::format("reports[{}].time_s", i));
    }
    if (report.plan_version < 0 || report.plan_version > phase_.version.version) {
      return Fail(FailureCode::kInvalid,
                  fmt::format("'plan_version' is {}, but the last one is {}", report.plan_version,
                              phase_.version.version),
                  fmt::format("reports[{}].plan_version", i));
    }
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (ranks_.contains(clients[i].rank)) continue;
    return Fail(FailureCode::kConflict, fmt::format("rank {} is not registered", clients[i].rank),
                fmt::format("clients[{}].rank", i));
  }
  for (const ClientReport& client : clients) clients_[client.rank] = client;
  for (const IterationReport& report : reports) {
    // Iterations at maximum clocks are of no plan.
    const std::int64_t version =
        report.clocks == ReportedClocks::kMaximum ? 0 : report.plan_version;
    store::IterationSummary& summary = iterations_[version];
    const bool first = summary.reports == 0;
    summary.job = record_.id;
    summary.plan_version = version;
    ++summary.reports;
    summary.total_seconds += report.time_seconds;
    summary.least_seconds =
        first ? report.time_seconds : std::min(summary.least_seconds, report.time_seconds);
    summary.most_seconds = std::max(summary.most_seconds, report.time_seconds);
    summary.square_seconds2 += report.time_seconds * report.time_seconds;
    if (report.energy_joules) {
      ++summary.energy_reports;
      summary.total_joules += *report.energy_joules;
      summary.square_joules2 += *report.energy_joules * *report.energy_joules;
    }
    unwritten_iterations_[version] = true;
  }
  Watch(reports);
  return {};
}

void ManagedJob::FlushIterations() {
  const std::lock_guard lock(mutex_);
  if (!is_gone_) WriteIterations();
}

void ManagedJob::WriteIterations() {
  if (unwritten_iterations_.empty()) return;
  flush_iterations_at_ = context_->now_seconds() + kFlushSeconds;
  std::vector<store::Fact> facts;
  for (const auto& [version, unwritten] : unwritten_iterations_) {
    facts.emplace_back(iterations_[version]);
  }
  // Kept for the next time where the store cannot take them now.
  if (context_->store.Write(std::move(facts))) unwritten_iterations_.clear();
}

// By version, with what others heard of.
std::vector<store::IterationSummary> ManagedJob::AllIterations() const {
  std::map<std::int64_t, store::IterationSummary> all = iterations_elsewhere_;
  for (const auto& [version, own] : iterations_) {
    const auto [found, is_new] = all.try_emplace(version, own);
    if (is_new) continue;
    store::IterationSummary& sum = found->second;
    sum.reports += own.reports;
    sum.total_seconds += own.total_seconds;
    sum.least_seconds = std::min(sum.least_seconds, own.least_seconds);
    sum.most_seconds = std::max(sum.most_seconds, own.most_seconds);
    sum.square_seconds2 += own.square_seconds2;
    sum.energy_reports += own.energy_reports;
    sum.total_joules += own.total_joules;
    sum.square_joules2 += own.square_joules2;
  }
  std::vector<store::IterationSummary> list;
  for (const auto& [version, summary] : all) list.push_back(summary);
  return list;
}

}  // namespace perseus::server
