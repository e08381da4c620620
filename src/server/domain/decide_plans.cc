// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a job comes by its plans, step by step. Whoever computed a step may be late: what was
// computed is about what was.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "server/domain/draft.h"
#include "server/domain/profile_library.h"

namespace perseus::server {
namespace {

using store::JobState;

// What the ranks measured makes plans: it is kept beyond the job.
void KeepProfile(const Situation& on, const AdoptPlans& command,
                 std::optional<ConditionsState>* conditions, Draft* draft) {
  const JobLife& job = on.job;
  const bool is_measured = command.step.is_pending || job.phase.profile_source == kMeasuredSource;
  const bool is_first = command.step.is_pending || job.phase.built.curve == nullptr;
  if (!is_measured || !is_first || command.profile_csv.empty()) return;
  const LibraryRequest request = ParseLibraryRequest(job.record.library_json);
  store::ProfileRecord kept = RecordOf(
      job.record, job.phase.sweep_round,
      LayoutOf(request, job.record.settings_json, job.shape, job.ranks), job.table, job.ranks);
  kept.profile_csv = command.profile_csv;
  kept.blocking_power_watts = command.blocking_power_watts;
  kept.created_at_seconds = on.now.day_seconds;
  if (conditions->has_value()) {
    (*conditions)->profile = kept.id;
    kept.conditions_json = KeptConditionsOf(on, **conditions);
  }
  draft->decision.facts.emplace_back(std::move(kept));
}

}  // namespace

bool IsPast(const JobLife& job, const PlanningStep& step) {
  const Phase& phase = job.phase;
  return phase.is_gone || IsOver(phase) || job.marks.curve != step.curve_mark ||
         IsPending(phase) != step.is_pending ||
         (step.is_pending && phase.sweep_round != step.sweep_round) ||
         (step.conditions && (!phase.conditions || phase.conditions->next != step.conditions));
}

std::optional<PlanningStep> NextPlanningStep(const JobLife& job) {
  const Phase& phase = job.phase;
  if (!LacksPlans(phase)) return std::nullopt;
  PlanningStep step;
  step.is_pending = IsPending(phase);
  const bool has_plans = !step.is_pending && phase.built.curve != nullptr;
  if (has_plans && phase.conditions) step.conditions = phase.conditions->next;
  step.sweep_round = phase.sweep_round;
  if (!step.is_pending && !step.conditions) step.built = phase.built;
  step.curve_mark = job.marks.curve;
  step.target = phase.target;
  // Ids of a version whose curve could not be read back stay taken, too.
  step.first_id = phase.built.curve != nullptr
                      ? phase.built.curve->NextId()
                      : phase.version.plan + std::int64_t{kLadderPlans} * 4;
  return step;
}

// Nothing of a curve that another server replaced meanwhile is kept: this server's lease had run
// out.
Outcome<Draft> DecideOn(const Situation& on, const AdoptPlans& command) {
  Draft draft;
  if (IsPast(on.job, command.step)) return draft;
  draft.wants_plans = true;
  draft.decision.built = command.built;
  std::optional<ConditionsState> conditions = on.phase().conditions;
  store::CurveRecord record = command.record;
  record.job = on.id();
  draft.decision.facts.emplace_back(std::move(record));
  if (command.step.is_pending) {
    draft.decision.facts.emplace_back(store::StateChange{.job = on.id(),
                                                         .state = JobState::kRunning,
                                                         .profile_source = kMeasuredSource,
                                                         .next = store::StateChange::Next::kAdopt});
    // The new profile knows the times of these GPUs better.
    if (conditions) conditions->plan.times.clear();
    if (conditions && conditions->next) conditions->next->times.clear();
  } else if (on.phase().state == JobState::kCharacterizing) {
    draft.decision.facts.emplace_back(
        store::StateChange{.job = on.id(), .state = JobState::kRunning});
  }
  if (command.step.conditions) {
    conditions->plan = *command.step.conditions;
    conditions->next.reset();
    conditions->planned_at_seconds = on.now.day_seconds;
    draft.decision.announcements.push_back(
        ProfilingNews("plans are made anew, for what the ranks measure; 'perseus job "
                      "show' has them"));
  }
  KeepProfile(on, command, &conditions, &draft);
  if (conditions != on.phase().conditions) {
    draft.decision.facts.emplace_back(store::ConditionsChange{
        .job = on.id(), .conditions_json = FormatConditionsState(*conditions)});
  }
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const GiveUpPlans& command) {
  if (IsPast(on.job, command.step)) return Draft();
  if (command.step.is_pending) {
    return GiveUpSweep(
        on, fmt::format("the new profile has no plan, so the old one stays: {}", command.sentence));
  }
  // There are plans; only better ones lack.
  if (on.phase().built.curve != nullptr) return Draft();
  Draft draft;
  draft.decision.facts.emplace_back(
      store::StateChange{.job = on.id(), .state = JobState::kFailed, .reason = command.sentence});
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const AskForPlans& /*command*/) {
  Draft draft;
  if (LacksPlans(on.phase())) draft.decision.facts.emplace_back(WorkOn(on.id(), on.phase()));
  return draft;
}

}  // namespace perseus::server
