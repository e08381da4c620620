// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Where a job's profile comes from: its ranks' measurements, another job's, or a new sweep
// while training goes on under the plans of the old one.

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/domain/profile_library.h"
#include "server/planning/job_spec.h"
#include "server/runtime/managed_job.h"

namespace perseus::server {
namespace {

using store::Fact;
using store::JobState;
using Next = store::StateChange::Next;

constexpr const char* kMeasured = "measured";

}  // namespace

// Whether a new sweep's profile waits for its first plans.
bool ManagedJob::IsPending(const Phase& phase) {
  return phase.state == JobState::kCharacterizing && phase.sweep_round > phase.settled_round;
}

bool ManagedJob::TakesMeasurements() const {
  return phase_.state == JobState::kProfiling ||
         (phase_.state == JobState::kRegistering && job_ == nullptr);
}

bool ManagedJob::WantsProfile() const {
  const std::lock_guard lock(mutex_);
  return phase_.state == JobState::kProfiling;
}

bool ManagedJob::IsProfileComplete() const {
  return phase_.state == JobState::kProfiling && record_.origin == store::JobOrigin::kApi &&
         table_.IsComplete(shape_, context_->now_seconds() - last_measured_seconds_);
}

// Only rows of this sweep make its profile.
void ManagedJob::ForgetMeasurements() {
  table_ = {};
  measured_rows_.clear();
  read_measurements_ = 0;
  last_measured_seconds_ = context_->now_seconds();
  drift_.Reset();
}

// The measurements become the job's profile; those of a later sweep once there are plans
// for it.
void ManagedJob::StartCharacterizing() {
  const bool is_again = phase_.sweep_round > phase_.settled_round;
  store::JobRecord record = record_;
  record.profile_csv = table_.Csv();
  record.blocking_power_watts = table_.BlockingPowerWatts(shape_.pipeline_parallel);
  const Result<std::shared_ptr<const Job>> job = BuildJob(record);
  if (!job && is_again) {
    GiveUpSweep(fmt::format("the new measurements make no profile, so the old one stays: {}",
                            job.error().message));
    return;
  }
  Phase next = phase_;
  store::StateChange change{.job = record_.id};
  if (is_again) {
    change.next_profile_csv = record.profile_csv;
    change.next_blocking_power_watts = record.blocking_power_watts;
  } else {
    change.profile_csv = record.profile_csv;
    change.blocking_power_watts = record.blocking_power_watts;
    change.profile_source = next.profile_source = kMeasured;
  }
  std::vector<Fact> facts;
  if (!job) {
    next.reason = job.error().message;
    next.state = JobState::kFailed;
  } else {
    next.state = JobState::kCharacterizing;
    next.reason.clear();
    facts.emplace_back(store::WorkWanted{.job = record_.id, .urgent = true});
    const LibraryRequest request = ParseLibraryRequest(record_.library_json);
    store::ProfileRecord kept =
        RecordOf(record_, phase_.sweep_round,
                 LayoutOf(request, record_.settings_json, shape_, ranks_), table_, ranks_);
    kept.profile_csv = record.profile_csv;
    kept.created_at_seconds = context_->now_seconds();
    facts.emplace_back(std::move(kept));
  }
  change.state = next.state;
  change.reason = next.reason;
  facts.emplace_back(std::move(change));
  if (!Commit(std::move(facts), std::move(next)) || !job) return;
  (is_again ? next_job_ : job_) = *job;
  EmitThrottled();
}

void ManagedJob::EmitThrottled() const {
  for (const ProfileKey& key : table_.Throttled()) {
    EmitProfiling(
        fmt::format("{} was measured only while the GPUs slowed themselves down; its "
                    "row in the profile is marked",
                    ProfileKeyText(key)));
  }
}

void ManagedJob::EmitProfiling(const std::string& sentence, int rank) const {
  nlohmann::ordered_json json = {{"job", record_.id}, {"sentence", sentence}};
  if (rank >= 0) json["rank"] = rank;
  context_->events.Emit({EventKind::kProfiling, record_.id, FormatCompact(json)});
}

// Instead of measuring: the newest profile of a job that is the same in all that matters.
// False: there is none, or it cannot be had.
bool ManagedJob::TakeKnownProfile() {
  const LibraryRequest request = ParseLibraryRequest(record_.library_json);
  if (!request.may_reuse) return false;
  const std::string layout = LayoutOf(request, record_.settings_json, shape_, ranks_);
  if (layout.empty()) return false;
  const auto found = context_->store.FindProfileOfLayout(layout);
  if (!found || !found->has_value()) return false;
  const store::ProfileRecord& known = **found;
  store::JobRecord record = record_;
  record.profile_csv = known.profile_csv;
  record.blocking_power_watts = known.blocking_power_watts;
  const Result<std::shared_ptr<const Job>> job = BuildJob(record);
  if (!job) return false;
  Phase next = phase_;
  next.state = JobState::kCharacterizing;
  next.profile_source = fmt::format("reused from {} ({})", known.job, known.id);
  std::vector<Fact> facts;
  facts.emplace_back(store::WorkWanted{.job = record_.id, .urgent = true});
  facts.emplace_back(store::StateChange{.job = record_.id,
                                        .state = next.state,
                                        .profile_csv = record.profile_csv,
                                        .blocking_power_watts = record.blocking_power_watts,
                                        .profile_source = next.profile_source});
  if (!Commit(std::move(facts), std::move(next))) return true;  // Tried again, or read.
  job_ = *job;
  EmitProfiling(
      fmt::format("nothing is measured: the profile of job {} ({}) has the same model, "
                  "layout and GPUs; 'perseus job reprofile' measures all the same",
                  known.job, known.id));
  return true;
}

Outcome<void> ManagedJob::Reprofile() {
  return OnFresh([&]() -> Outcome<void> {
    if (phase_.state == JobState::kFinished) {
      return Fail(FailureCode::kConflict, "the job has finished");
    }
    if (record_.origin == store::JobOrigin::kZeus) {
      return Fail(FailureCode::kConflict,
                  "the job came over Zeus' wire, whose clients measure not");
    }
    if (phase_.state == JobState::kRegistering) {
      return Fail(FailureCode::kConflict, "not all ranks of the job are registered yet");
    }
    if (phase_.state == JobState::kProfiling || IsPending(phase_)) return {};
    if (phase_.state == JobState::kCharacterizing) {
      return Fail(FailureCode::kConflict, "the job's first plan is being made; try again after it");
    }
    Phase next = phase_;
    next.state = JobState::kProfiling;
    next.reason.clear();
    ++next.sweep_round;
    store::StateChange change{
        .job = record_.id, .state = next.state, .sweep_round = next.sweep_round};
    if (auto done = Commit({std::move(change)}, std::move(next)); !done) return done;
    ForgetMeasurements();
    return {};
  });
}

Outcome<void> ManagedJob::CancelReprofile() {
  return OnFresh([&]() -> Outcome<void> {
    if (phase_.sweep_round == phase_.settled_round || IsOver()) return {};
    return GiveUpSweep("");
  });
}

// The job goes on with what it had before the sweep.
Outcome<void> ManagedJob::GiveUpSweep(const std::string& reason) {
  Phase next = phase_;
  next.settled_round = next.sweep_round;
  next.state = next.curve != nullptr ? JobState::kRunning
               : job_ != nullptr     ? JobState::kCharacterizing
                                     : JobState::kFailed;
  next.reason = reason.empty() && job_ == nullptr ? "there is no profile" : reason;
  std::vector<Fact> facts;
  facts.emplace_back(store::StateChange{
      .job = record_.id, .state = next.state, .reason = next.reason, .next = Next::kDrop});
  AddWork(next, &facts);
  if (auto done = Commit(std::move(facts), std::move(next)); !done) return done;
  next_job_.reset();
  if (!reason.empty()) EmitProfiling(reason);
  return {};
}

ManagedJob::ReportedRows ManagedJob::RowsOf(int rank) const {
  const std::lock_guard lock(mutex_);
  return {.rows = table_.RowsOf(rank), .done = table_.IsDone(rank)};
}

// With mutex_ held, after the reports were checked.
void ManagedJob::WatchDrift(const std::vector<KindReport>& kinds) {
  if (job_ == nullptr || phase_.state != JobState::kRunning) return;
  for (const KindReport& kind : kinds) {
    for (const DriftNews& news : drift_.Add(kind, job_->profile)) {
      const std::string sentence =
          news.is_over ? fmt::format("{} takes as long as its profile says again",
                                     ProfileKeyText(news.drift.key))
                       : DriftText(news.drift) + "; 'perseus job reprofile' measures again";
      context_->events.Emit({EventKind::kDrift, record_.id,
                             FormatCompact({{"job", record_.id},
                                            {"kind", news.is_over ? "drift_over" : "drift"},
                                            {"stage", news.drift.key.stage},
                                            {"percent", 100 * (news.drift.ratio() - 1)},
                                            {"sentence", sentence}})});
    }
  }
}

}  // namespace perseus::server
