// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/managed_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "server/planning/job_spec.h"

namespace perseus::server {
namespace {

using store::Fact;
using store::JobState;

// Shown of one job; more of them say the same.
constexpr std::size_t kMostTroubledClients = 100;
// By which one server's clock may be behind another's; more is a clock that was set.
constexpr double kMostSkewSeconds = 5;

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
      job_(std::move(built)) {
  phase_ = PhaseOf(stored);
  for (store::RankRecord& rank : stored.ranks) {
    positions_[{rank.dp_rank, rank.pp_rank, rank.tp_rank}] = rank.rank;
    ranks_[rank.rank] = std::move(rank);
  }
  for (const store::Measurements& measured : stored.measurements) {
    if (measured.sweep_round != phase_.sweep_round) continue;
    measured_rows_[measured.rank] += measured.rows.size();
    table_.Add(measured, ranks_.contains(measured.rank) ? ranks_[measured.rank].pp_rank : 0);
  }
  for (const store::IterationSummary& summary : stored.iterations_elsewhere) {
    iterations_elsewhere_[summary.plan_version] = summary;
  }
  seen_revision_ = phase_.revision;
  seen_rows_ = known_rows_ = read_rows_ = own_rows_ = stored.marks.rows;
  last_measured_seconds_ = context_->now_seconds();
  if (IsPending(phase_)) {
    // What can no longer be built is given up (Resume).
    store::JobRecord next = record_;
    next.profile_csv = stored.job.next_profile_csv;
    next.blocking_power_watts = stored.job.next_blocking_power_watts;
    next_job_ = BuildJob(next).value_or(nullptr);
  }
  if (job_ == nullptr || !stored.curve) return;
  // A curve that cannot be read back is computed again.
  if (auto curve = Curve::Make(job_, *stored.curve)) phase_.curve = *std::move(curve);
  if (phase_.curve != nullptr && !IsOver()) phase_.reason = TargetReason(phase_);
}

ManagedJob::Phase ManagedJob::PhaseOf(const store::StoredJob& stored) {
  Phase phase;
  phase.state = stored.job.state;
  phase.reason = stored.job.reason;
  phase.target = TargetOf(stored.job);
  phase.stragglers = stored.stragglers;
  phase.last_straggler = stored.last_straggler;
  phase.watch_json = stored.job.detection_json;
  phase.curve_mark = stored.marks.curve;
  if (stored.version) phase.version = *stored.version;
  phase.sweep_round = stored.job.sweep_round;
  phase.settled_round = stored.job.settled_round;
  phase.profile_source = stored.job.profile_source;
  phase.revision = stored.marks.revision;
  return phase;
}

void ManagedJob::Resume(bool ask_for_work) {
  const std::lock_guard lock(mutex_);
  ReadWatch();
  const bool needs_job = (phase_.state == JobState::kCharacterizing && !IsPending(phase_)) ||
                         phase_.state == JobState::kRunning;
  if (needs_job && job_ == nullptr && record_.origin == store::JobOrigin::kApi) {
    Phase next = phase_;
    next.state = JobState::kFailed;
    next.reason = "the stored profile can no longer be read";
    static_cast<void>(Commit({}, std::move(next)));
  }
  if (IsPending(phase_) && next_job_ == nullptr) {
    static_cast<void>(GiveUpSweep("the new measurements can no longer be read"));
  }
  if (phase_.version.version > 0) PublishNow();
  Advance();
  if (ask_for_work && Lacks(phase_)) AskForWork();
}

void ManagedJob::PublishNow() {
  // A curve that could not be read back is computed again, and published then.
  if (phase_.version.plan == 0 || phase_.curve != nullptr) board_.Publish(Published());
}

// Why another plan runs than the target asks for: it was set before anybody knew
// what the job can do. Empty: none does.
std::string ManagedJob::TargetReason(const Phase& next) {
  const Result<double> seconds = next.curve->TargetSeconds(next.target);
  if (seconds) return "";
  return fmt::format("the target {} cannot be met, so the fastest plan runs: {}",
                     PlanTargetText(next.target), seconds.error().message);
}

bool ManagedJob::IsOver() const {
  return phase_.state == JobState::kFinished || phase_.state == JobState::kFailed;
}

// The servers' clocks differ a little, however well they are measured: what one of
// them saw begin or expire when it made the last version has done so for all.
double ManagedJob::PlanningTime() const {
  const double now = context_->now_seconds();
  const double at_seconds = phase_.version.at_seconds;
  const bool is_behind = now < at_seconds && at_seconds - now < kMostSkewSeconds;
  return is_behind ? at_seconds : now;
}

// Of a phase that has a curve.
Assignment ManagedJob::AssignmentAt(const Phase& phase, double now_seconds) const {
  std::vector<store::StragglerRecord> active;
  std::copy_if(
      phase.stragglers.begin(), phase.stragglers.end(), std::back_inserter(active),
      [&](const store::StragglerRecord& straggler) { return IsActive(straggler, now_seconds); });
  const Result<double> target = phase.curve->TargetSeconds(phase.target);
  return Assign(*phase.curve, target.value_or(phase.curve->fastest().requested_time_seconds),
                shape_, active, ranks_);
}

// The version that `next` asks for: the present one where nothing changes.
store::PlanVersion ManagedJob::Planned(const Phase& next) const {
  store::PlanVersion version;
  version.job = record_.id;
  version.at_seconds = PlanningTime();
  // Ranks hear of a new sweep, and of its end, as of another plan.
  const bool same_wish =
      (next.state == JobState::kProfiling) == (phase_.state == JobState::kProfiling);
  if (next.state == JobState::kFinished || next.state == JobState::kFailed) {
    version.reason = "no_plan";
  } else if (next.curve == nullptr) {
    if (same_wish || phase_.version.version == 0) return phase_.version;
    version.reason = "no_plan";
  } else {
    const Assignment assignment = AssignmentAt(next, version.at_seconds);
    version.reason = assignment.for_straggler ? "straggler" : "target";
    version.plan = assignment.plan;
    version.exceptions = assignment.exceptions;
  }
  const store::PlanVersion& now = phase_.version;
  // Ranks hear of another comparison as of another plan.
  const bool same_comparison =
      next.watch_json == phase_.watch_json || ComparisonOf(next) == ComparisonOf(phase_);
  // Above every one that a rank may have seen, also where the store lost the last ones.
  const std::int64_t last = std::max(now.version, board_.version());
  const bool is_same = now.version > 0 && same_comparison && same_wish && now.version == last &&
                       version.reason == now.reason && version.plan == now.plan &&
                       version.exceptions == now.exceptions;
  if (is_same) return now;
  version.version = last + 1;
  return version;
}

std::shared_ptr<const PublishedPlan> ManagedJob::Published() const {
  auto plan = std::make_shared<PublishedPlan>();
  plan->version = phase_.version;
  plan->comparison = ComparisonOf(phase_);
  plan->profile_wanted = phase_.state == JobState::kProfiling;
  if (phase_.version.plan == 0) {
    plan->sentence =
        phase_.state == JobState::kFinished
            ? "The job has finished; run at maximum clocks. For another run give another client "
              "key, "
              "or delete this job first."
            : fmt::format("There is no plan ({}); run at maximum clocks.", phase_.reason);
    return plan;
  }
  plan->curve = phase_.curve;
  const CurvePlan* const found = phase_.curve->Find(phase_.version.plan);
  plan->requested_time_seconds = found == nullptr ? 0 : found->requested_time_seconds;
  if (!phase_.version.exceptions.empty()) {
    const Assignment assignment = AssignmentAt(phase_, phase_.version.at_seconds);
    plan->straggler_seconds = assignment.straggler_time_seconds;
    plan->straggler_baseline_seconds = assignment.straggler_baseline_seconds;
  }
  return plan;
}

// Makes `facts`, which lead to `next`, durable, with the version of the plan
// that follows; then all of it happens.
Outcome<void> ManagedJob::Commit(std::vector<Fact> facts, Phase next) {
  if (is_gone_) return Fail(FailureCode::kNotFound, "the job was deleted");
  if (next.state != phase_.state) {
    const bool is_told = std::any_of(facts.begin(), facts.end(), [](const Fact& fact) {
      return std::holds_alternative<store::StateChange>(fact);
    });
    if (!is_told) {
      facts.emplace_back(
          store::StateChange{.job = record_.id, .state = next.state, .reason = next.reason});
    }
  }
  const double planned_at = PlanningTime();
  next.version = Planned(next);
  if (next.version.version != phase_.version.version) facts.emplace_back(next.version);
  if (facts.empty()) {
    planned_at_ = planned_at;
    return {};
  }
  const bool has_work = std::any_of(facts.begin(), facts.end(), [](const Fact& fact) {
    return std::holds_alternative<store::WorkWanted>(fact);
  });
  const auto written = context_->store.Write(std::move(facts), phase_.revision);
  if (!written) {
    // Also where it is not known whether it was written.
    context_->refresh_soon(record_.id);
    if (written.error().code != ErrorCode::kConflict) return Unavailable(written.error());
    return Fail(FailureCode::kStale, "another server changed the job at the same time; try again");
  }
  next.revision = written->revision;
  next.curve_mark = written->curve;
  Enter(std::move(next));
  planned_at_ = planned_at;
  if (has_work) context_->wake_worker();
  return {};
}

// `next` is durable.
void ManagedJob::Enter(Phase next) {
  const bool new_state = next.state != phase_.state;
  const bool new_version = next.version.version != phase_.version.version;
  phase_ = std::move(next);
  seen_revision_ = phase_.revision;
  if (new_version) {
    PublishNow();
    context_->events.Emit({EventKind::kPlan, record_.id,
                           FormatCompact({{"job", record_.id},
                                          {"version", phase_.version.version},
                                          {"reason", phase_.version.reason}}),
                           phase_.revision});
  }
  if (new_state) EmitState();
}

void ManagedJob::EmitState() const {
  context_->events.Emit({EventKind::kState, record_.id,
                         FormatCompact({{"job", record_.id},
                                        {"state", store::JobStateName(phase_.state)},
                                        {"reason", phase_.reason}}),
                         phase_.revision});
}

// Goes to the next state where what is known allows it. What the store refuses
// is tried again by Tick(); what another server did first is read.
void ManagedJob::Advance() {
  if (IsOver() || is_gone_) return;
  if (phase_.state == JobState::kRegistering) {
    if (static_cast<std::int64_t>(ranks_.size()) < shape_.world_size()) return;
    const bool is_to_measure = job_ == nullptr && record_.origin == store::JobOrigin::kApi;
    if (is_to_measure && TakeKnownProfile()) return;
    Phase next = phase_;
    const bool is_given =
        record_.origin == store::JobOrigin::kZeus && context_->has_given_plan(shape_);
    next.state = phase_.curve != nullptr || is_given ? JobState::kRunning
                 : job_ != nullptr                   ? JobState::kCharacterizing
                                                     : JobState::kProfiling;
    last_measured_seconds_ = context_->now_seconds();
    if (!Commit({}, std::move(next))) return;
  }
  if (!IsProfileComplete()) return;
  // No row of another server's is to lack: its ranks' sweeps may be among them.
  if (context_->store.is_shared() && checked_rows_ != known_rows_) {
    context_->refresh_soon(record_.id);
    return;
  }
  StartCharacterizing();
}

Outcome<void> ManagedJob::SetTarget(const std::string& text) {
  const Result<PlanTarget> target = ParsePlanTarget(text);
  if (!target) return Fail(FailureCode::kInvalid, target.error().message, "at");
  return OnFresh([&]() -> Outcome<void> {
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
    std::vector<Fact> facts = {store::TargetChange{.job = record_.id, .target = text}};
    AddWork(next, &facts);
    return Commit(std::move(facts), std::move(next));
  });
}

Outcome<void> ManagedJob::Finish() {
  return OnFresh([&]() -> Outcome<void> {
    if (phase_.state == JobState::kFinished) return {};
    Phase next = phase_;
    next.state = JobState::kFinished;
    next.reason.clear();
    return Commit({}, std::move(next));
  });
}

Outcome<void> ManagedJob::Delete() {
  const std::lock_guard lock(mutex_);
  if (is_gone_) return {};
  if (auto written = context_->store.Write({store::JobGone{record_.id}}); !written) {
    return Unavailable(written.error());
  }
  Vanish();
  return {};
}

// It is no longer in the store.
void ManagedJob::Vanish() {
  is_gone_ = true;
  auto gone = std::make_shared<PublishedPlan>();
  gone->version = phase_.version;
  gone->sentence = "The job was deleted; run at maximum clocks.";
  gone->gone = true;
  board_.Publish(gone);
  context_->events.Emit(
      {EventKind::kJob, record_.id, FormatCompact({{"job", record_.id}, {"deleted", true}})});
}

void ManagedJob::Tick() {
  std::vector<Fact> iterations;
  {
    const std::lock_guard lock(mutex_);
    if (is_gone_) return;
    if (context_->now_seconds() >= flush_iterations_at_) iterations = TakeIterations();
    if (phase_.revision <= lost_revision_) PassLostRevision();
    if (!IsOver()) Advance();
    if (!IsOver()) ApplyWatch();
    if (!IsOver()) LookAtStragglers();
    if (work_again_at_ > 0 && context_->now_seconds() >= work_again_at_) AskForWork();
  }
  if (!iterations.empty()) WriteIterations(std::move(iterations));
}

// The numbers that the store counts again would mean other rows to a server that still holds
// those of before: this one goes beyond them.
void ManagedJob::PassLostRevision() {
  Phase same = phase_;
  static_cast<void>(Commit(
      {store::TargetChange{.job = record_.id, .target = PlanTargetText(same.target)}}, same));
}

JobView ManagedJob::View() const {
  const std::lock_guard lock(mutex_);
  JobView view;
  view.record = record_;
  view.record.state = phase_.state;
  view.record.reason = phase_.reason;
  view.has_profile = job_ != nullptr;
  view.revision = phase_.revision;
  view.target = PlanTargetText(phase_.target);
  view.ranks_registered = static_cast<std::int64_t>(ranks_.size());
  view.ranks_measured = static_cast<std::int64_t>(table_.ranks_done());
  view.stragglers = phase_.stragglers;
  view.plan = board_.Current();
  view.refined = phase_.curve != nullptr && (!Lacks(phase_) || has_given_up_);
  view.iterations = AllIterations();
  view.progress = view.refined ? 1 : progress_.load();
  view.profile_source = phase_.profile_source;
  view.sweeps_again = phase_.sweep_round > phase_.settled_round;
  view.profiling = SummaryOf(table_, shape_.pipeline_parallel);
  view.drifts = drift_.Drifts();
  view.watch = watch_.View(context_->now_seconds());
  view.watch.ranks = ranks_.size();
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
