// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_JOB_LIFE_H_
#define PERSEUS_SERVER_DOMAIN_JOB_LIFE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "server/base/shape.h"
#include "server/domain/profile_table.h"
#include "server/domain/watch_settings.h"
#include "server/planning/curve.h"
#include "store/facts.h"

// A job as a value, and what facts make of it. Nothing here knows of threads, clocks, locks, files
// or sockets: a server that starts, one that reads what another wrote and one whose own commit
// ended all call Apply() with the same facts, and all come to the same state.
namespace perseus::server {

// What two moments are told apart by.
struct Moment {
  double day_seconds = 0;  // Time of day, UTC since 1970. All servers on one store share it.
  double seconds = 0;      // Of this process. It never goes back and is never set.
};

// What is made of a job's texts: too slow for Apply(), so whoever has the time makes it before.
// All three are immutable.
struct Built {
  std::shared_ptr<const Job> job;       // Of the profile.
  std::shared_ptr<const Job> next_job;  // Of a new sweep's profile that has no plans yet.
  std::shared_ptr<const Curve> curve;
};

// What changes as one: the rows that JobMarks::revision counts.
struct Phase {
  store::JobState state = store::JobState::kRegistering;
  std::string reason;  // As stored. ReasonOf() is what is shown.
  std::string target_text;
  PlanTarget target;
  std::vector<store::StragglerRecord> stragglers;  // By id.
  std::int64_t last_straggler = 0;
  std::string watch_json;      // Settings of detection and comparison, as stored. Empty: none.
  WatchState watch;            // The same, read.
  store::PlanVersion version;  // 0: none.
  int sweep_round = 0;         // See store::JobRecord.
  int settled_round = 0;
  std::string profile_source;      // Empty: the store has no profile of it yet.
  Built built;                     // Null: not made yet, or what is stored cannot be read.
  double finished_at_seconds = 0;  // 0: it has not, or nobody knows when.
  bool is_gone = false;            // The job was deleted.
};

// Of one job.
struct JobLife {
  store::JobRecord record;  // As created, without profiles. What changes is in `phase`.
  Shape shape;
  Phase phase;
  // How far this server has come with the job: all rows up to marks.rows are in.
  store::JobMarks marks;
  std::int64_t read_rows = 0;      // Of those, what came by reading.
  std::int64_t own_rows = 0;       // The last rows that this server wrote.
  std::int64_t lost_revision = 0;  // The last one that the store no longer has. 0: it has all.
  std::map<int, store::RankRecord> ranks;
  std::map<std::array<int, 3>, int> positions;  // (dp, pp, tp) -> rank, of those above.
  ProfileTable table;                           // The measurements of this sweep.
  std::map<int, std::size_t> measured_rows;     // Of this sweep, by rank.
  std::size_t measurements = 0;                 // Of this sweep.
};

// A fact that is durable happens.
void ApplyToPhase(const store::Fact& fact, const Built& built, Phase* phase);
// Also what facts about ranks and measurements are about.
void Apply(const store::Fact& fact, const Built& built, JobLife* job);

// The facts that make a stored job what it is, in an order in which they can happen.
std::vector<store::Fact> FactsOf(const store::StoredJob& stored);
// Of those: the job that the store holds.
JobLife Replay(const store::StoredJob& stored, const Built& built);
// Of those that make its phase.
Phase ReplayPhase(const store::StoredJob& stored, const Built& built);

// Only rows of the present sweep make its profile.
void ForgetSweep(JobLife* job);

inline std::array<int, 3> PositionOf(const store::RankRecord& rank) {
  return {rank.dp_rank, rank.pp_rank, rank.tp_rank};
}

// Nothing more is planned.
inline bool IsOver(const Phase& phase) {
  return phase.state == store::JobState::kFinished || phase.state == store::JobState::kFailed;
}
// The first plans of a new sweep's profile are being made.
inline bool IsPending(const Phase& phase) {
  return phase.state == store::JobState::kCharacterizing && phase.sweep_round > phase.settled_round;
}
// Whether ranks may send measurements.
inline bool TakesMeasurements(const Phase& phase) {
  return phase.state == store::JobState::kProfiling ||
         (phase.state == store::JobState::kRegistering && phase.profile_source.empty());
}
// Whether there is no curve, a better one is to be made, or the plan for a new target.
bool LacksPlans(const Phase& phase);

// Why the job is in its state, or runs another plan than its target asks for.
std::string ReasonOf(const Phase& phase);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_JOB_LIFE_H_
