// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What an operator asks of a job as a whole.

#include <string>
#include <utility>

#include "common/labels.h"
#include "server/domain/draft.h"

namespace perseus::server {

Outcome<Draft> DecideOn(const Situation& on, const SetTarget& command) {
  const Phase& phase = on.phase();
  const Result<PlanTarget> target = ParsePlanTarget(command.text);
  if (!target) return Fail(FailureCode::kInvalid, target.error().message, "at");
  if (phase.state == store::JobState::kFinished) return HasFinished();
  if (phase.built.curve != nullptr) {
    if (const auto seconds = phase.built.curve->TargetSeconds(*target); !seconds) {
      return Fail(FailureCode::kInvalid, seconds.error().message, "at");
    }
  }
  Draft draft;
  draft.wants_plans = true;
  draft.decision.facts.emplace_back(store::TargetChange{.job = on.id(), .target = command.text});
  // A sentence on a sweep that was given up has been read by who sets a target.
  if (phase.built.curve != nullptr && !IsOver(phase) && !phase.reason.empty()) {
    draft.decision.facts.emplace_back(store::StateChange{.job = on.id(), .state = phase.state});
  }
  Note(&draft, "point", PlanTargetText(phase.target), PlanTargetText(*target));
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const SetWatch& command) {
  const Phase& phase = on.phase();
  if (phase.state == store::JobState::kFinished) return HasFinished();
  WatchState state = phase.watch;
  WatchSettings& settings = state.settings;
  settings.mode = command.mode.value_or(settings.mode);
  settings.shift.threshold = command.threshold.value_or(settings.shift.threshold);
  settings.shift.window = command.window.value_or(settings.shift.window);
  settings.comparison = command.comparison.value_or(settings.comparison);
  Draft draft;
  const std::string json = FormatWatchState(state);
  draft.decision.facts.emplace_back(store::DetectionChange{.job = on.id(), .detection_json = json});
  Note(&draft, "detection and comparison", phase.watch_json, json);
  return draft;
}

// Of several servers that find it, one lengthens: the others know other blocks by then.
Outcome<Draft> DecideOn(const Situation& on, const LengthenStretches& command) {
  if (IsOver(on.phase()) || on.phase().watch.settings.comparison != command.from) return Draft();
  return DecideOn(on, SetWatch{.comparison = command.to});
}

Outcome<Draft> DecideOn(const Situation& on, const SetLabels& command) {
  const JobLabels& before = on.phase().labels;
  JobLabels labels = before;
  for (const auto& [name, value] : command.labels) {
    // What is taken away need not be there, nor have a name that is allowed now.
    if (const auto good = value ? CheckLabel(name, *value) : Result<void>(); !good) {
      return Fail(FailureCode::kInvalid, good.error().message, "labels");
    }
    labels.erase(name);
    if (value) labels.emplace(name, *value);
  }
  if (const auto good = CheckLabels(labels); !good) {
    return Fail(FailureCode::kInvalid, good.error().message, "labels");
  }
  Draft draft;
  if (labels == before) return draft;
  draft.decision.facts.emplace_back(store::LabelsChange{.job = on.id(), .labels = labels});
  Note(&draft, "labels", LabelsText(before), LabelsText(labels));
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const FinishJob& command) {
  Draft draft;
  if (on.phase().state == store::JobState::kFinished) return draft;
  draft.decision.facts.emplace_back(store::StateChange{.job = on.id(),
                                                       .state = store::JobState::kFinished,
                                                       .reason = command.reason,
                                                       .at_seconds = on.now.day_seconds});
  Note(&draft, "state", std::string(store::JobStateName(on.phase().state)), "finished");
  return draft;
}

Outcome<Draft> DecideOn(const Situation& on, const DeleteJob& /*command*/) {
  Draft draft;
  draft.decision.facts.emplace_back(store::JobGone{on.id()});
  Note(&draft, "job", std::string(store::JobStateName(on.phase().state)), "deleted");
  return draft;
}

}  // namespace perseus::server
