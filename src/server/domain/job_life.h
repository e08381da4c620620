// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_JOB_LIFE_H_
#define PERSEUS_SERVER_DOMAIN_JOB_LIFE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "server/base/shape.h"
#include "server/domain/profile_table.h"
#include "server/domain/watch_settings.h"
#include "server/planning/conditions_state.h"
#include "server/planning/curve.h"
#include "server/store/facts.h"

// A job as a value, and its changes by facts. A server applies the same facts in two cases: when it
// loads the job, and when its own commit is durable. Both call Apply() and reach the same state.
// Nothing here knows of threads, clocks, locks, files or sockets.
namespace perseus::server {

// A point in time, by two clocks.
struct Moment {
  double day_seconds = 0;  // Time of day, UTC since 1970, by the store's clock.
  double seconds = 0;      // Monotonic clock of this process.
};

// Phase::profile_source of a profile that came with the job, and of one that its ranks measured.
inline constexpr const char* kGivenSource = "given";
inline constexpr const char* kMeasuredSource = "measured";

// Objects that are built from a job's stored texts. Building them is too slow for Apply(), so a
// thread that may take the time builds them first. Both are immutable.
struct Built {
  std::shared_ptr<const Job> job;  // From the profile in use.
  std::shared_ptr<const Curve> curve;

  // The job, also if only the curve has it. Null: neither is there.
  const Job* AnyJob() const {
    if (job != nullptr || curve == nullptr) return job.get();
    return &curve->job();
  }
};

// The part of a job that changes in one piece. JobLife::revision counts its changes.
struct Phase {
  store::JobState state = store::JobState::kRegistering;
  std::string reason;  // As stored. Clients are shown ReasonOf().
  PlanTarget target;
  std::vector<store::StragglerRecord> stragglers;  // By id.
  std::int64_t last_straggler = 0;
  std::string watch_json;  // Settings of detection and comparison, as stored. Empty: none.
  WatchState watch;        // watch_json, parsed.
  std::optional<ConditionsState> conditions;  // None: the job does not measure them.
  store::PlanVersion version;                 // 0: none.
  int sweep_round = 0;                        // See store::JobRecord.
  int settled_round = 0;
  std::string profile_source;      // Empty: the job has no profile yet.
  Built built;                     // Null members: not built yet, or the stored text is invalid.
  double finished_at_seconds = 0;  // 0: the job has not finished, or the time is not known.
  JobLabels labels;
  bool is_gone = false;  // The job was deleted.
};

// All of one job.
struct JobLife {
  store::JobRecord record;  // As created, without profiles. All that changes is in `phase`.
  Shape shape;
  Phase phase;
  std::int64_t revision = 0;  // See store::StoredJob.
  std::map<int, store::RankRecord> ranks;
  std::map<std::array<int, 3>, int> positions;  // (dp, pp, tp) -> rank, of `ranks`.
  ProfileTable table;                           // The measurements of this sweep.
  std::map<int, std::size_t> measured_rows;     // Of this sweep, by rank.
  std::size_t measurements = 0;                 // Of this sweep.
};

// Applies a durable fact to the phase.
void ApplyToPhase(const store::Fact& fact, const Built& built, Phase* phase);
// The same, and also applies facts about ranks and measurements.
void Apply(const store::Fact& fact, const Built& built, JobLife* job);

// Facts that lead to this stored job, in an order in which they can be applied.
std::vector<store::Fact> FactsOf(const store::StoredJob& stored);
// Applies FactsOf(stored): the job that the store holds.
JobLife Replay(const store::StoredJob& stored, const Built& built);
// Drops the measurements so far: a profile is made from one sweep only.
void ForgetSweep(JobLife* job);

inline std::array<int, 3> PositionOf(const store::RankRecord& rank) {
  return {rank.dp_rank, rank.pp_rank, rank.tp_rank};
}

// Whether the job has ended, so that nothing is planned any more.
inline bool IsOver(const Phase& phase) {
  return phase.state == store::JobState::kFinished || phase.state == store::JobState::kFailed;
}
// Whether the first plans for the profile of a new sweep are being computed.
inline bool IsPending(const Phase& phase) {
  return phase.state == store::JobState::kCharacterizing && phase.sweep_round > phase.settled_round;
}
// Whether ranks may send measurements.
inline bool TakesMeasurements(const Phase& phase) {
  return phase.state == store::JobState::kProfiling ||
         (phase.state == store::JobState::kRegistering && phase.profile_source.empty());
}
// Whether plans must be computed: a first curve, a better one, or the plan for a new target.
bool LacksPlans(const Phase& phase);

// The sentence that says why the job is in its state, or why its plan differs from its target.
std::string ReasonOf(const Phase& phase);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_JOB_LIFE_H_
