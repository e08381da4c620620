// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a job learns what other servers wrote. Rows of one reading are of one
// moment (the store's snapshot); what is older than what this server knows,
// because it wrote meanwhile, is passed over.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "server/planning/job_spec.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

// Of one refresh: the job's curve, whose rows are read only where it is a new one,
// may be replaced between the look at the marks and the reading.
constexpr int kMostReadings = 5;
// Of waiting for a plan, with what the waiter's owner adds.
constexpr double kSoonSeconds = 2;

}  // namespace

// What one reading found, and what was known before it.
struct ManagedJob::Reading {
  store::JobMarks known;  // Before.
  bool has_job = false;
  store::Parts parts = store::Parts::kNone;
  store::StoredJob stored;
  int settled_round = 0;           // Before.
  bool has_next_job = false;       // Before.
  bool is_rebuilt = false;         // `job` is of another profile than before.
  std::shared_ptr<const Job> job;  // Null: as before.
  std::shared_ptr<const Job> next_job;
  std::shared_ptr<const Curve> curve;
};

Result<void> ManagedJob::Refresh() {
  if (!context_->store.is_shared() || is_gone_) return {};
  const std::uint64_t asked = ++refreshes_asked_;
  const std::lock_guard one(refresh_mutex_);
  if (refreshes_done_ >= asked) return refreshed_;
  refreshes_done_ = refreshes_asked_;
  const std::int64_t last_waiter = board_.last_ticket();
  Result<bool> is_read = false;
  for (int i = 0; i < kMostReadings && is_read && !*is_read; ++i) is_read = ReadOnce();
  refreshed_ = is_read ? Result<void>() : tl::unexpected(is_read.error());
  if (!is_read) return refreshed_;
  board_.Confirm(last_waiter);
  const std::lock_guard lock(mutex_);
  Advance();
  return refreshed_;
}

bool ManagedJob::IsBehind(const store::JobMarks& marks) const {
  return marks.revision != seen_revision_ || marks.rows != seen_rows_;
}

ManagedJob::Reading ManagedJob::WhatIsKnown() const {
  const std::lock_guard lock(mutex_);
  Reading reading;
  reading.known = {.revision = phase_.revision, .rows = known_rows_, .curve = phase_.curve_mark};
  reading.has_job = job_ != nullptr;
  reading.job = job_;
  reading.settled_round = phase_.settled_round;
  reading.has_next_job = next_job_ != nullptr;
  return reading;
}

// False: what was read does not fit together; read again.
Result<bool> ManagedJob::ReadOnce() {
  using store::Parts;
  Reading reading = WhatIsKnown();
  auto marks = context_->store.LoadJob(record_.id, Parts::kNone);
  if (!marks) return tl::unexpected(marks.error());
  if (marks->has_value()) {
    const store::JobMarks& now = (*marks)->marks;
    if (now.revision != reading.known.revision) {
      reading.parts = reading.parts | Parts::kPhase;
      if (!reading.has_job) reading.parts = reading.parts | Parts::kProfile;
    }
    if (now.curve != reading.known.curve) reading.parts = reading.parts | Parts::kCurve;
    if (now.rows != reading.known.rows) {
      reading.parts = reading.parts | Parts::kRanks | Parts::kMeasurements;
    }
    reading.stored.marks = now;
  }
  if (reading.parts != Parts::kNone) {
    marks = context_->store.LoadJob(record_.id, reading.parts);
    if (!marks) return tl::unexpected(marks.error());
    if (marks->has_value()) reading.stored = **marks;
  }
  if (!marks->has_value()) {
    const std::lock_guard lock(mutex_);
    if (!is_gone_) Vanish();
    return true;
  }
  // Without the lock: it takes long for large jobs.
  if (Has(reading.parts, Parts::kPhase)) {
    if (auto built = BuildJobs(&reading); !built) return tl::unexpected(built.error());
  }
  const store::StoredJob& stored = reading.stored;
  if (reading.job != nullptr && stored.curve) {
    if (auto curve = Curve::Make(reading.job, *stored.curve)) reading.curve = *std::move(curve);
  }
  return Apply(reading);
}

// Those of the profiles that are new to this server. Their texts are read only where the
// rounds say that there is one.
Result<void> ManagedJob::BuildJobs(Reading* reading) {
  using store::Parts;
  const auto is_pending = [&] {
    const store::JobRecord& job = reading->stored.job;
    return job.state == store::JobState::kCharacterizing && job.sweep_round > job.settled_round;
  };
  const bool is_settled = reading->stored.job.settled_round != reading->settled_round;
  if ((is_settled || (is_pending() && !reading->has_next_job)) &&
      !Has(reading->parts, Parts::kProfile)) {
    reading->parts = reading->parts | Parts::kProfile;
    auto again = context_->store.LoadJob(record_.id, reading->parts);
    if (!again) return tl::unexpected(again.error());
    if (again->has_value()) reading->stored = **again;
  }
  const store::JobRecord& job = reading->stored.job;
  // A sweep that was given up leaves the profile and the curve as they were.
  reading->is_rebuilt =
      reading->job == nullptr || (is_settled && Has(reading->parts, Parts::kCurve));
  if (reading->is_rebuilt && !job.profile_csv.empty()) {
    reading->job = BuildJob(job).value_or(nullptr);
  }
  if (is_pending() && !job.next_profile_csv.empty()) {
    store::JobRecord next = job;
    next.profile_csv = job.next_profile_csv;
    next.blocking_power_watts = job.next_blocking_power_watts;
    reading->next_job = BuildJob(next).value_or(nullptr);
  }
  return {};
}

bool ManagedJob::Apply(const Reading& reading) {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return true;
  if (Has(reading.parts, store::Parts::kPhase) && !ApplyPhase(reading)) return false;
  if (Has(reading.parts, store::Parts::kRanks)) ApplyRows(reading);
  checked_rows_ = reading.stored.marks.rows;
  return true;
}

bool ManagedJob::ApplyPhase(const Reading& reading) {
  const store::JobMarks& marks = reading.stored.marks;
  // A standby that took over may lack the last commits. What it has is what there is.
  const bool went_back = marks.revision < reading.known.revision;
  if (marks.revision <= phase_.revision && !went_back) return true;
  if (went_back) lost_revision_ = std::max(lost_revision_, phase_.revision);
  Phase next = PhaseOf(reading.stored);
  if (Has(reading.parts, store::Parts::kCurve)) {
    next.curve = reading.curve;
  } else if (marks.curve == phase_.curve_mark) {
    next.curve = phase_.curve;
  } else {
    return false;
  }
  if (job_ == nullptr || (reading.is_rebuilt && reading.job != nullptr)) job_ = reading.job;
  if (!IsPending(next)) {
    next_job_.reset();
  } else if (reading.next_job != nullptr) {
    next_job_ = reading.next_job;
  }
  if (next.sweep_round != phase_.sweep_round) ForgetMeasurements();
  if (next.settled_round != phase_.settled_round) drift_.Reset();
  const bool is_over =
      next.state == store::JobState::kFinished || next.state == store::JobState::kFailed;
  if (next.curve != nullptr && !is_over) next.reason = TargetReason(next);
  if (next.state == store::JobState::kProfiling && phase_.state != next.state) {
    last_measured_seconds_ = context_->now_seconds();
  }
  const std::int64_t last_straggler = phase_.last_straggler;
  // Whoever wrote the version looked at the stragglers then; what began or expired
  // since is news here, too, lest that server is gone.
  planned_at_ = std::min(context_->now_seconds(), next.version.at_seconds);
  Enter(std::move(next));
  for (const store::StragglerRecord& straggler : phase_.stragglers) {
    if (straggler.id > last_straggler) EmitStraggler(straggler.id);
  }
  return true;
}

void ManagedJob::ApplyRows(const Reading& reading) {
  const store::StoredJob& stored = reading.stored;
  const std::int64_t rows = stored.marks.rows;
  const bool went_back = rows < reading.known.rows;
  if (rows <= known_rows_ && !went_back) return;
  if (went_back) {
    ranks_.clear();
    positions_.clear();
    for (const auto& [number, pending] : pending_) positions_[PositionOf(pending.rank)] = number;
    own_rows_ = rows;
  }
  for (const store::RankRecord& rank : stored.ranks) {
    const auto [known, is_new] = ranks_.try_emplace(rank.rank, rank);
    // A record of this server's own that came after the reading is the newer one.
    if (!is_new && rows >= own_rows_) known->second = rank;
    positions_[PositionOf(rank)] = rank.rank;
  }
  if (!phase_.stragglers.empty()) planned_at_ = kNeverPlanned;  // A slow node may have one more.
  known_rows_ = read_rows_ = rows;
  seen_rows_ = rows;
  if (!Has(reading.parts, store::Parts::kMeasurements)) return;
  table_ = {};
  measured_rows_.clear();
  std::size_t of_sweep = 0;
  for (const store::Measurements& measured : stored.measurements) {
    if (measured.sweep_round != phase_.sweep_round) continue;
    ++of_sweep;
    measured_rows_[measured.rank] += measured.rows.size();
    table_.Add(measured, ranks_.contains(measured.rank) ? ranks_[measured.rank].pp_rank : 0);
  }
  if (of_sweep != read_measurements_) {
    last_measured_seconds_ = context_->now_seconds();
  }
  read_measurements_ = of_sweep;
}

std::int64_t ManagedJob::AwaitPlan(std::int64_t after, double seconds, PlanBoard::Waiter waiter) {
  const std::int64_t ticket = board_.Wait(after, seconds, std::move(waiter));
  if (ticket == 0 || after <= board_.version()) return ticket;
  if (!context_->store.is_shared()) {
    board_.Confirm(ticket);
  } else if (seconds < kSoonSeconds) {
    static_cast<void>(Refresh());  // Who hardly waits is told while it does.
  } else {
    context_->refresh_soon(record_.id);
  }
  return ticket;
}

}  // namespace perseus::server
