// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_FACTS_H_
#define PERSEUS_STORE_FACTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perseus/computation.h"
#include "perseus/result.h"

// What a server remembers, as facts: plain values, safe to copy between
// threads. Times of day are seconds since 1970 (UTC). A job is named by its id.
namespace perseus::store {

// Codes of errors, beside those that store.h lists:
// cells of one job hold what no writer wrote; other jobs are well;
inline constexpr ErrorCode kDamaged = ErrorCode::kInvalidInput;
// the deadline of a request is past: nothing was written; or Open() was told to stop.
inline constexpr ErrorCode kTooLate = ErrorCode::kCancelled;

enum class JobState : std::uint8_t {
  kRegistering,     // Not all ranks are there.
  kProfiling,       // All are; they measure.
  kCharacterizing,  // The frontier is being computed.
  kRunning,         // There are plans.
  kFailed,          // There is none, for the reason given; ranks run at maximum clocks.
  kFinished,
};
inline constexpr std::array<std::string_view, 6> kJobStateNames = {
    "registering", "profiling", "characterizing", "running", "failed", "finished"};
constexpr std::string_view JobStateName(JobState state) {
  return kJobStateNames[static_cast<std::size_t>(state)];
}

// Who registered a job, and so what it is told.
enum class JobOrigin : std::uint8_t { kApi, kZeus };

// A job, when it is created.
struct JobRecord {
  std::string id = {};
  std::string client_key = {};  // Of whoever created it; the same key means the same job.
  std::string name = {};
  JobOrigin origin = JobOrigin::kApi;
  int pipeline_parallel = 1;  // Ranks of a pipeline.
  int data_parallel = 1;      // Pipelines.
  int tensor_parallel = 1;
  std::string settings_json = {};                 // As created.
  std::string profile_csv = {};                   // Empty: the ranks measure.
  std::vector<double> blocking_power_watts = {};  // Measured; empty: see the settings.
  std::string target = {};  // As ParsePlanTarget() reads it; empty: the settings' own.
  JobState state = JobState::kRegistering;
  std::string reason = {};          // Of the state; a sentence or empty.
  std::string detection_json = {};  // See DetectionChange.
  std::string library_json = {};    // What finds it in the profile library; the writer's own.
  std::string profile_source =
      {};  // "given", "measured", "reused from j-1f..."; empty: no profile.
  // Which sweep the ranks are at, or did last: 0 at first, one more each time the job is
  // profiled again; and the one that the profile is of (or that was given up).
  int sweep_round = 0;
  int settled_round = 0;
  // What the last sweep measured, until there are plans for it.
  std::string next_profile_csv = {};
  std::vector<double> next_blocking_power_watts = {};
  double created_at_seconds = 0;
  double finished_at_seconds = 0;  // 0: it is not, or nobody knows since when.
};

// A job enters a state. What is set goes with it, in the same transaction.
struct StateChange {
  std::string job = {};
  JobState state = JobState::kRegistering;
  std::string reason = {};
  std::optional<std::string> profile_csv = {};
  std::optional<std::vector<double>> blocking_power_watts = {};
  std::optional<std::string> profile_source = {};
  std::optional<int> sweep_round = {};
  // Both with the blocking power that they were measured with.
  std::optional<std::string> next_profile_csv = {};
  std::vector<double> next_blocking_power_watts = {};
  enum class Next : std::uint8_t { kKeep, kAdopt, kDrop };
  Next next = Next::kKeep;  // The next profile becomes the profile, or is forgotten: settled.
  double at_seconds = 0;    // Time of day; kept of the change to kFinished. 0: not said.
};

// A rank and its position. Registering it again replaces its GPU and node.
struct RankRecord {
  std::string job = {};
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
  int tp_rank = 0;
  std::string gpu_uuid = {};
  std::string gpu_name = {};
  std::string node = {};
  std::vector<int> clocks_mhz = {};
};

// One kind of computation at one clock, as one rank measured it.
struct MeasuredRow {
  int stage = 0;
  ComputationType type = ComputationType::kForward;
  int clock_mhz = 0;
  double time_seconds = 0;
  double energy_joules = 0;  // Of one GPU.
  int samples = 1;
  // Standard errors of the two estimates; 0: not said.
  double time_std_seconds = 0;
  double energy_std_joules = 0;
  bool throttled = false;  // The GPU slowed itself down while this was measured.
  std::optional<double> temperature_celsius = {};  // Mean.
  // Where the trainer says how much work computations have: its mean (0: not said), and
  // what one more unit of it costs where it varied, with what is left unexplained.
  double work = 0;
  std::optional<double> seconds_per_work = {};
  std::optional<double> joules_per_work = {};
  double time_residual_std_seconds = 0;
  double energy_residual_std_joules = 0;

  friend bool operator==(const MeasuredRow&, const MeasuredRow&) = default;
};

// What a rank's sweep cost, of which `extra` is against the highest clock.
struct SweepCost {
  std::int64_t iterations = 0;
  double seconds = 0;
  double joules = 0;
  double extra_seconds = 0;
  double extra_joules = 0;

  friend bool operator==(const SweepCost&, const SweepCost&) = default;
};

struct Measurements {
  std::string job = {};
  int rank = 0;
  std::vector<MeasuredRow> rows = {};
  std::optional<double> blocking_power_watts = {};
  bool done = false;                    // The rank's sweep has ended.
  int sweep_round = 0;                  // See JobRecord.
  double blocking_power_std_watts = 0;  // Standard error; 0: not said.
  double counter_period_seconds = 0;    // Of the energy counter; 0: not said.
  std::optional<SweepCost> sweep = {};  // So far.
  std::vector<std::string> notes = {};  // Sentences of one line.
};

// A profile that was measured, kept beyond its job. An id that is there stays as it is.
struct ProfileRecord {
  std::string job = {};  // That measured it.
  std::string id = {};
  std::string model = {};   // The job's label; empty: none, and nobody finds it by its layout.
  std::string layout = {};  // What another job must match exactly; the writer's own.
  std::string metadata_json = {};
  std::string profile_csv = {};
  std::vector<double> blocking_power_watts = {};
  double created_at_seconds = 0;

  friend bool operator==(const ProfileRecord&, const ProfileRecord&) = default;
};
inline constexpr int kMostStoredProfiles = 1000;  // The newest.

// A plan as one knob per computation, in the order of the job's DAG.
struct PlanRecord {
  std::int64_t id = 0;  // Within the job; never used again.
  double requested_time_seconds = 0;
  std::vector<int> knobs = {};  // Each below kMaxKnobs.
};
inline constexpr int kMaxKnobs = 4096;

// The frontier and the ladder of plans on it; replaces those before.
struct CurveRecord {
  std::string job = {};
  int revision = 0;                // 1: quick, 2: refined.
  std::string frontier_json = {};  // The writer's own.
  std::vector<PlanRecord> plans = {};
};

// What every pipeline runs from a version on. Of each job the newest are kept.
inline constexpr int kMostStoredVersions = 1000;
struct PlanVersion {
  std::string job = {};
  std::int64_t version = 0;                     // Ascending within a job.
  std::string reason = {};                      // "target", "straggler", "no_plan"
  double at_seconds = 0;                        // Time of day.
  std::int64_t plan = 0;                        // 0: none, maximum clocks.
  std::map<int, std::int64_t> exceptions = {};  // Pipelines that run another plan.
};

// Where on the frontier a job should be.
struct TargetChange {
  std::string job = {};
  std::string target = {};
};

// Something that slows a pipeline, a rank or a node (exactly one is set), by a
// factor or a delay per iteration (exactly one is not 0). One of a known id gives that
// its factor and no more.
struct StragglerRecord {
  std::string job = {};
  std::int64_t id = 0;  // Within the job; never used again.
  std::optional<int> pipeline = {};
  std::optional<int> rank = {};
  std::string node = {};
  double factor = 0;
  double delay_seconds = 0;
  double starts_at_seconds = 0;
  std::optional<double> expires_at_seconds = {};
};

struct StragglerGone {
  std::string job = {};
  std::int64_t id = 0;
};

// Iterations that ran under one version of the plan, as one server heard of
// them. It replaces what the same server wrote of this version before. The squares
// are 0 in what a Perseus before them wrote.
struct IterationSummary {
  std::string job = {};
  std::int64_t plan_version = 0;
  std::int64_t reports = 0;
  double total_seconds = 0;
  double least_seconds = 0;
  double most_seconds = 0;
  double square_seconds2 = 0;       // Sum of the squares.
  std::int64_t energy_reports = 0;  // Of those that said their energy:
  double total_joules = 0;
  double square_joules2 = 0;
};

// How stragglers of a job are detected and plans compared with none: the
// operator's settings as JSON; empty: none.
struct DetectionChange {
  std::string job = {};
  std::string detection_json = {};
};

// There is a frontier or a plan to compute: some server should claim it.
struct WorkWanted {
  std::string job = {};
  bool urgent = false;  // Before all that is not.
};

// What of it a server claims; of any, what is urgent first.
enum class WorkKind : std::uint8_t { kAny, kUrgent, kOther };

struct JobGone {
  std::string job = {};
};

using Fact = std::variant<JobRecord, StateChange, RankRecord, Measurements, CurveRecord,
                          PlanVersion, TargetChange, StragglerRecord, StragglerGone,
                          IterationSummary, DetectionChange, WorkWanted, ProfileRecord, JobGone>;

// How far a job has come: whoever holds older marks has something to read. All
// ascend; a job that there is not has revision 0.
struct JobMarks {
  std::string id = {};
  std::int64_t revision = 0;  // Counts requests with state, target, detection, stragglers, curve
                              // or version: all but the next ones.
  std::int64_t rows = 0;      // Counts requests with ranks or measurements.
  std::int64_t curve = 0;     // The revision with which the curve came; 0: there is none.

  friend bool operator==(const JobMarks&, const JobMarks&) = default;
};

// What a list of jobs needs: without its long texts, so that 10,000 are quickly read.
struct JobHead {
  std::string id = {};
  std::string client_key = {};
  std::string name = {};
  JobOrigin origin = JobOrigin::kApi;
  JobState state = JobState::kRegistering;
  double created_at_seconds = 0;
  double finished_at_seconds = 0;  // See JobRecord.
  JobMarks marks = {};
};

// What to read of a job.
enum class Parts : unsigned {
  kNone = 0,
  kPhase = 1,  // The record but for its profile, the stragglers, the last version.
  kRanks = 2,
  kMeasurements = 4,
  kCurve = 8,
  kIterations = 16,
  kProfile = 32,  // With kPhase: the record's.
  kAll = 63,
};
constexpr Parts operator|(Parts a, Parts b) {
  return static_cast<Parts>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool Has(Parts parts, Parts part) {
  return (static_cast<unsigned>(parts) & static_cast<unsigned>(part)) != 0;
}

// What is remembered of one job: the parts that were asked for, all of one
// moment. The id and the marks always are there.
struct StoredJob {
  JobRecord job;
  JobMarks marks = {};
  std::vector<RankRecord> ranks = {};           // By rank.
  std::vector<Measurements> measurements = {};  // In the order in which they came.
  std::optional<CurveRecord> curve = {};
  std::optional<PlanVersion> version = {};        // The last one.
  std::vector<StragglerRecord> stragglers = {};   // By id; those that are not gone.
  std::int64_t last_straggler = 0;                // Highest id ever given.
  std::vector<IterationSummary> iterations = {};  // By version; sums over all servers.
  // The same without what this process wrote, which knows its own.
  std::vector<IterationSummary> iterations_elsewhere = {};
};

}  // namespace perseus::store

#endif  // PERSEUS_STORE_FACTS_H_
