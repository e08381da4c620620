// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/watch/iteration_history.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace perseus::server {
namespace {

using store::HistoryRow;
using store::Resolution;

constexpr Resolution kResolutions[] = {Resolution::kMinute, Resolution::kHour, Resolution::kDay};

}  // namespace

IterationHistory::IterationHistory(std::string job, const std::vector<HistoryRow>& own)
    : job_(std::move(job)) {
  for (const HistoryRow& row : own) {
    entries_[{row.resolution, row.start}] = {.row = row, .stored_reports = row.reports};
    now_seconds_ = std::max(now_seconds_, row.start);
  }
}

void IterationHistory::Add(const IterationCost& cost, int ranks, double day_seconds) {
  now_seconds_ = std::max(now_seconds_, static_cast<std::int64_t>(std::floor(day_seconds)));
  for (const Resolution resolution : kResolutions) AddTo(resolution, cost, ranks, day_seconds);
}

// Those that are over and in the store, and those that the store has not taken for so long that it
// would not keep them.
void IterationHistory::Forget() {
  std::erase_if(entries_, [&](const auto& each) {
    const auto& [resolution, start] = each.first;
    const std::int64_t kept = store::KeptOf(resolution);
    const bool is_stored = each.second.stored_reports == each.second.row.reports;
    const bool is_over = start + store::SpanOf(resolution) <= now_seconds_;
    return (is_over && is_stored) || (kept > 0 && start < now_seconds_ - kept);
  });
  std::erase_if(unwritten_, [&](const Span& span) { return !entries_.contains(span); });
}

void IterationHistory::AddTo(Resolution resolution, const IterationCost& cost, int ranks,
                             double day_seconds) {
  const std::int64_t start = now_seconds_ - now_seconds_ % store::SpanOf(resolution);
  const Span span = {resolution, start};
  if (!entries_.contains(span)) {
    Forget();
    const double first = std::max(static_cast<double>(start), day_seconds - cost.seconds);
    entries_[span].row = {.job = job_,
                          .resolution = resolution,
                          .start = start,
                          .first_seconds = first,
                          .last_seconds = first};
  }
  HistoryRow& row = entries_[span].row;
  // 0: an older Perseus began the row, so that nobody knows when.
  if (row.last_seconds > 0) row.last_seconds = std::max(row.last_seconds, day_seconds);
  row.ranks = ranks;
  ++row.reports;
  row.total_seconds += cost.seconds;
  if (cost.joules) {
    ++row.energy_reports;
    row.energy_seconds += cost.seconds;
    row.joules += *cost.joules;
    row.promised_joules += cost.promised_joules;
    if (cost.realised_joules) {
      row.compared_joules += *cost.joules;
      row.realised_joules += *cost.realised_joules;
    }
  }
  unwritten_.insert(span);
}

std::vector<store::Fact> IterationHistory::Take() {
  std::vector<store::Fact> facts;
  for (const Span& span : unwritten_) facts.emplace_back(entries_.at(span).row);
  unwritten_.clear();
  return facts;
}

void IterationHistory::Unwritten(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    const auto* const row = std::get_if<HistoryRow>(&fact);
    if (row == nullptr) continue;
    const Span span = {row->resolution, row->start};
    if (entries_.contains(span)) unwritten_.insert(span);  // Else it is too old.
  }
}

void IterationHistory::Written(const std::vector<store::Fact>& facts) {
  for (const store::Fact& fact : facts) {
    const auto* const row = std::get_if<HistoryRow>(&fact);
    if (row == nullptr) continue;
    const auto found = entries_.find({row->resolution, row->start});
    if (found == entries_.end()) continue;
    std::int64_t& stored = found->second.stored_reports;
    stored = std::max(stored, row->reports);
  }
  Forget();
}

}  // namespace perseus::server
