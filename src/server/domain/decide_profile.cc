// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Where a job's profile comes from: its ranks' measurements, another job's, or a new sweep
// while training goes on under the plans of the old one.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "common/json_text.h"
#include "server/domain/draft.h"
#include "server/domain/profile_library.h"
#include "server/planning/doubts.h"

namespace perseus::server {
namespace {

using store::JobState;
using Next = store::StateChange::Next;

// The measurements become the job's profile; those of a later sweep once there are plans for it.
Draft StartCharacterizing(const Situation& on) {
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
  Draft draft;
  draft.wants_plans = true;
  draft.decision.facts.emplace_back(std::move(change));
  for (const ProfileKey& key : job.table.Throttled()) {
    draft.decision.announcements.push_back(
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

Draft Begin(const Situation& on, const Advance& command) {
  const Phase& phase = on.phase();
  const bool is_api = on.job.record.origin == store::JobOrigin::kApi;
  Draft draft;
  const bool has_profile = !phase.profile_source.empty();
  if (is_api && !has_profile && command.may_reuse) {
    draft.decision.ask_layout = WantedLayout(on);
    if (!draft.decision.ask_layout.empty()) return draft;
  }
  const bool is_given = !is_api && command.has_given_plan;
  const JobState state = phase.built.curve != nullptr || is_given ? JobState::kRunning
                         : has_profile                            ? JobState::kCharacterizing
                                                                  : JobState::kProfiling;
  draft.decision.facts.emplace_back(store::StateChange{.job = on.id(), .state = state});
  return draft;
}

// The new sweep of a job, which keeps its plans meanwhile.
Draft NewSweep(const Situation& on) {
  Draft draft;
  store::StateChange change{
      .job = on.id(), .state = JobState::kProfiling, .sweep_round = on.phase().sweep_round + 1};
  // A profile that has no plan is tried no more.
  if (on.phase().state == JobState::kFailed) change.profile_source = "";
  draft.decision.facts.emplace_back(std::move(change));
  return draft;
}

// What was measured and is doubtful is measured again by itself, a bounded number of times.
Draft MeasureAgain(const Situation& on) {
  const Phase& phase = on.phase();
  const bool is_measured = phase.profile_source == kMeasuredSource && phase.built.job != nullptr &&
                           phase.sweep_round == phase.settled_round;
  if (!is_measured || phase.sweep_round >= kMostSweepsByItself) return Draft();
  const std::string doubt = DoubtOf(*phase.built.job);
  if (doubt.empty()) return Draft();
  Draft draft = NewSweep(on);
  draft.decision.announcements.push_back(ProfilingNews(
      fmt::format("the ranks measure again, since the profile is doubtful: {}", doubt)));
  return draft;
}

}  // namespace

Announcement ProfilingNews(const std::string& sentence, int rank) {
  nlohmann::ordered_json json = {{"sentence", sentence}};
  if (rank >= 0) json["rank"] = rank;
  return {EventKind::kProfiling, FormatCompact(json)};
}

Outcome<Draft> DecideOn(const Situation& on, const Advance& command) {
  const JobLife& job = on.job;
  if (job.phase.state == JobState::kRunning) return MeasureAgain(on);
  if (job.phase.state == JobState::kRegistering) {
    const bool all_there = static_cast<std::int64_t>(job.ranks.size()) >= job.shape.world_size();
    return all_there ? Begin(on, command) : Draft();
  }
  const bool is_complete = job.phase.state == JobState::kProfiling &&
                           job.record.origin == store::JobOrigin::kApi &&
                           job.table.IsComplete(job.shape, command.seconds_since_measured);
  if (!is_complete) return Draft();
  // No row of another server's is to lack: its ranks' sweeps may be among them.
  if (command.all_rows_known) return StartCharacterizing(on);
  Draft draft;
  draft.decision.ask_rows = true;
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const UseProfile& command) {
  if (on.phase().state != JobState::kRegistering || !on.phase().profile_source.empty()) {
    return Draft();
  }
  const store::ProfileRecord& known = command.profile;
  Draft draft;
  draft.wants_plans = true;
  draft.decision.built.job = command.job;
  draft.decision.facts.emplace_back(store::StateChange{
      .job = on.id(),
      .state = JobState::kCharacterizing,
      .profile_csv = known.profile_csv,
      .blocking_power_watts = known.blocking_power_watts,
      .profile_source = fmt::format("reused from {} ({})", known.job, known.id)});
  draft.decision.announcements.push_back(ProfilingNews(
      fmt::format("ranks need not measure: the profile of job {} ({}) has the same model, "
                  "layout and GPUs; 'perseus job reprofile' makes them measure",
                  known.job, known.id)));
  if (!on.phase().conditions) return draft;
  const ConditionsState state = StartedFrom(known, *on.phase().conditions);
  draft.decision.facts.emplace_back(
      store::ConditionsChange{.job = on.id(), .conditions_json = FormatConditionsState(state)});
  if (state.start) {
    draft.decision.announcements.push_back(ProfilingNews(fmt::format(
        "the first plans are made for the noise and latency that job {} measured with this profile",
        state.start->job)));
  }
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const Reprofile& /*command*/) {
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
  if (phase.state == JobState::kProfiling || IsPending(phase)) return Draft();
  if (phase.state == JobState::kCharacterizing) {
    return Fail(FailureCode::kConflict,
                "the job's first plan is being computed; try again when it is ready");
  }
  Draft draft = NewSweep(on);
  Note(&draft, "sweep", std::to_string(phase.sweep_round), std::to_string(phase.sweep_round + 1));
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const CancelReprofile& /*command*/) {
  if (on.phase().sweep_round == on.phase().settled_round || IsOver(on.phase())) return Draft();
  Draft draft = GiveUpSweep(on, "");
  // Who ends a sweep wants no other one that begins by itself.
  std::get<store::StateChange>(draft.decision.facts.front()).sweep_round =
      std::max(on.phase().sweep_round, kMostSweepsByItself);
  Note(&draft, "sweep", std::to_string(on.phase().sweep_round), "given up");
  return draft;
}

Draft GiveUpSweep(const Situation& on, const std::string& reason) {
  const Phase& phase = on.phase();
  const bool has_profile = !phase.profile_source.empty();
  const JobState state = phase.built.curve != nullptr ? JobState::kRunning
                         : has_profile                ? JobState::kCharacterizing
                                                      : JobState::kFailed;
  Draft draft;
  draft.wants_plans = true;
  draft.decision.facts.emplace_back(
      store::StateChange{.job = on.id(),
                         .state = state,
                         .reason = reason.empty() && !has_profile ? "there is no profile" : reason,
                         .next = Next::kDrop});
  if (!reason.empty()) draft.decision.announcements.push_back(ProfilingNews(reason));
  return draft;
}

}  // namespace perseus::server
