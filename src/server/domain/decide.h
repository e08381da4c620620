// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_DOMAIN_DECIDE_H_
#define PERSEUS_SERVER_DOMAIN_DECIDE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/comparison_blocks.h"
#include "server/base/failure.h"
#include "server/domain/job_life.h"
#include "server/domain/watch_settings.h"
#include "server/store/facts.h"

namespace perseus::server {

// The kinds of events about jobs, for dashboards and the log. EventTypes() describes each.
enum class EventKind : std::uint8_t {
  kJob,
  kState,
  kPlan,
  kStraggler,
  kDetection,
  kProfiling,
  kDrift,
  kTrouble,
  kStore,
  kReset,
};

// Commands: all that a client, an operator or the server may ask of a job.

// A rank registers: its position, node and GPU.
struct RegisterRank {
  store::RankRecord rank;
};
// A rank reports measurements.
struct TakeMeasurements {
  store::Measurements measured;
};
// Sets the target iteration time. ParsePlanTarget() reads `text`.
struct SetTarget {
  std::string text;
};
// A straggler as an operator describes it. Times are relative to now.
struct AddStraggler {
  std::optional<int> pipeline = {};
  std::optional<int> rank = {};
  std::string node = {};
  double factor = 0;         // 0: not given.
  double delay_seconds = 0;  // 0: not given.
  std::optional<double> expires_in_seconds = {};
  double starts_in_seconds = 0;
};
struct ClearStraggler {
  std::int64_t id = 0;
};
struct ClearStragglers {};
// Changes the settings of the straggler detector and of the comparison. Members that are not set
// keep their values.
struct SetWatch {
  std::optional<DetectionMode> mode = {};
  std::optional<double> threshold = {};
  std::optional<int> window = {};
  std::optional<ComparisonBlocks> comparison = {};
};
// Starts a new sweep of measurements. Ranks keep following the present plans meanwhile. Does
// nothing if a sweep is already under way.
struct Reprofile {};
// Ends the sweep that Reprofile began and keeps the old profile.
struct CancelReprofile {};
// Changes labels: a value sets one, none takes it away. The others stay. Also of a job that has
// finished.
struct SetLabels {
  std::map<std::string, std::optional<std::string>> labels;
};
struct FinishJob {
  std::string reason = {};  // Empty: somebody asked for it.
};
struct DeleteJob {};

// The server itself gives all commands below.

// Moves the job to its next state if the conditions for that are met.
struct Advance {
  bool has_given_plan = false;  // The job uses Zeus' wire, and the operator gave a plan for it.
  bool may_reuse = true;        // The library of profiles was not asked yet.
  double seconds_since_measured = 0;
};
// The library of profiles found a profile for the job.
struct UseProfile {
  store::ProfileRecord profile;
  std::shared_ptr<const Job> job;  // Made from that profile.
};
// Time has passed: stragglers may begin or expire, and the plan may need a new version number.
struct LookAtTime {};
// The stragglers that the detector found and that plans should take into account from now on.
struct AnswerDetected {
  std::vector<DetectedStraggler> wanted;
};

// Phases of the comparison `from` are too short.
struct LengthenPhases {
  ComparisonBlocks from;
  ComparisonBlocks to;
};

// Conditions, as measured by all ranks that report.
struct TakeConditions {
  MeasuredConditions measured;
};

// One step in computing a job's plans, and the input of that step.
struct PlanningStep {
  Built built;  // If built.job is null, it must first be built from the stored texts.
  std::shared_ptr<const Curve> curve;  // The job's; null: it has none.
  PlanTarget target;
  std::int64_t first_id = 1;  // The first id for new plans.
  int sweep_round = 0;
  bool is_pending = false;  // First plans of a new profile; ranks still follow the old profile's.
  // The plans are for these conditions, and ranks still follow those for earlier ones.
  std::optional<PlannedConditions> conditions = {};
};
// A planning step has a result. `built` holds its input (the job) and the new curve.
struct AdoptPlans {
  PlanningStep step;
  store::CurveRecord record;
  Built built;
  // The profile's text and its blocking power. Empty if they were not read for this step.
  std::string profile_csv;
  std::vector<double> blocking_power_watts;
};
// A planning step has no result. `sentence` says why.
struct GiveUpPlans {
  PlanningStep step;
  std::string sentence;
};
// Asks the workers to try again to compute the plans that the job lacks.
struct AskForPlans {};

using Command =
    std::variant<RegisterRank, TakeMeasurements, SetTarget, AddStraggler, ClearStraggler,
                 ClearStragglers, SetWatch, Reprofile, CancelReprofile, SetLabels, FinishJob,
                 DeleteJob, Advance, UseProfile, LookAtTime, AnswerDetected, LengthenPhases,
                 TakeConditions, AdoptPlans, GiveUpPlans, AskForPlans>;

// Whether a decision on this command holds at any revision of the job: ranks, measurements, the end
// of the job. Many such decisions may be on their way to the store at once. Others are made one
// after the other, each on the revision that the one before it produced.
inline bool HoldsAtAnyRevision(const Command& command) {
  return std::holds_alternative<RegisterRank>(command) ||
         std::holds_alternative<TakeMeasurements>(command) ||
         std::holds_alternative<DeleteJob>(command) || std::holds_alternative<AskForPlans>(command);
}

// Ranks and measurements in facts that are on their way to the store. Each request is counted, so
// that the first one that ends takes nothing from the others.
class Underway {
 public:
  // `facts` are on their way, and are there or refused. End() follows each Begin().
  void Begin(const std::vector<store::Fact>& facts);
  void End(const std::vector<store::Fact>& facts);

  // The record of this rank that began last. Null: none is on its way.
  const store::RankRecord* RankOf(int rank) const;
  // The rank that asked for this position. -1: none.
  int RankAt(const std::array<int, 3>& position) const;
  std::size_t RowsOf(int rank) const;

 private:
  struct Rank {
    store::RankRecord record;
    int requests = 0;
  };
  struct Measured {
    std::size_t rows = 0;
    int requests = 0;
  };
  std::map<int, Rank> ranks_;
  std::map<std::array<int, 3>, int> positions_;  // (dp, pp, tp) -> rank, of `ranks_`.
  std::map<int, Measured> measured_;
};

// The rules of a job's life. Decide() is a pure function: the same job, command and moment always
// give the same decision. It changes nothing. The decision takes effect when its facts are durable
// and Apply() is called with them.

// An event to send once the facts are durable. `members_json` holds its members except "job".
struct Announcement {
  EventKind kind;
  std::string members_json;
};

// Plans that a job lacks. First plans come before better ones, so that no job waits for its first
// plan while better plans of another are computed.
enum class Work : std::uint8_t { kNone, kFirstPlans, kBetterPlans };

struct Decision {
  // These must become durable together. Empty: nothing changes.
  std::vector<store::Fact> facts = {};
  // Objects built from the texts in `facts`. Apply() needs them.
  Built built = {};
  std::vector<Announcement> announcements = {};
  std::int64_t straggler = 0;   // The id of the straggler that is added. 0: none.
  std::string ask_layout = {};  // Not empty: ask the library for a profile of this layout.
  Work work = Work::kNone;      // For the planning threads, once the facts are durable.
  // For the log, if a client asked for the change: the setting, its old and its new value.
  std::string what = {};
  std::string before = {};
  std::string after = {};
  // Requests of Decide() itself: ask the workers for the plans that the job then lacks; look
  // whether the plan's version changes even if there are no facts.
  bool wants_plans = false;
  bool looks_at_time = false;
};

// `last_version`: the highest version of the plan that any rank may have been told. New versions
// are higher.
Outcome<Decision> Decide(const JobLife& job, const Underway& underway, std::int64_t last_version,
                         const Command& command, const Moment& now);

// Sweeps of a job, beyond its first, that begin without being asked for.
inline constexpr int kMostSweepsByItself = 2;

// The events about a change of a job's phase from `before` to `after`.
std::vector<Announcement> NewsOf(const Phase& before, const Phase& after);

// The next planning step, or nullopt if no plan is missing.
std::optional<PlanningStep> NextPlanningStep(const JobLife& job);
// Whether the job changed since `step` began, so that the step's result is useless.
bool IsPast(const JobLife& job, const PlanningStep& step);

// Whether these conditions are so far from those of the plans that plans for them differ, and it is
// time for such plans.
bool HaveMoved(const PlannedConditions& plan, const MeasuredConditions& measured,
               double seconds_since_planned);
// The conditions for the plans then: the measured figures that are sure enough, and the others of
// `plan`.
PlannedConditions PlannedFor(const PlannedConditions& plan, const MeasuredConditions& measured);
// The state of a job that takes over this profile of the library. Its plans are for the conditions
// that earlier jobs measured, until its own ranks have measured.
ConditionsState StartedFrom(const store::ProfileRecord& profile, ConditionsState state);

// Time of day by which stragglers begin and expire. If this server's clock is a little behind that
// of the server that made the last version, it is the time of that version.
double PlanningDaySeconds(const Phase& phase, const Moment& now);

// Whether a straggler began or expired since `looked_at`.
bool HasStragglerNews(const Phase& phase, double looked_at_day_seconds, const Moment& now);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_DOMAIN_DECIDE_H_
