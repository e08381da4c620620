// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_DRAFT_H_
#define PERSEUS_SERVER_DOMAIN_DRAFT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/domain/decide.h"

// Only for the files that implement Decide().
namespace perseus::server {

// All that a decision on a command depends on.
struct Situation {
  const JobLife& job;
  const Underway& underway;
  std::int64_t last_version = 0;
  Moment now;

  const Phase& phase() const { return job.phase; }
  const std::string& id() const { return job.record.id; }
};

Outcome<Decision> DecideOn(const Situation& on, const RegisterRank& command);
Outcome<Decision> DecideOn(const Situation& on, const TakeMeasurements& command);
Outcome<Decision> DecideOn(const Situation& on, const Advance& command);
Outcome<Decision> DecideOn(const Situation& on, const UseProfile& command);
Outcome<Decision> DecideOn(const Situation& on, const Reprofile& command);
Outcome<Decision> DecideOn(const Situation& on, const CancelReprofile& command);
// Ends the sweep. The job keeps the profile and the plans that it had before.
Decision GiveUpSweep(const Situation& on, const std::string& reason);
// decide_plans.cc
Outcome<Decision> DecideOn(const Situation& on, const AdoptPlans& command);
Outcome<Decision> DecideOn(const Situation& on, const GiveUpPlans& command);
Outcome<Decision> DecideOn(const Situation& on, const AskForPlans& command);
// decide_conditions.cc
Outcome<Decision> DecideOn(const Situation& on, const TakeConditions& command);
// The conditions of the job that the library keeps. Empty: they say too little, or less than those
// that the job began with.
std::string KeptConditionsOf(const Situation& on, const ConditionsState& state);
// decide.cc
Outcome<Decision> DecideOn(const Situation& on, const SetTarget& command);
Outcome<Decision> DecideOn(const Situation& on, const SetWatch& command);
Outcome<Decision> DecideOn(const Situation& on, const SetLabels& command);
Outcome<Decision> DecideOn(const Situation& on, const FinishJob& command);
Outcome<Decision> DecideOn(const Situation& on, const DeleteJob& command);

Outcome<Decision> DecideOn(const Situation& on, const AddStraggler& command);
Outcome<Decision> DecideOn(const Situation& on, const ClearStraggler& command);
Outcome<Decision> DecideOn(const Situation& on, const ClearStragglers& command);
Outcome<Decision> DecideOn(const Situation& on, const LookAtTime& command);
Outcome<Decision> DecideOn(const Situation& on, const AnswerDetected& command);
Outcome<Decision> DecideOn(const Situation& on, const LengthenPhases& command);

inline tl::unexpected<Failure> HasFinished() {
  return Fail(FailureCode::kConflict,
              "the job has finished, so it cannot be changed; create another one for another run");
}

// An event with a sentence about the job's sweep, or about that of one rank (-1: none).
Announcement ProfilingNews(const std::string& sentence, int rank = -1);

// The work that a job in this phase, which lacks plans, needs.
Work WorkOn(const Phase& phase);

// For the log: the job's `what` changes from `before` to `after`.
void Note(Decision* draft, std::string what, std::string before, std::string after);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_DRAFT_H_
