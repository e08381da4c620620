// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "common/json_text.h"
#include "server/domain/draft.h"
#include "server/domain/profile_library.h"
#include "server/planning/doubts.h"

// Sources of a job's profile: its ranks' measurements, another job's, or a new sweep while training
// goes on under the plans of the old one.
namespace perseus::server {

namespace {

using store::JobState;
using Next = store::StateChange::Next;

// The measurements become the job's profile; those of a later sweep once there are plans for it.
Decision StartCharacterizing(const Situation& on) {
  const JobLife& job = on.job;
  store::StateChange change{.job = on.id(), .state = JobState::kCharacterizing};
  if (job.phase.sweep_round > job.phase.settled_round) {
    change.next_profile_csv = job.table.Csv();
    change.next_blocking_power_watts = job.table.BlockingPowerWatts(job.shape.pipeline_parallel);
  } else {
    change.profile_csv = job.table.Csv();
    change.blocking_power_watts = job.table.BlockingPowerWatts(job.shape.pipeline_parallel);
    change.profile_source = kMeasuredSource;
  }
  Decision draft;
  draft.wants_plans = true;
  draft.facts.emplace_back(std::move(change));
  for (const ProfileKey& key : job.table.Throttled()) {
    draft.announcements.push_back(
        ProfilingNews(fmt::format("{} was measured only while the GPUs slowed themselves down; its "
                                  "row in the profile is marked",
                                  ProfileKeyText(key))));
  }
  return draft;
}

// Which profile of the library would do. Empty: the job does not ask for any.
std::string WantedLayout(const Situation& on) {
  const LibraryRequest request = ParseLibraryRequest(on.job.record.library_json);
  if (!request.may_reuse) return "";
  return LayoutOf(request, on.job.record.settings_json, on.job.shape, on.job.ranks);
}

Decision Begin(const Situation& on, const Advance& command) {
  const Phase& phase = on.phase();
  const bool is_api = on.job.record.origin == store::JobOrigin::kApi;
  Decision draft;
  const bool has_profile = !phase.profile_source.empty();
  if (is_api && !has_profile && command.may_reuse) {
    draft.ask_layout = WantedLayout(on);
    if (!draft.ask_layout.empty()) return draft;
  }
  const bool is_given = !is_api && command.has_given_plan;
  const JobState state = phase.built.curve != nullptr || is_given ? JobState::kRunning
                         : has_profile                            ? JobState::kCharacterizing
                                                                  : JobState::kProfiling;
  draft.facts.emplace_back(store::StateChange{.job = on.id(), .state = state});
  return draft;
}

// The new sweep of a job, which keeps its plans meanwhile.
Decision NewSweep(const Situation& on) {
  Decision draft;
  store::StateChange change{
      .job = on.id(), .state = JobState::kProfiling, .sweep_round = on.phase().sweep_round + 1};
  // A profile that has no plan is tried no more.
  if (on.phase().state == JobState::kFailed) change.profile_source = "";
  draft.facts.emplace_back(std::move(change));
  return draft;
}

// Measures a doubtful measured profile again, a bounded number of times.
Decision MeasureAgain(const Situation& on) {
  const Phase& phase = on.phase();
  const bool is_measured = phase.profile_source == kMeasuredSource && phase.built.job != nullptr &&
                           phase.sweep_round == phase.settled_round;
  if (!is_measured || phase.sweep_round >= kMostSweepsByItself) return Decision();
  const std::string doubt = DoubtOf(*phase.built.job);
  if (doubt.empty()) return Decision();
  Decision draft = NewSweep(on);
  draft.announcements.push_back(ProfilingNews(
      fmt::format("the ranks measure again, since the profile is doubtful: {}", doubt)));
  return draft;
}

}  // namespace

Announcement ProfilingNews(const std::string& sentence, int rank) {
  nlohmann::ordered_json json = {{"sentence", sentence}};
  if (rank >= 0) json["rank"] = rank;
  return {EventKind::kProfiling, FormatCompact(json)};
}

Outcome<Decision> DecideOn(const Situation& on, const Advance& command) {
  const JobLife& job = on.job;
  if (job.phase.state == JobState::kRunning) return MeasureAgain(on);
  if (job.phase.state == JobState::kRegistering) {
    const bool all_there = static_cast<std::int64_t>(job.ranks.size()) >= job.shape.world_size();
    return all_there ? Begin(on, command) : Decision();
  }
  const bool is_complete = job.phase.state == JobState::kProfiling &&
                           job.record.origin == store::JobOrigin::kApi &&
                           job.table.IsComplete(job.shape, command.seconds_since_measured);
  return is_complete ? StartCharacterizing(on) : Decision();
}

Outcome<Decision> DecideOn(const Situation& on, const UseProfile& command) {
  if (on.phase().state != JobState::kRegistering || !on.phase().profile_source.empty()) {
    return Decision();
  }
  const store::ProfileRecord& known = command.profile;
  Decision draft;
  draft.wants_plans = true;
  draft.built.job = command.job;
  draft.facts.emplace_back(store::StateChange{
      .job = on.id(),
      .state = JobState::kCharacterizing,
      .profile_csv = known.profile_csv,
      .blocking_power_watts = known.blocking_power_watts,
      .profile_source = fmt::format("reused from {} ({})", known.job, known.id)});
  draft.announcements.push_back(ProfilingNews(
      fmt::format("ranks need not measure: the profile of job {} ({}) has the same model, "
                  "layout and GPUs; 'perseus job reprofile' makes them measure",
                  known.job, known.id)));
  if (!on.phase().conditions) return draft;
  const ConditionsState state = StartedFrom(known, *on.phase().conditions);
  draft.facts.emplace_back(
      store::ConditionsChange{.job = on.id(), .conditions_json = FormatConditionsState(state)});
  if (state.start) {
    draft.announcements.push_back(ProfilingNews(fmt::format(
        "the first plans are made for the noise and latency that job {} measured with this profile",
        state.start->job)));
  }
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const Reprofile& /*command*/) {
  const Phase& phase = on.phase();
  if (phase.state == JobState::kFinished) return HasFinished();
  if (on.job.record.origin == store::JobOrigin::kZeus) {
    return Fail(FailureCode::kConflict,
                "the job was created by a Zeus client, and such clients do not measure; give a "
                "profile with 'perseus job create'");
  }
  if (phase.state == JobState::kRegistering) {
    return Fail(FailureCode::kConflict,
                "not all ranks of the job are registered yet; 'perseus job show' names those "
                "that are missing");
  }
  if (phase.state == JobState::kProfiling || IsPending(phase)) return Decision();
  if (phase.state == JobState::kCharacterizing) {
    return Fail(FailureCode::kConflict,
                "the job's first plan is being computed; try again when it is ready");
  }
  Decision draft = NewSweep(on);
  Note(&draft, "sweep", std::to_string(phase.sweep_round), std::to_string(phase.sweep_round + 1));
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const CancelReprofile& /*command*/) {
  if (on.phase().sweep_round == on.phase().settled_round || IsOver(on.phase())) return Decision();
  Decision draft = GiveUpSweep(on, "");
  // After a sweep is given up on request, no other begins by itself.
  std::get<store::StateChange>(draft.facts.front()).sweep_round =
      std::max(on.phase().sweep_round, kMostSweepsByItself);
  Note(&draft, "sweep", std::to_string(on.phase().sweep_round), "given up");
  return draft;
}

Decision GiveUpSweep(const Situation& on, const std::string& reason) {
  const Phase& phase = on.phase();
  const bool has_profile = !phase.profile_source.empty();
  const JobState state = phase.built.curve != nullptr ? JobState::kRunning
                         : has_profile                ? JobState::kCharacterizing
                                                      : JobState::kFailed;
  Decision draft;
  draft.wants_plans = true;
  draft.facts.emplace_back(
      store::StateChange{.job = on.id(),
                         .state = state,
                         .reason = reason.empty() && !has_profile ? "there is no profile" : reason,
                         .next = Next::kDrop});
  if (!reason.empty()) draft.announcements.push_back(ProfilingNews(reason));
  return draft;
}

// A job's way to its plans, step by step. A computed step may come late, and is then about an
// earlier state.

namespace {

using store::JobState;

// Keeps a profile that the ranks measured, beyond the job, once it makes plans.
void KeepProfile(const Situation& on, const AdoptPlans& command,
                 std::optional<ConditionsState>* conditions, Decision* draft) {
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
  draft->facts.emplace_back(std::move(kept));
}

}  // namespace

bool IsPast(const JobLife& job, const PlanningStep& step) {
  const Phase& phase = job.phase;
  return phase.is_gone || IsOver(phase) || phase.built.curve != step.curve ||
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
  step.curve = phase.built.curve;
  step.target = phase.target;
  // Ids of a version whose curve could not be read back stay taken, too.
  step.first_id = phase.built.curve != nullptr
                      ? phase.built.curve->NextId()
                      : phase.version.plan + std::int64_t{kLadderPlans} * 4;
  return step;
}

Outcome<Decision> DecideOn(const Situation& on, const AdoptPlans& command) {
  Decision draft;
  if (IsPast(on.job, command.step)) return draft;
  draft.wants_plans = true;
  draft.built = command.built;
  std::optional<ConditionsState> conditions = on.phase().conditions;
  store::CurveRecord record = command.record;
  record.job = on.id();
  draft.facts.emplace_back(std::move(record));
  if (command.step.is_pending) {
    draft.facts.emplace_back(store::StateChange{.job = on.id(),
                                                .state = JobState::kRunning,
                                                .profile_source = kMeasuredSource,
                                                .next = store::StateChange::Next::kAdopt});
    // The new profile knows the times of these GPUs better.
    if (conditions) conditions->plan.times.clear();
    if (conditions && conditions->next) conditions->next->times.clear();
  } else if (on.phase().state == JobState::kCharacterizing) {
    draft.facts.emplace_back(store::StateChange{.job = on.id(), .state = JobState::kRunning});
  }
  if (command.step.conditions) {
    conditions->plan = *command.step.conditions;
    conditions->next.reset();
    conditions->planned_at_seconds = on.now.day_seconds;
    draft.announcements.push_back(
        ProfilingNews("plans are made anew, for what the ranks measure; 'perseus job "
                      "show' has them"));
  }
  KeepProfile(on, command, &conditions, &draft);
  if (conditions != on.phase().conditions) {
    draft.facts.emplace_back(store::ConditionsChange{
        .job = on.id(), .conditions_json = FormatConditionsState(*conditions)});
  }
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const GiveUpPlans& command) {
  if (IsPast(on.job, command.step)) return Decision();
  if (command.step.is_pending) {
    return GiveUpSweep(
        on, fmt::format("the new profile has no plan, so the old one stays: {}", command.sentence));
  }
  // There are plans; only better ones lack.
  if (on.phase().built.curve != nullptr) return Decision();
  Decision draft;
  draft.facts.emplace_back(
      store::StateChange{.job = on.id(), .state = JobState::kFailed, .reason = command.sentence});
  return draft;
}

Outcome<Decision> DecideOn(const Situation& on, const AskForPlans& /*command*/) {
  Decision draft;
  if (LacksPlans(on.phase())) draft.work = WorkOn(on.phase());
  return draft;
}

}  // namespace perseus::server
