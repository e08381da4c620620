// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_DRAFT_H_
#define PERSEUS_SERVER_DOMAIN_DRAFT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/domain/decide.h"

// For the files of Decide() alone.
namespace perseus::server {

// What the rules of one command come to. Decide() adds the version of the plan that follows.
struct Draft {
  Decision decision = {};
  bool wants_plans = false;    // What the job then lacks should be computed.
  bool looks_at_time = false;  // The version may change although no fact does.
};

// What a command is decided on.
struct Situation {
  const JobLife& job;
  const Underway& underway;
  std::int64_t last_version = 0;
  Moment now;

  const Phase& phase() const { return job.phase; }
  const std::string& id() const { return job.record.id; }
};

// decide_ranks.cc
Outcome<Draft> DecideOn(const Situation& on, const RegisterRank& command);
Outcome<Draft> DecideOn(const Situation& on, const TakeMeasurements& command);
// decide_profile.cc
Outcome<Draft> DecideOn(const Situation& on, const Advance& command);
Outcome<Draft> DecideOn(const Situation& on, const UseProfile& command);
Outcome<Draft> DecideOn(const Situation& on, const Reprofile& command);
Outcome<Draft> DecideOn(const Situation& on, const CancelReprofile& command);
// The job goes on with what it had before the sweep.
Draft GiveUpSweep(const Situation& on, const std::string& reason);
// decide_plans.cc
Outcome<Draft> DecideOn(const Situation& on, const AdoptPlans& command);
Outcome<Draft> DecideOn(const Situation& on, const GiveUpPlans& command);
Outcome<Draft> DecideOn(const Situation& on, const AskForPlans& command);
Outcome<Draft> DecideOn(const Situation& on, const PassLostRevision& command);
// decide_operator.cc
Outcome<Draft> DecideOn(const Situation& on, const SetTarget& command);
Outcome<Draft> DecideOn(const Situation& on, const SetWatch& command);
Outcome<Draft> DecideOn(const Situation& on, const FinishJob& command);
Outcome<Draft> DecideOn(const Situation& on, const DeleteJob& command);
// decide_stragglers.cc
Outcome<Draft> DecideOn(const Situation& on, const AddStraggler& command);
Outcome<Draft> DecideOn(const Situation& on, const ClearStraggler& command);
Outcome<Draft> DecideOn(const Situation& on, const ClearStragglers& command);
Outcome<Draft> DecideOn(const Situation& on, const LookAtTime& command);
Outcome<Draft> DecideOn(const Situation& on, const AnswerDetected& command);

inline tl::unexpected<Failure> HasFinished() {
  return Fail(FailureCode::kConflict, "the job has finished");
}

// A sentence on the sweep of the job, for its events; of one rank, or of none (-1).
Announcement ProfilingNews(const std::string& sentence, int rank = -1);

// How a job's profile source says that its own ranks measured it.
inline constexpr const char* kMeasuredSource = "measured";

// What such a job lacks. First plans come before better ones: no job waits for its first until
// another has its best.
store::WorkWanted WorkOn(const std::string& id, const Phase& phase);

// For the log: `what` of the job was `before` and is `after` from now on.
void Note(Draft* draft, std::string what, std::string before, std::string after);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_DRAFT_H_
