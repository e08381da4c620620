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
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_text.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

// Between two writes of the sums.
constexpr double kFlushSeconds = 1;
// Of the plan; who reports of older ones has hung for days.
constexpr std::int64_t kKeptVersions = 1000;

}  // namespace

Outcome<void> ManagedJob::CheckReports(const std::vector<IterationReport>& reports,
                                       const std::vector<ClientReport>& clients) const {
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
    if (report.plan_version < 0 || report.plan_version > board_.version()) {
      return Fail(FailureCode::kInvalid,
                  fmt::format("'plan_version' is {}, but the last one is {}", report.plan_version,
                              board_.version()),
                  fmt::format("reports[{}].plan_version", i));
    }
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (ranks_.contains(clients[i].rank)) continue;
    return Fail(FailureCode::kConflict, fmt::format("rank {} is not registered", clients[i].rank),
                fmt::format("clients[{}].rank", i));
  }
  return {};
}

Outcome<void> ManagedJob::Report(const std::vector<IterationReport>& reports,
                                 const std::vector<ClientReport>& clients) {
  // Another server may have told the rank of a version that this one has not heard of.
  const bool is_ahead = std::any_of(reports.begin(), reports.end(), [&](const auto& report) {
    return report.plan_version > board_.version();
  });
  if (is_ahead) {
    if (auto fresh = Refresh(); !fresh) return Unavailable(fresh.error());
  }
  return OnFresh([&]() -> Outcome<void> {
    if (auto good = CheckReports(reports, clients); !good) return good;
    for (const ClientReport& client : clients) Hear(client);
    for (const IterationReport& report : reports) {
      AddIteration(report);
      WatchDrift(report.kinds);
    }
    Watch(reports);
    return {};
  });
}

// With mutex_ held. What went wrong is news once: clients repeat it with each report.
void ManagedJob::Hear(const ClientReport& client) {
  ClientReport& last = clients_[client.rank];
  if (!client.error.empty() && client.error != last.error) {
    context_->events.Emit({EventKind::kTrouble, record_.id,
                           FormatCompact({{"job", record_.id},
                                          {"rank", client.rank},
                                          {"state", client.state},
                                          {"sentence", client.error}})});
  }
  last = client;
}

void ManagedJob::AddIteration(const IterationReport& report) {
  // A plan that the trainer made for one step: no version's, and not at maximum clocks.
  const bool had_clocks =
      report.clocks == ReportedClocks::kPlan || report.clocks == ReportedClocks::kCoarse;
  if (had_clocks && report.plan_version == 0) return;
  // Iterations at maximum clocks are of no plan.
  const std::int64_t version = report.clocks == ReportedClocks::kMaximum ? 0 : report.plan_version;
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
  unwritten_iterations_.insert(version);
}

void ManagedJob::FlushIterations() {
  std::vector<store::Fact> facts;
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_) return;
    facts = TakeIterations();
  }
  // At the end of the process there is no next time for what the store refuses.
  if (!facts.empty()) static_cast<void>(context_->store.Write(std::move(facts)));
}

// The sums that the store does not have yet; this server's rows, which no other one writes.
std::vector<store::Fact> ManagedJob::TakeIterations() {
  std::vector<store::Fact> facts;
  if (unwritten_iterations_.empty()) return facts;
  flush_iterations_at_ = context_->now_seconds() + kFlushSeconds;
  for (const std::int64_t version : unwritten_iterations_) {
    facts.emplace_back(iterations_[version]);
  }
  unwritten_iterations_.clear();
  iterations_.erase(iterations_.begin(),
                    iterations_.lower_bound(phase_.version.version - kKeptVersions));
  return facts;
}

void ManagedJob::WriteIterations(std::vector<store::Fact> facts) {
  std::vector<std::int64_t> versions;
  versions.reserve(facts.size());
  for (const store::Fact& fact : facts) {
    versions.push_back(std::get<store::IterationSummary>(fact).plan_version);
  }
  context_->store.Add(std::move(facts), [self = shared_from_this(),
                                         versions = std::move(versions)](const auto& written) {
    if (written) return;
    // Kept for the next time where the store cannot take them now.
    const std::lock_guard lock(self->mutex_);
    for (const std::int64_t version : versions) {
      if (self->iterations_.contains(version)) self->unwritten_iterations_.insert(version);
    }
  });
}

void ManagedJob::RefreshIterations() {
  if (!context_->store.is_shared()) return;
  const std::lock_guard one(refresh_mutex_);
  const double now = context_->now_seconds();
  if (std::abs(now - iterations_read_at_) < kFlushSeconds) return;
  // What cannot be read now is shown as it was.
  const auto stored = context_->store.LoadJob(record_.id, store::Parts::kIterations);
  if (!stored || !stored->has_value()) return;
  iterations_read_at_ = now;
  const std::lock_guard lock(mutex_);
  iterations_elsewhere_.clear();
  for (const store::IterationSummary& summary : (*stored)->iterations_elsewhere) {
    iterations_elsewhere_[summary.plan_version] = summary;
  }
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
  list.reserve(all.size());
  for (const auto& [version, summary] : all) list.push_back(summary);
  return list;
}

}  // namespace perseus::server
