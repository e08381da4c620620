// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/detect/iteration_history.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace perseus::server {
namespace {

using store::HistoryRow;
using store::Resolution;

constexpr Resolution kResolutions[] = {Resolution::kMinute, Resolution::kHour, Resolution::kDay};

void AddTimes(const IterationFigures& figures, store::IterationTimes* times) {
  ++times->iterations;
  times->reports += static_cast<std::int64_t>(figures.ranks);
  times->seconds += figures.seconds;
}

}  // namespace

IterationHistory::IterationHistory(std::string job, const std::vector<HistoryRow>& stored)
    : job_(std::move(job)) {
  for (const HistoryRow& row : stored) {
    entries_[{row.resolution, row.start}] = {.row = row, .stored_size = SizeOf(row)};
    now_seconds_ = std::max(now_seconds_, row.start);
  }
}

void IterationHistory::SetNow(double day_seconds) {
  now_seconds_ = std::max(now_seconds_, static_cast<std::int64_t>(std::floor(day_seconds)));
}

IterationHistory::Span IterationHistory::SpanNow(Resolution resolution) const {
  return {resolution, now_seconds_ - now_seconds_ % store::SpanOf(resolution)};
}

void IterationHistory::Add(const IterationCost& cost, int ranks, double day_seconds) {
  SetNow(day_seconds);
  for (const Resolution resolution : kResolutions) AddTo(resolution, cost, ranks, day_seconds);
}

void IterationHistory::AddIteration(const IterationFigures& figures, double day_seconds) {
  SetNow(day_seconds);
  const std::optional<double> joules = figures.JoulesOf(figures.ranks);
  for (const Resolution resolution : kResolutions) {
    const auto found = entries_.find(SpanNow(resolution));
    if (found == entries_.end()) continue;
    HistoryRow& row = found->second.row;
    AddTimes(figures, &row.times);
    if (joules) {
      AddTimes(figures, &row.measured_times);
      row.measured_joules += *joules;
    }
    unwritten_.insert(found->first);
  }
}

// Those that are over and in the store, and those that the store has not taken for so long that it
// would not keep them.
void IterationHistory::Forget() {
  std::erase_if(entries_, [&](const auto& each) {
    const auto& [resolution, start] = each.first;
    const std::int64_t kept = store::KeptOf(resolution);
    const bool is_stored = each.second.stored_size == SizeOf(each.second.row);
    const bool is_over = start + store::SpanOf(resolution) <= now_seconds_;
    return (is_over && is_stored) || (kept > 0 && start < now_seconds_ - kept);
  });
  std::erase_if(unwritten_, [&](const Span& span) { return !entries_.contains(span); });
}

void IterationHistory::AddTo(Resolution resolution, const IterationCost& cost, int ranks,
                             double day_seconds) {
  const Span span = SpanNow(resolution);
  const std::int64_t start = span.second;
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
  row.last_seconds = std::max(row.last_seconds, day_seconds);
  row.ranks = ranks;
  ++row.reports;
  row.total_seconds += cost.seconds;
  if (cost.joules) {
    ++row.energy_reports;
    row.joules += *cost.joules;
    row.predicted_joules += cost.predicted_joules;
    if (cost.measured_saved_joules) {
      row.compared_joules += *cost.joules;
      row.measured_saved_joules += *cost.measured_saved_joules;
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
    std::int64_t& stored = found->second.stored_size;
    stored = std::max(stored, SizeOf(*row));
  }
  Forget();
}

}  // namespace perseus::server
