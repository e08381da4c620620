// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/iteration_sums.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace perseus::server {

IterationSums::IterationSums(std::string job, const StoredSums& stored) : job_(std::move(job)) {
  for (const store::IterationSummary& sum : stored.iterations) sums_[sum.plan_version] = sum;
}

void IterationSums::Add(const IterationReport& report) {
  // A plan that the trainer made for one step: no version's, and not at maximum clocks.
  const bool had_clocks =
      report.clocks == ReportedClocks::kPlan || report.clocks == ReportedClocks::kCoarse;
  if (had_clocks && report.plan_version == 0) return;
  // Iterations at maximum clocks are of no plan.
  const std::int64_t version = report.clocks == ReportedClocks::kMaximum ? 0 : report.plan_version;
  store::IterationSummary& sum = sums_[version];
  const bool is_first = sum.reports == 0;
  sum.job = job_;
  sum.plan_version = version;
  ++sum.reports;
  sum.total_seconds += report.time_seconds;
  sum.least_seconds =
      is_first ? report.time_seconds : std::min(sum.least_seconds, report.time_seconds);
  sum.most_seconds = std::max(sum.most_seconds, report.time_seconds);
  sum.square_seconds2 += report.time_seconds * report.time_seconds;
  if (report.energy_joules) {
    ++sum.energy_reports;
    sum.total_joules += *report.energy_joules;
    sum.square_joules2 += *report.energy_joules * *report.energy_joules;
  }
  unwritten_.insert(version);
  ++unwritten_reports_[version];
}

std::vector<store::Fact> IterationSums::Take() {
  std::vector<store::Fact> facts;
  for (const std::int64_t version : unwritten_) facts.emplace_back(sums_.at(version));
  unwritten_.clear();
  return facts;
}

void IterationSums::Unwritten(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    const auto* const sum = std::get_if<store::IterationSummary>(&fact);
    if (sum != nullptr) unwritten_.insert(sum->plan_version);
  }
}

void IterationSums::Written(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    const auto* const sum = std::get_if<store::IterationSummary>(&fact);
    if (sum == nullptr) continue;
    std::int64_t& left = unwritten_reports_[sum->plan_version];
    left = std::min(left, sums_.at(sum->plan_version).reports - sum->reports);
  }
}

std::int64_t IterationSums::unwritten_reports() const {
  std::int64_t reports = 0;
  for (const auto& [version, left] : unwritten_reports_) reports += left;
  return reports;
}

std::vector<store::IterationSummary> IterationSums::All() const {
  std::vector<store::IterationSummary> list;
  list.reserve(sums_.size());
  for (const auto& [version, sum] : sums_) list.push_back(sum);
  return list;
}

}  // namespace perseus::server
