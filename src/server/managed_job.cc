// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/managed_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/job_spec.h"

namespace perseus::server {
namespace {

using store::Fact;
using store::JobState;

// Shown of one job; more of them say the same.
constexpr std::size_t kMostTroubledClients = 100;

store::JobRecord WithoutProfile(const store::JobRecord& record) {
  store::JobRecord copy = record;
  copy.profile_csv.clear();
  return copy;
}

}  // namespace

ManagedJob::ManagedJob(JobContext* context, store::StoredJob stored,
                       std::shared_ptr<const Job> built)
    : context_(context),
      record_(WithoutProfile(stored.job)),
      shape_{stored.job.pipeline_parallel, stored.job.data_parallel, stored.job.tensor_parallel},
      job_(std::move(built)),
      last_straggler_(stored.last_straggler) {
  phase_.state = stored.job.state;
  phase_.reason = stored.job.reason;
  phase_.target = TargetOf(stored.job);
  phase_.stragglers = std::move(stored.stragglers);
  phase_.watch_json = stored.job.detection_json;
  if (stored.version) phase_.version = *std::move(stored.version);
  for (store::RankRecord& rank : stored.ranks) {
    positions_[{rank.dp_rank, rank.pp_rank, rank.tp_rank}] = rank.rank;
    ranks_[rank.rank] = std::move(rank);
  }
  for (const store::Measurements& measured : stored.measurements) {
    measured_rows_[measured.rank] += measured.rows.size();
    table_.Add(measured, ranks_.contains(measured.rank) ? ranks_[measured.rank].pp_rank : 0);
  }
  for (const store::IterationSummary& summary : stored.iterations_elsewhere) {
    iterations_elsewhere_[summary.plan_version] = summary;
  }
  last_measured_seconds_ = context_->now_seconds();
  if (job_ == nullptr || !stored.curve) return;
  // A curve that cannot be read back is computed again.
  if (auto curve = Curve::Make(job_, *stored.curve)) phase_.curve = *std::move(curve);
  if (phase_.curve != nullptr && !IsOver()) phase_.reason = TargetReason(phase_);
}

void ManagedJob::Resume() {
  const std::lock_guard lock(mutex_);
  ReadWatch();
  const bool needs_job =
      phase_.state == JobState::kCharacterizing || phase_.state == JobState::kRunning;
  if (needs_job && job_ == nullptr && record_.origin == store::JobOrigin::kApi) {
    Phase next = phase_;
    next.state = JobState::kFailed;
    next.reason = "the stored profile can no longer be read";
    static_cast<void>(Commit({}, std::move(next)));
  }
  if (phase_.version.version > 0 && (phase_.version.plan == 0 || phase_.curve != nullptr)) {
    board_.Publish(Published());
  }
  Advance();
  RequestImprovement();
}

// Why another plan runs than the target asks for: it was set before anybody knew
// what the job can do. Empty: none does.
std::string ManagedJob::TargetReason(const Phase& next) {
  const Result<double> seconds = next.curve->TargetSeconds(next.target);
  if (seconds) return "";
  return fmt::format("the target {} cannot be met, so the fastest plan runs: {}",
                     TargetText(next.target), seconds.error().message);
}

bool ManagedJob::IsOver() const {
  return phase_.state == JobState::kFinished || phase_.state == JobState::kFailed;
}

// The version that `next` asks for: the present one where nothing changes.
store::PlanVersion ManagedJob::Planned(const Phase& next) const {
  store::PlanVersion version;
  version.job = record_.id;
  version.at_seconds = context_->now_seconds();
  if (next.state == JobState::kFinished || next.state == JobState::kFailed) {
    version.reason = "no_plan";
  } else if (next.curve == nullptr) {
    return phase_.version;
  } else {
    const double now = version.at_seconds;
    std::vector<store::StragglerRecord> active;
    std::copy_if(next.stragglers.begin(), next.stragglers.end(), std::back_inserter(active),
                 [&](const store::StragglerRecord& straggler) { return IsActive(straggler, now); });
    const Result<double> target = next.curve->TargetSeconds(next.target);
    const Assignment assignment =
        Assign(*next.curve, target.value_or(next.curve->fastest().requested_time_seconds), shape_,
               active, ranks_);
    version.reason = assignment.for_straggler ? "straggler" : "target";
    version.plan = assignment.plan;
    version.exceptions = assignment.exceptions;
  }
  const store::PlanVersion& now = phase_.version;
  // Ranks hear of another comparison as of another plan.
  const bool same_comparison =
      next.watch_json == phase_.watch_json || ComparisonOf(next) == ComparisonOf(phase_);
  const bool is_same = now.version > 0 && same_comparison && version.reason == now.reason &&
                       version.plan == now.plan && version.exceptions == now.exceptions;
  if (is_same) return now;
  version.version = now.version + 1;
  return version;
}

std::shared_ptr<const PublishedPlan> ManagedJob::Published() const {
  auto plan = std::make_shared<PublishedPlan>();
  plan->version = phase_.version;
  plan->comparison = ComparisonOf(phase_);
  if (phase_.version.plan == 0) {
    plan->sentence =
        phase_.state == JobState::kFinished
            ? "The job has finished; run at maximum clocks."
            : fmt::format("There is no plan ({}); run at maximum clocks.", phase_.reason);
    return plan;
  }
  plan->curve = phase_.curve;
  const CurvePlan* const found = phase_.curve->Find(phase_.version.plan);
  plan->requested_time_seconds = found == nullptr ? 0 : found->requested_time_seconds;
  return plan;
}

// Makes `facts`, which lead to `next`, durable, with the version of the plan
// that follows; then all of it happens.
Outcome<void> ManagedJob::Commit(std::vector<Fact> facts, Phase next) {
  if (is_gone_) return Fail(FailureCode::kNotFound, "the job was deleted");
  const bool new_state = next.state != phase_.state;
  if (new_state) {
    const bool is_told = std::any_of(facts.begin(), facts.end(), [](const Fact& fact) {
      return std::holds_alternative<store::StateChange>(fact);
    });
    if (!is_told) {
      facts.emplace_back(
          store::StateChange{.job = record_.id, .state = next.state, .reason = next.reason});
    }
  }
  const double planned_at = context_->now_seconds();
  next.version = Planned(next);
  const bool new_version = next.version.version != phase_.version.version;
  if (new_version) facts.emplace_back(next.version);
  if (facts.empty()) {
    planned_at_ = planned_at;
    return {};
  }
  if (auto written = context_->store.Write(std::move(facts)); !written) {
    return Unavailable(written.error());
  }
  phase_ = std::move(next);
  planned_at_ = planned_at;
  if (new_version) {
    board_.Publish(Published());
    context_->events.Emit({"plan", record_.id,
                           FormatCompact({{"job", record_.id},
                                          {"version", phase_.version.version},
                                          {"reason", phase_.version.reason}})});
  }
  if (new_state) EmitState();
  return {};
}

void ManagedJob::EmitState() const {
  context_->events.Emit({"state", record_.id,
                         FormatCompact({{"job", record_.id},
                                        {"state", store::JobStateName(phase_.state)},
                                        {"reason", phase_.reason}})});
}

// Goes to the next state where what is known allows it. What the store refuses
// is tried again by Tick().
void ManagedJob::Advance() {
  if (IsOver() || is_gone_) return;
  Phase next = phase_;
  if (phase_.state == JobState::kRegistering) {
    if (static_cast<std::int64_t>(ranks_.size()) < shape_.world_size()) return;
    const bool is_given =
        record_.origin == store::JobOrigin::kZeus && context_->has_given_plan(shape_);
    next.state = phase_.curve != nullptr || is_given ? JobState::kRunning
                 : job_ != nullptr                   ? JobState::kCharacterizing
                                                     : JobState::kProfiling;
    last_measured_seconds_ = context_->now_seconds();
    if (!Commit({}, std::move(next))) return;
  }
  if (phase_.state == JobState::kProfiling && record_.origin == store::JobOrigin::kApi &&
      table_.IsComplete(shape_, context_->now_seconds() - last_measured_seconds_)) {
    StartCharacterizing();
  }
}

// The measurements become the job's profile.
bool ManagedJob::StartCharacterizing() {
  store::JobRecord record = record_;
  record.profile_csv = table_.Csv();
  record.blocking_power_watts = table_.BlockingPowerWatts(shape_.pipeline_parallel);
  Result<std::shared_ptr<const Job>> job = BuildJob(record);
  Phase next = phase_;
  store::StateChange change{.job = record_.id,
                            .profile_csv = record.profile_csv,
                            .blocking_power_watts = record.blocking_power_watts};
  if (!job) {
    next.reason = job.error().message;
    next.state = JobState::kFailed;
  } else {
    next.state = JobState::kCharacterizing;
  }
  change.state = next.state;
  change.reason = next.reason;
  if (!Commit({change}, std::move(next))) return false;
  if (!job) return false;
  job_ = *std::move(job);
  RequestImprovement();
  return true;
}

Outcome<void> ManagedJob::SetTarget(const std::string& text) {
  const Result<PlanTarget> target = ParsePlanTarget(text);
  if (!target) return Fail(FailureCode::kInvalid, target.error().message, "at");
  const std::lock_guard lock(mutex_);
  if (phase_.state == JobState::kFinished) {
    return Fail(FailureCode::kConflict, "the job has finished");
  }
  if (phase_.curve != nullptr) {
    if (const auto seconds = phase_.curve->TargetSeconds(*target); !seconds) {
      return Fail(FailureCode::kInvalid, seconds.error().message, "at");
    }
  }
  Phase next = phase_;
  next.target = *target;
  if (next.curve != nullptr && !IsOver()) next.reason.clear();
  auto committed =
      Commit({store::TargetChange{.job = record_.id, .target = text}}, std::move(next));
  if (committed) RequestImprovement();
  return committed;
}

Outcome<void> ManagedJob::Finish() {
  const std::lock_guard lock(mutex_);
  if (phase_.state == JobState::kFinished) return {};
  Phase next = phase_;
  next.state = JobState::kFinished;
  next.reason.clear();
  return Commit({}, std::move(next));
}

Outcome<void> ManagedJob::Delete() {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return {};
  if (auto written = context_->store.Write({store::JobGone{record_.id}}); !written) {
    return Unavailable(written.error());
  }
  is_gone_ = true;
  auto gone = std::make_shared<PublishedPlan>();
  gone->version = phase_.version;
  gone->sentence = "The job was deleted; run at maximum clocks.";
  gone->gone = true;
  board_.Publish(gone);
  context_->events.Emit(
      {"job", record_.id, FormatCompact({{"job", record_.id}, {"deleted", true}})});
  return {};
}

// Whether one began or expired since the plan was looked up, or time was set back.
bool ManagedJob::HasStragglerNews(double now_seconds) const {
  if (phase_.stragglers.empty()) return false;
  if (planned_at_ == kNeverPlanned || now_seconds < planned_at_) return true;
  return std::any_of(phase_.stragglers.begin(), phase_.stragglers.end(),
                     [&](const store::StragglerRecord& straggler) {
                       return IsExpired(straggler, now_seconds) ||
                              IsActive(straggler, now_seconds) != IsActive(straggler, planned_at_);
                     });
}

void ManagedJob::Tick() {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return;
  if (context_->now_seconds() >= flush_iterations_at_) WriteIterations();
  if (IsOver()) return;
  Advance();
  ApplyWatch();
  const double now = context_->now_seconds();
  Phase next = phase_;
  std::vector<Fact> facts;
  std::erase_if(next.stragglers, [&](const store::StragglerRecord& straggler) {
    if (!IsExpired(straggler, now)) return false;
    facts.emplace_back(store::StragglerGone{.job = record_.id, .id = straggler.id});
    return true;
  });
  // Also where none expired: one may have begun. Tried again at the next tick.
  if (HasStragglerNews(now)) static_cast<void>(Commit(std::move(facts), std::move(next)));
  if (improve_again_at_ > 0 && now >= improve_again_at_) RequestImprovement();
}

JobView ManagedJob::View() const {
  const std::lock_guard lock(mutex_);
  JobView view;
  view.record = record_;
  view.record.state = phase_.state;
  view.record.reason = phase_.reason;
  view.has_profile = job_ != nullptr;
  view.target = TargetText(phase_.target);
  view.ranks_registered = static_cast<std::int64_t>(ranks_.size());
  view.ranks_measured = static_cast<std::int64_t>(table_.ranks_done());
  view.stragglers = phase_.stragglers;
  view.plan = board_.Current();
  view.refined = phase_.curve != nullptr && !is_improving_;
  view.iterations = AllIterations();
  view.progress = progress_;
  view.watch = watch_.View();
  for (const auto& [rank, client] : clients_) {
    for (const auto& [name, count] : client.counts) view.client_counts[name] += count;
    view.shadow_clients += client.shadow ? 1 : 0;
    if (!client.error.empty() && view.troubled_clients.size() < kMostTroubledClients) {
      view.troubled_clients.push_back(client);
    }
  }
  return view;
}

}  // namespace perseus::server
