// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_MANAGED_JOB_H_
#define PERSEUS_SERVER_MANAGED_JOB_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "server/curve.h"
#include "server/events.h"
#include "server/failure.h"
#include "server/job_spec.h"
#include "server/job_watch.h"
#include "server/plan_board.h"
#include "server/profile_table.h"
#include "server/shape.h"
#include "server/stragglers.h"
#include "server/task_queue.h"
#include "server/watch_settings.h"
#include "store/facts.h"
#include "store/store.h"

namespace perseus::server {

// What a job needs of the server around it; outlives all jobs.
struct JobContext {
  store::Store& store;
  EventHub& events;
  TaskQueue& tasks;
  std::function<double()> now_seconds;  // Time of day.
  // Whether the plan that was given for jobs over Zeus' wire fits one.
  std::function<bool(const Shape&)> has_given_plan;
};

// What an operator says of a straggler; times are relative to now.
struct StragglerRequest {
  std::optional<int> pipeline = {};
  std::optional<int> rank = {};
  std::string node = {};
  double factor = 0;         // 0: not given.
  double delay_seconds = 0;  // 0: not given.
  std::optional<double> expires_in_seconds = {};
  double starts_in_seconds = 0;
};

// What the client of a rank says of itself; counts since it began.
struct ClientReport {
  int rank = 0;
  std::string state = {};  // "following", ...
  std::string error = {};  // One sentence; empty: all is well.
  std::int64_t plan_version = 0;
  bool shadow = false;                        // It sets no clock.
  std::map<std::string, double> counts = {};  // "calls", "late", ...
};

struct IterationReport {
  int rank = 0;
  std::int64_t iteration = 0;
  std::int64_t plan_version = 0;
  double time_seconds = 0;
  std::optional<double> energy_joules = {};
  ReportedClocks clocks = ReportedClocks::kUnknown;
  double busy_seconds = 0;          // In its own computations; 0: not said.
  SecondsByType busy_by_type = {};  // Likewise.
  double tokens = 0;                // 0: not said.
};

// A job as it is now, to show.
struct JobView {
  store::JobRecord record;  // Without profile.
  bool has_profile = false;
  std::string target;
  std::int64_t ranks_registered = 0;
  std::int64_t ranks_measured = 0;
  std::vector<store::StragglerRecord> stragglers;
  std::shared_ptr<const PublishedPlan> plan;  // Null: none was published.
  bool refined = false;                       // Whether no better plan is to come.
  std::vector<store::IterationSummary> iterations;
  double progress = 0;                               // Of the characterization, 0..1.
  std::map<std::string, double> client_counts = {};  // Sums over ranks.
  std::vector<ClientReport> troubled_clients = {};   // Those with an error.
  std::int64_t shadow_clients = 0;                   // Those that set no clock.
  WatchView watch = {};
};

// One job: what is known of it, and what follows from that. Every change is
// durable before it is acknowledged or seen; a change that the store refuses did
// not happen. Thread-safe. Calls may wait for one commit; those with a callback
// do not.
class ManagedJob : public std::enable_shared_from_this<ManagedJob> {
 public:
  // Of what the store holds. `built` is the costed job where it has a profile.
  ManagedJob(JobContext* context, store::StoredJob stored, std::shared_ptr<const Job> built);
  ManagedJob(const ManagedJob&) = delete;
  ManagedJob& operator=(const ManagedJob&) = delete;

  // Goes on where the job was: publishes its plan, starts what is to be computed.
  void Resume();

  const std::string& id() const { return record_.id; }
  const std::string& client_key() const { return record_.client_key; }
  double created_at_seconds() const { return record_.created_at_seconds; }
  store::JobOrigin origin() const { return record_.origin; }
  const std::string& settings_json() const { return record_.settings_json; }
  const Shape& shape() const { return shape_; }
  PlanBoard& board() { return board_; }

  // Called with what the rank meets, on a thread of the store or at once.
  struct Registered {
    std::int64_t plan_version = 0;
    store::JobState state = store::JobState::kRegistering;
  };
  using RegisteredCallback = std::function<void(const Outcome<Registered>&)>;
  void Register(store::RankRecord rank, RegisteredCallback registered);

  using DoneCallback = std::function<void(const Outcome<void>&)>;
  void Measure(store::Measurements measured, DoneCallback done);

  // As ParsePlanTarget() reads it.
  Outcome<void> SetTarget(const std::string& text);
  Outcome<std::int64_t> AddStraggler(const StragglerRequest& request);
  Outcome<void> ClearStraggler(std::int64_t id);
  Outcome<void> ClearStragglers();
  Outcome<void> Finish();
  Outcome<void> Delete();

  // Changes how stragglers are found and whether the plan is compared; returns
  // what holds from now on.
  Outcome<WatchSettings> SetWatch(const std::function<void(WatchSettings* settings)>& change);

  // Not durable one by one: sums are, within a second or two.
  Outcome<void> Report(const std::vector<IterationReport>& reports,
                       const std::vector<ClientReport>& clients = {});

  // Does what time has brought: stragglers that begin or expire, ranks that
  // were waited for long enough, writes that failed before.
  void Tick();

  // Makes the sums of what Report() took durable now, as at the end of the process.
  void FlushIterations();

  JobView View() const;
  std::optional<store::RankRecord> FindRank(int rank) const;
  std::vector<store::RankRecord> Ranks() const;

 private:
  // What changes as one.
  struct Phase {
    store::JobState state = store::JobState::kRegistering;
    std::string reason;
    PlanTarget target;
    std::vector<store::StragglerRecord> stragglers;
    std::string watch_json;  // Of detection and comparison; empty: none.
    std::shared_ptr<const Curve> curve;
    store::PlanVersion version;  // 0: none.
  };

  static constexpr double kNeverPlanned = -1;

  // All with mutex_ held unless they say otherwise.
  Outcome<void> CheckRank(const store::RankRecord& rank) const;
  Outcome<void> CheckMeasurements(const store::Measurements& measured) const;
  Outcome<void> CheckStraggler(const StragglerRequest& request) const;
  Outcome<void> Commit(std::vector<store::Fact> facts, Phase next);
  store::PlanVersion Planned(const Phase& next) const;
  static std::string TargetReason(const Phase& next);
  std::shared_ptr<const PublishedPlan> Published() const;
  void Advance();
  bool StartCharacterizing();
  bool HasStragglerNews(double now_seconds) const;
  static ComparisonBlocks ComparisonOf(const Phase& phase);
  void ReadWatch();
  void ApplyWatch();
  void Watch(const std::vector<IterationReport>& reports);
  void WriteIterations();
  std::vector<store::IterationSummary> AllIterations() const;
  void RequestImprovement();
  void EmitState() const;
  bool IsOver() const;

  // These take the lock.
  Outcome<Registered> OnRegistered(const store::RankRecord& rank,
                                   const Result<store::JobMarks>& written);
  Outcome<void> OnMeasured(const store::Measurements& measured,
                           const Result<store::JobMarks>& written);
  void Improve(const std::atomic<bool>& stopping);
  void ImproveOnce(class Characterizer* characterizer, const std::shared_ptr<const Job>& job);
  void ImproveOrGive(class Characterizer* characterizer, const std::shared_ptr<const Job>& job);
  void Install(const store::CurveRecord& record, std::shared_ptr<const Job> job);
  void Give(const Error& error);  // There is no plan, and why.

  JobContext* const context_;
  const store::JobRecord record_;  // As created; state, reason, target: see phase_.
  const Shape shape_;
  PlanBoard board_;
  std::atomic<bool> is_gone_ = false;
  std::atomic<double> progress_ = 0;

  mutable std::mutex mutex_;  // Of all below.
  Phase phase_;
  std::shared_ptr<const Job> job_;  // Null: not measured yet, or not ours to plan.
  std::map<int, store::RankRecord> ranks_;
  std::map<std::array<int, 3>, int> positions_;  // (dp, pp, tp) -> rank, pending ones too.
  struct Pending {
    store::RankRecord rank;
    int requests = 0;
  };
  std::map<int, Pending> pending_;
  ProfileTable table_;
  std::optional<Measurable> measurable_;      // None: not asked for yet, or not known.
  std::map<int, std::size_t> measured_rows_;  // By rank; those on their way to the store, too.
  double last_measured_seconds_ = 0;
  std::int64_t last_straggler_ = 0;
  // By plan version: what this process heard of, and others (or it, before it was started).
  std::map<std::int64_t, store::IterationSummary> iterations_;
  std::map<std::int64_t, store::IterationSummary> iterations_elsewhere_;
  std::map<std::int64_t, bool> unwritten_iterations_;
  std::map<int, ClientReport> clients_;  // The last of each rank; not durable.
  JobWatch watch_;                       // Has a lock of its own, as it has its own work.
  WatchState watch_state_;
  std::string watched_json_;                   // That watch_state_ is of, ...
  std::set<std::int64_t> watched_stragglers_;  // ... and the stragglers then.
  double flush_iterations_at_ = 0;
  double planned_at_ = kNeverPlanned;  // When Commit() last looked at stragglers and ranks.
  bool is_improving_ = false;
  double improve_again_at_ = 0;  // After a write that failed; 0: not.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_MANAGED_JOB_H_
