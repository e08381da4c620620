// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_FACTS_H_
#define PERSEUS_SERVER_STORE_FACTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/labels.h"
#include "perseus/computation.h"
#include "perseus/result.h"
#include "wire/reports.h"

// Facts: the changes of jobs that a server stores. They are plain values. Times of day are seconds
// since 1970 (UTC). A member `job` is a job's id.
namespace perseus::store {

// Names for error codes; store.h says more.
// The stored cells of one job are invalid. Other jobs are not affected.
inline constexpr ErrorCode kDamaged = ErrorCode::kInvalidInput;
// The deadline of a request has passed and nothing was written; or Open() was told to stop.
inline constexpr ErrorCode kTooLate = ErrorCode::kCancelled;

// The result of writing facts about a job: its new revision (see StoredJob), or 0 if they do not
// raise it, or the job is gone.
using Revision = Result<std::int64_t>;

enum class JobState : std::uint8_t {
  kRegistering,     // Not all ranks have registered.
  kProfiling,       // All ranks have registered; they measure.
  kCharacterizing,  // The frontier is being computed.
  kRunning,         // There are plans.
  kFailed,          // There is no plan; `reason` says why. Ranks run at maximum clocks.
  kFinished,
};
inline constexpr std::array<std::string_view, 6> kJobStateNames = {
    "registering", "profiling", "characterizing", "running", "failed", "finished"};
constexpr std::string_view JobStateName(JobState state) {
  return kJobStateNames[static_cast<std::size_t>(state)];
}

// The interface through which a job was created. It decides the form of answers.
enum class JobOrigin : std::uint8_t { kApi, kZeus };

// A job, when it is created.
struct JobRecord {
  std::string id = {};
  std::string client_key = {};  // Chosen by the creator; the same key means the same job.
  std::string name = {};
  std::string owner = {};  // Name of the token that created it; empty: there was none.
  JobLabels labels = {};   // See LabelsChange.
  JobOrigin origin = JobOrigin::kApi;
  int pipeline_parallel = 1;  // Ranks of a pipeline.
  int data_parallel = 1;      // Pipelines.
  int tensor_parallel = 1;
  std::string settings_json = {};                 // As created.
  std::string profile_csv = {};                   // Empty: the ranks measure.
  std::vector<double> blocking_power_watts = {};  // Measured; empty: the settings have it.
  std::string target = {};  // For ParsePlanTarget(); empty: the settings' target.
  JobState state = JobState::kRegistering;
  std::string reason = {};           // Why the job is in its state: a sentence, or empty.
  std::string detection_json = {};   // See DetectionChange.
  std::string conditions_json = {};  // See ConditionsChange.
  std::string library_json = {};     // See server::LibraryRequest. The store does not read it.
  std::string profile_source =
      {};  // "given", "measured", "reused from j-1f..."; empty: no profile.
  // sweep_round: number of the present or last sweep. It is 0 at first and grows by one each time
  // the job is profiled again. settled_round: the last sweep that gave the profile or was given up.
  int sweep_round = 0;
  int settled_round = 0;
  // The profile of the last sweep as long as it has no plans.
  std::string next_profile_csv = {};
  std::vector<double> next_blocking_power_watts = {};
  double created_at_seconds = 0;
  double finished_at_seconds = 0;  // 0: not finished, or the time is not known.
};

// A job enters a state. Members that are set change in the same transaction.
struct StateChange {
  std::string job = {};
  JobState state = JobState::kRegistering;
  std::string reason = {};
  std::optional<std::string> profile_csv = {};
  std::optional<std::vector<double>> blocking_power_watts = {};
  std::optional<std::string> profile_source = {};
  std::optional<int> sweep_round = {};
  // Each profile comes with the blocking power that was measured with it.
  std::optional<std::string> next_profile_csv = {};
  std::vector<double> next_blocking_power_watts = {};
  enum class Next : std::uint8_t { kKeep, kAdopt, kDrop };
  // kAdopt: the next profile becomes the profile. kDrop: it is forgotten. Both settle its sweep.
  Next next = Next::kKeep;
  double at_seconds = 0;  // Time of day, stored only for kFinished. 0: not given.
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

using wire::kDefaultClockMhz;
using wire::MeasuredRow;
using wire::MeasuredWaiting;
using wire::SweepCost;

struct Measurements {
  std::string job = {};
  int rank = 0;
  std::vector<MeasuredRow> rows = {};
  std::optional<double> blocking_power_watts = {};
  bool done = false;                    // The rank's sweep has ended.
  int sweep_round = 0;                  // See JobRecord.
  double blocking_power_std_watts = 0;  // Standard error; 0: not reported.
  // By clock; empty: the rank's sweep did not show that it depends on the clock.
  std::vector<MeasuredWaiting> waiting = {};
  double counter_period_seconds = 0;    // Update period of the energy counter; 0: not reported.
  std::optional<SweepCost> sweep = {};  // Cost of the sweep so far.
  std::vector<std::string> notes = {};  // Sentences of one line.
};

// A measured profile in the library, which outlives its job. Writing an id that exists changes
// nothing.
struct ProfileRecord {
  std::string job = {};  // The job that measured it.
  std::string id = {};
  std::string model = {};   // The job's label. Empty: none, so no job finds it by its layout.
  std::string layout = {};  // See server::LayoutOf(). A job that reuses the profile has the same.
  std::string metadata_json = {};
  std::string profile_csv = {};
  std::vector<double> blocking_power_watts = {};
  std::string conditions_json = {};  // See ProfileConditions.
  double created_at_seconds = 0;

  friend bool operator==(const ProfileRecord&, const ProfileRecord&) = default;
};
inline constexpr int kMostStoredProfiles = 1000;  // The store keeps the newest.

// Noise and latency as measured by `job`, which uses this profile of the library, as JSON; see
// server::KeptConditions. Replaces the profile's earlier ones. Empty: no job told any.
struct ProfileConditions {
  std::string job = {};
  std::string profile = {};
  std::string conditions_json = {};
};

// A plan as one knob per computation, in the order of the job's DAG.
struct PlanRecord {
  std::int64_t id = 0;  // Unique within the job, for ever.
  double requested_time_seconds = 0;
  std::vector<int> knobs = {};  // Each below kMaxKnobs.
};
inline constexpr int kMaxKnobs = 4096;

// The frontier and the plans on it. Replaces the job's earlier ones.
struct CurveRecord {
  std::string job = {};
  int revision = 0;                // 1: quick, 2: refined.
  std::string frontier_json = {};  // See server::FrontierText(). The store does not read it.
  std::vector<PlanRecord> plans = {};
};

// The plan of every pipeline from a version on. The store keeps the newest versions of each job.
inline constexpr int kMostStoredVersions = 1000;
struct PlanVersion {
  std::string job = {};
  std::int64_t version = 0;                     // Ascending within a job.
  std::string reason = {};                      // "target", "straggler", "no_plan"
  double at_seconds = 0;                        // Time of day.
  std::int64_t plan = 0;                        // 0: no plan; maximum clocks.
  std::map<int, std::int64_t> exceptions = {};  // Pipelines that run another plan.
};

// The job's target: where on the frontier it should be.
struct TargetChange {
  std::string job = {};
  std::string target = {};
};

// A straggler: a pipeline, a rank or a node (exactly one is set) that is slowed by a factor or by a
// delay per iteration (exactly one is not 0). If a straggler with this id exists, only its factor
// changes.
struct StragglerRecord {
  std::string job = {};
  std::int64_t id = 0;  // Unique within the job, for ever.
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

// Sums of the iterations under one version of the plan that ranks reported. Replaces the earlier
// sums of this version.
struct IterationSummary {
  std::string job = {};
  std::int64_t plan_version = 0;
  std::int64_t reports = 0;
  double total_seconds = 0;
  double least_seconds = 0;
  double most_seconds = 0;
  double square_seconds2 = 0;       // Sum of the squares.
  std::int64_t energy_reports = 0;  // Reports with energy; the next two sum over these.
  double total_joules = 0;
  double square_joules2 = 0;
};

// How long the spans are that the history is kept in.
enum class Resolution : std::uint8_t { kMinute, kHour, kDay };
inline constexpr std::array<std::string_view, 3> kResolutionNames = {"minute", "hour", "day"};
inline constexpr std::array<std::int64_t, 3> kSpanSeconds = {60, 3'600, 86'400};
// How long rows are kept; 0: for ever, beyond their job.
inline constexpr std::array<std::int64_t, 3> kKeptSeconds = {86'400, 31 * std::int64_t{86'400}, 0};
constexpr std::int64_t SpanOf(Resolution resolution) {
  return kSpanSeconds[static_cast<std::size_t>(resolution)];
}
constexpr std::int64_t KeptOf(Resolution resolution) {
  return kKeptSeconds[static_cast<std::size_t>(resolution)];
}

// Iterations, each counted once: as long as the slowest of the ranks that reported it.
struct IterationTimes {
  std::int64_t iterations = 0;
  std::int64_t reports = 0;  // Of ranks, of these iterations.
  double seconds = 0;

  // 0: there is no iteration.
  double MeanSeconds() const {
    return iterations == 0 ? 0 : seconds / static_cast<double>(iterations);
  }

  friend bool operator==(const IterationTimes&, const IterationTimes&) = default;
};

// Sums of the iterations that ranks reported in one span of time. Replaces the earlier sums of this
// span. From `reports` on they are sums over ranks: `reports` / `ranks` is the number of
// iterations.
struct HistoryRow {
  std::string job = {};
  Resolution resolution = Resolution::kMinute;
  std::int64_t start = 0;  // Time of day; a multiple of the span.
  int ranks = 0;           // Of the job.
  // When the first of the iterations began and the last ended, by the server's clock, within the
  // span.
  double first_seconds = 0;
  double last_seconds = 0;
  std::int64_t reports = 0;
  double total_seconds = 0;
  std::int64_t energy_reports = 0;  // Reports with energy; the rest sums over these.
  double joules = 0;
  // Savings against maximum clocks, as their plan predicts. Negative: they needed more.
  double predicted_joules = 0;
  // Of the reports whose plan was compared with default clocks: energy, and savings by that
  // comparison.
  double compared_joules = 0;
  double measured_saved_joules = 0;
  // Iterations that were complete in the span.
  IterationTimes times = {};
  IterationTimes measured_times = {};  // Of these, those of which each rank told its energy,
  double measured_joules = 0;          // and that energy.

  friend bool operator==(const HistoryRow&, const HistoryRow&) = default;
};

// A row with name and owner of its job, which may be gone. `labels`: as they are now, or were when
// it went.
struct NamedHistoryRow {
  std::string name = {};
  std::string owner = {};
  JobLabels labels = {};
  HistoryRow row = {};
};

// Which rows of the history are read: those that start at `since` or later and before `until`.
struct HistoryQuery {
  std::string job = {};  // Empty: all jobs.
  Resolution resolution = Resolution::kDay;
  std::int64_t since = 0;
  std::int64_t until = 0;
  std::size_t most = 200'000;  // One more is read, so that it shows.
};

// The operator's settings, as JSON, for detecting stragglers and for comparing plans with default
// clocks. Empty: the default settings.
struct DetectionChange {
  std::string job = {};
  std::string detection_json = {};
};

// Noise and latency as the job's ranks measured them, and as its plans assume them, as JSON; see
// server::ConditionsState. Empty: the job does not measure them.
struct ConditionsChange {
  std::string job = {};
  std::string conditions_json = {};
};

// All labels of the job, from now on. They outlive a job that has rows of the history.
struct LabelsChange {
  std::string job = {};
  JobLabels labels = {};
};

struct JobGone {
  std::string job = {};
};

using Fact = std::variant<JobRecord, StateChange, RankRecord, Measurements, CurveRecord,
                          PlanVersion, TargetChange, StragglerRecord, StragglerGone,
                          IterationSummary, HistoryRow, DetectionChange, ConditionsChange,
                          LabelsChange, ProfileRecord, ProfileConditions, JobGone>;

// A job in a list: without its long texts, so that 10,000 jobs can be read quickly.
struct JobHead {
  std::string id = {};
  std::string client_key = {};
  std::string name = {};
  JobLabels labels = {};
  JobOrigin origin = JobOrigin::kApi;
  JobState state = JobState::kRegistering;
  double created_at_seconds = 0;
  double finished_at_seconds = 0;  // See JobRecord.
  std::int64_t revision = 0;       // See StoredJob.
};

// One job as the store has it at one moment.
struct StoredJob {
  JobRecord job;
  // Counts the requests that changed state, target, detection, conditions, labels, stragglers,
  // curve or version: all but ranks, measurements, sums of iterations and the history.
  std::int64_t revision = 0;
  std::vector<RankRecord> ranks = {};           // By rank.
  std::vector<Measurements> measurements = {};  // In the order in which they came.
  std::optional<CurveRecord> curve = {};
  std::optional<PlanVersion> version = {};        // The last one.
  std::vector<StragglerRecord> stragglers = {};   // By id, without those that were cleared.
  std::int64_t last_straggler = 0;                // The highest id that was ever used.
  std::vector<IterationSummary> iterations = {};  // By version.
  std::vector<HistoryRow> history = {};           // The last of each resolution.
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_FACTS_H_
