// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_
#define PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perseus/job.h"
#include "server/api/profile_json.h"
#include "server/domain/failure.h"
#include "server/domain/profile_table.h"
#include "server/domain/shape.h"
#include "server/domain/stragglers.h"
#include "server/planning/curve.h"
#include "server/planning/job_spec.h"
#include "server/runtime/events.h"
#include "server/runtime/plan_board.h"
#include "server/watch/drift_watch.h"
#include "server/watch/job_watch.h"
#include "server/watch/watch_settings.h"
#include "store/facts.h"
#include "store/store.h"

namespace perseus::server {

// What a job needs of the server around it; outlives all jobs.
struct JobContext {
  store::Store& store;
  EventHub& events;
  // Time of day; of all servers on one store the same, but for their errors of measuring it.
  std::function<double()> now_seconds;
  // Whether the plan that was given for jobs over Zeus' wire fits one.
  std::function<bool(const Shape&)> has_given_plan;
  // The store has work that somebody should claim.
  std::function<void()> wake_worker;
  // Has a job refreshed soon, on another thread. May be called with any lock held.
  std::function<void(const std::string& id)> refresh_soon;
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
  double busy_seconds = 0;             // In its own computations; 0: not said.
  SecondsByType busy_by_type = {};     // Likewise.
  double tokens = 0;                   // 0: not said.
  std::vector<KindReport> kinds = {};  // Since the rank's last report.
};

// A job as it is now, to show.
struct JobView {
  store::JobRecord record;    // Without profile.
  std::int64_t revision = 0;  // That others may see.
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
  std::string profile_source = {};  // Empty: there is no profile yet.
  bool sweeps_again = false;        // Under the plans of the profile before.
  ProfilingSummary profiling = {};
  std::vector<Drift> drifts = {};
};

// One job: what is known of it, and what follows from that. Every change is
// durable before it is acknowledged or seen; a change that the store refuses did
// not happen. Thread-safe. Calls may wait for one commit; those with a callback
// do not.
//
// Where several servers share the store, this is a cache of its rows. A change is
// written only if nobody else changed the job since they were read; else they are
// read again and the change is checked anew. What is refused on what the cache
// says is checked again on fresh rows first. docs/server.md has all rules.
class ManagedJob : public std::enable_shared_from_this<ManagedJob> {
 public:
  // Of what the store holds. `built` is the costed job where it has a profile.
  ManagedJob(JobContext* context, store::StoredJob stored, std::shared_ptr<const Job> built);
  ManagedJob(const ManagedJob&) = delete;
  ManagedJob& operator=(const ManagedJob&) = delete;

  // Goes on where the job was; `ask_for_work`: also has computed what is missing,
  // which whoever made it necessary has asked for, if the store is of this version.
  void Resume(bool ask_for_work);

  const std::string& id() const { return record_.id; }
  const std::string& client_key() const { return record_.client_key; }
  double created_at_seconds() const { return record_.created_at_seconds; }
  store::JobOrigin origin() const { return record_.origin; }
  const std::string& settings_json() const { return record_.settings_json; }
  const Shape& shape() const { return shape_; }
  PlanBoard& board() { return board_; }
  bool is_gone() const { return is_gone_; }
  // Of the rows that change as one: grows with every change of them.
  std::int64_t revision() const { return seen_revision_; }

  // Called with what the rank meets, on a thread of the store or at once.
  struct Registered {
    std::int64_t plan_version = 0;
    store::JobState state = store::JobState::kRegistering;
  };
  using RegisteredCallback = std::function<void(const Outcome<Registered>&)>;
  void Register(store::RankRecord rank, const RegisteredCallback& registered);

  using DoneCallback = std::function<void(const Outcome<void>&)>;
  void Measure(store::Measurements measured, DoneCallback done);

  // What the rank said of the sweep that it is at, or did last.
  struct ReportedRows {
    std::vector<ProfileKey> rows;
    bool done = false;
  };
  ReportedRows RowsOf(int rank) const;
  // Whether ranks are to measure now.
  bool WantsProfile() const;
  // Has the ranks measure anew while they go on under the plans that there are. Nothing
  // happens where they do so already.
  Outcome<void> Reprofile();
  // Ends that without a new profile.
  Outcome<void> CancelReprofile();

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

  // As PlanBoard::Wait(), for a later version than `after`. Who names a version that
  // this server has not heard of waits until the store was asked.
  std::int64_t AwaitPlan(std::int64_t after, double seconds, PlanBoard::Waiter waiter);

  // Does what time has brought: stragglers that begin or expire, ranks that
  // were waited for long enough, writes that failed before.
  void Tick();

  // Makes the sums of what Report() took durable now, as at the end of the process.
  void FlushIterations();

  // Reads what others wrote since the last time; publishes it and goes on from there.
  // All that was acknowledged anywhere before the call is known after it. Calls at the
  // same time share one read. Nothing to do where the store is this process's alone.
  Result<void> Refresh();
  // What other servers were told of iterations, which no mark tells of; at most once a second.
  void RefreshIterations();
  // Whether the store has, or had, something that was not read yet. Without locks.
  bool IsBehind(const store::JobMarks& marks) const;

  // Computes one step of what the job lacks: a curve, a better one, the plan for its
  // target. `keep_going` false: nobody wants it any more, or somebody else does it.
  // Returns whether that is settled; false: it should be tried again soon.
  bool Work(const std::function<bool()>& keep_going);
  bool WantsWork() const;

  JobView View() const;
  // Asks the store where it is not known here and may be elsewhere.
  std::optional<store::RankRecord> FindRank(int rank);
  std::vector<store::RankRecord> Ranks() const;

 private:
  // What changes as one: the rows that `revision` counts.
  struct Phase {
    store::JobState state = store::JobState::kRegistering;
    std::string reason;
    PlanTarget target;
    std::vector<store::StragglerRecord> stragglers;
    std::int64_t last_straggler = 0;
    std::string watch_json;  // Of detection and comparison; empty: none.
    std::shared_ptr<const Curve> curve;
    std::int64_t curve_mark = 0;  // The revision with which the curve came.
    store::PlanVersion version;   // 0: none.
    int sweep_round = 0;          // See store::JobRecord.
    int settled_round = 0;
    std::string profile_source;
    std::int64_t revision = 0;
  };

  static constexpr double kNeverPlanned = -1;

  // Runs `operation`, which returns an Outcome, with mutex_ held: again on fresh rows
  // where another server was first, or where it is refused for what may be old.
  template <typename Operation>
  auto OnFresh(const Operation& operation) -> decltype(operation());

  static Phase PhaseOf(const store::StoredJob& stored);  // But for the curve.
  static std::array<int, 3> PositionOf(const store::RankRecord& rank) {
    return {rank.dp_rank, rank.pp_rank, rank.tp_rank};
  }

  // All with mutex_ held unless they say otherwise.
  Outcome<void> CheckRank(const store::RankRecord& rank) const;
  // Whether the rank is registered at this position, or on its way to be.
  bool IsAt(const store::RankRecord& rank) const;
  Outcome<void> CheckMeasurements(const store::Measurements& measured) const;
  Outcome<void> CheckStraggler(const StragglerRequest& request) const;
  Outcome<void> CheckReports(const std::vector<IterationReport>& reports,
                             const std::vector<ClientReport>& clients) const;
  Outcome<void> Commit(std::vector<store::Fact> facts, Phase next);
  store::PlanVersion Planned(const Phase& next) const;
  Assignment AssignmentAt(const Phase& phase, double now_seconds) const;
  double PlanningTime() const;
  static std::string TargetReason(const Phase& next);
  std::shared_ptr<const PublishedPlan> Published() const;
  void Enter(Phase next);
  void PublishNow();
  void Advance();
  static bool IsPending(const Phase& phase);
  bool TakesMeasurements() const;
  bool IsProfileComplete() const;
  void ForgetMeasurements();
  void StartCharacterizing();
  bool TakeKnownProfile();
  Outcome<void> GiveUpSweep(const std::string& reason);
  void EmitThrottled() const;
  void EmitProfiling(const std::string& sentence, int rank = -1) const;
  void WatchDrift(const std::vector<KindReport>& kinds);
  void LookAtStragglers();
  void PassLostRevision();
  bool HasStragglerNews(double now_seconds) const;
  static ComparisonBlocks ComparisonOf(const Phase& phase);
  void ReadWatch();
  void ApplyWatch();
  void Watch(const std::vector<IterationReport>& reports);
  void AskForWork();
  bool Lacks(const Phase& phase) const;
  void AddWork(const Phase& next, std::vector<store::Fact>* facts) const;
  void EmitState() const;
  void Hear(const ClientReport& client);
  void EmitStraggler(std::int64_t id) const;
  void Vanish();
  bool IsOver() const;
  bool NoteOwnRows(const store::JobMarks& marks);
  void AddIteration(const IterationReport& report);
  std::vector<store::Fact> TakeIterations();
  std::vector<store::IterationSummary> AllIterations() const;

  // These take the lock.
  void Join(const store::RankRecord& rank, const RegisteredCallback& registered,
            bool is_second_look);
  void OnRegistered(const store::RankRecord& rank, const RegisteredCallback& registered,
                    bool is_second_look, const Result<store::JobMarks>& written);
  Outcome<void> OnMeasured(const store::Measurements& measured,
                           const Result<store::JobMarks>& written);
  struct Step;
  std::optional<Step> NextStep() const;
  Result<store::CurveRecord> Compute(const Step& step,
                                     const std::function<bool(double share)>& keep_going) const;
  bool IsPast(const Step& step) const;  // With mutex_ held.
  bool Accept(const Step& step, const store::CurveRecord& record);
  bool Give(const Step& step, const Error& error);  // There is no plan, and why.
  void WriteIterations(std::vector<store::Fact> facts);

  // Of Refresh(); these take the lock but for the last two.
  struct Reading;
  Result<bool> ReadOnce();
  Reading WhatIsKnown() const;
  bool Apply(const Reading& reading);
  bool ApplyPhase(const Reading& reading);
  Result<void> BuildJobs(Reading* reading);
  void ApplyRows(const Reading& reading);

  JobContext* const context_;
  const store::JobRecord record_;  // As created; state, reason, target: see phase_.
  const Shape shape_;
  PlanBoard board_;
  std::atomic<bool> is_gone_ = false;
  std::atomic<double> progress_ = 0;
  std::atomic<std::int64_t> seen_revision_ = 0;  // As phase_.revision and known_rows_ below.
  std::atomic<std::int64_t> seen_rows_ = 0;

  std::mutex refresh_mutex_;  // One reading at a time; taken before mutex_.
  std::atomic<std::uint64_t> refreshes_asked_ = 0;
  // With refresh_mutex_:
  std::uint64_t refreshes_done_ = 0;  // Those that were asked for before it began.
  Result<void> refreshed_;            // What came of the last one.
  double iterations_read_at_ = 0;

  mutable std::mutex mutex_;  // Of all below.
  Phase phase_;
  std::shared_ptr<const Job> job_;       // Null: not measured yet, or not ours to plan.
  std::shared_ptr<const Job> next_job_;  // Of a new sweep, until there are plans for it.
  std::int64_t lost_revision_ = 0;       // The last of those that the store no longer has; 0: none.
  std::map<int, store::RankRecord> ranks_;
  std::map<std::array<int, 3>, int> positions_;  // (dp, pp, tp) -> rank, pending ones too.
  struct Pending {
    store::RankRecord rank;
    int requests = 0;
  };
  std::map<int, Pending> pending_;
  ProfileTable table_;              // Exactly the measurements of this sweep, up to known_rows_.
  std::int64_t known_rows_ = 0;     // Of the marks: all rows up to here are in.
  std::int64_t read_rows_ = 0;      // Those that came by reading.
  std::int64_t own_rows_ = 0;       // The last of this server's own.
  std::int64_t checked_rows_ = -1;  // The store had no others when it was asked.
  std::optional<Measurable> measurable_;      // None: not asked for yet, or not known.
  std::map<int, std::size_t> measured_rows_;  // By rank; those on their way to the store, too.
  double last_measured_seconds_ = 0;
  std::size_t read_measurements_ = 0;
  // By plan version: what this process was told, and others.
  std::map<std::int64_t, store::IterationSummary> iterations_;
  std::map<std::int64_t, store::IterationSummary> iterations_elsewhere_;
  std::set<std::int64_t> unwritten_iterations_;
  std::map<int, ClientReport> clients_;  // The last of each rank; not durable.
  JobWatch watch_;                       // Has a lock of its own, as it has its own work.
  DriftWatch drift_;
  WatchState watch_state_;
  std::string watched_json_;                   // That watch_state_ is of, ...
  std::set<std::int64_t> watched_stragglers_;  // ... and the stragglers then.
  double flush_iterations_at_ = 0;
  double planned_at_ = kNeverPlanned;  // When Commit() last looked at stragglers and ranks.
  double work_again_at_ = 0;           // After a write or a step that failed; 0: not.
  bool has_given_up_ = false;          // No better plan is to come for long.
};

template <typename Operation>
auto ManagedJob::OnFresh(const Operation& operation) -> decltype(operation()) {
  constexpr std::chrono::seconds kPatience(5);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  bool is_second_look = false;
  while (true) {
    auto outcome = [&]() -> decltype(operation()) {
      const std::lock_guard lock(mutex_);
      if (is_gone_) return Fail(FailureCode::kNotFound, "the job was deleted");
      return operation();
    }();
    if (outcome || !context_->store.is_shared() || is_gone_) return outcome;
    const FailureCode code = outcome.error().code;
    // What is refused may be so only here: what it names may be at another server.
    const bool is_doubtful = !std::exchange(is_second_look, true) &&
                             (code == FailureCode::kNotFound || code == FailureCode::kConflict);
    if (code != FailureCode::kStale && !is_doubtful) return outcome;
    // The others that change the job all the time are at least not kept from it.
    if (std::chrono::steady_clock::now() > until) return outcome;
    if (auto fresh = Refresh(); !fresh) return Unavailable(fresh.error());
  }
}

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_
