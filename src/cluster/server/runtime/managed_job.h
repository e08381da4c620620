// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_
#define PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/base/failure.h"
#include "server/domain/caller.h"
#include "server/domain/commands.h"
#include "server/domain/decide.h"
#include "server/domain/job_life.h"
#include "server/domain/profiling_summary.h"
#include "server/runtime/events.h"
#include "server/runtime/job_store.h"
#include "server/runtime/outbox.h"
#include "server/runtime/plan_board.h"
#include "server/watch/drift_watch.h"
#include "server/watch/iteration_sums.h"
#include "server/watch/job_watch.h"
#include "server/watch/reports.h"

namespace perseus::server {

// A change that somebody asked for and that is durable, for the log.
struct AuditRecord {
  std::string job;
  std::string what;
  std::string before;
  std::string after;
  std::string token_name;
  std::string peer;
};

// What a job needs of the server around it; outlives all jobs. All may be called from any thread.
struct JobContext {
  JobStore& store;
  EventHub& events;
  std::function<Moment()> now;
  // Whether the plan that was given for jobs over Zeus' wire fits one.
  std::function<bool(const Shape&)> has_given_plan;
  // The store has work that somebody should claim.
  std::function<void()> wake_worker;
  // Has a job read again soon.
  std::function<void(const std::string& id)> refresh_soon;
  std::function<void(const AuditRecord&)> on_change = {};
  std::function<void(const std::string& sentence)> on_problem = {};
};

// A job as it is now, to show.
struct JobView {
  store::JobRecord record;  // Without profile.
  std::int64_t revision = 0;
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
  std::string profile_sha256 = {};        // Of the profile that plans are made of; empty: none yet.
  std::vector<perseus::Note> notes = {};  // What was found odd in it and in the settings.
};

// What a change came to.
struct Answer {
  std::int64_t straggler = 0;     // The id of a new one.
  std::int64_t plan_version = 0;  // Of the job from then on, as is:
  store::JobState state = store::JobState::kRegistering;
  WatchSettings settings = {};
};

// One job at work: the rules of domain/ on a strand, over a store that is never waited for. A
// command is decided at once; what it decides is durable before it is answered, published or told;
// what the store refuses did not happen. Facts about ranks and measurements may be under way
// together; other changes are made one after the other. No call waits, but for those that say so.
// Thread-safe.
//
// Where several servers share the store, this is a cache of its rows. A change is written only if
// nobody else changed the job since they were read; else they are read again and the command is
// decided anew. What is refused on what the cache says is decided again on fresh rows first.
// docs/explanation/server.md has all rules.
class ManagedJob : public std::enable_shared_from_this<ManagedJob> {
 public:
  ManagedJob(JobContext* context, JobLife life);
  ManagedJob(const ManagedJob&) = delete;
  ManagedJob& operator=(const ManagedJob&) = delete;

  // Goes on where the job was; once, before anything else. `elsewhere`: what was reported of
  // iterations before. `ask_for_work`: also has computed what is missing, which whoever made it
  // necessary has asked for, if the store is of this version.
  void Resume(const std::vector<store::IterationSummary>& elsewhere, bool ask_for_work);

  const std::string& id() const { return record_.id; }
  const std::string& client_key() const { return record_.client_key; }
  double created_at_seconds() const { return record_.created_at_seconds; }
  store::JobOrigin origin() const { return record_.origin; }
  const std::string& settings_json() const { return record_.settings_json; }
  const Shape& shape() const { return shape_; }
  // Of the rows that change as one: grows with every change of them.
  std::int64_t revision() const { return seen_revision_; }
  PlanBoard& board() { return board_; }
  bool is_gone() const { return is_gone_; }
  // What a list says of it.
  store::JobHead head() const;
  // Somebody asks for it, and when that was last.
  void Touch() { asked_at_seconds_ = context_->now().seconds; }
  double asked_at_seconds() const { return asked_at_seconds_; }

  // Carries out a command; `reply` is called once, perhaps before this returns.
  using Reply = std::function<void(const Outcome<Answer>&)>;
  void Do(Command command, Caller caller, Reply reply);

  // Not durable one by one: sums are, within a second or two.
  using Done = std::function<void(const Outcome<void>&)>;
  void Report(std::vector<IterationReport> reports, std::vector<ClientReport> clients, Done done);

  // As PlanBoard::Wait(), for a later version than `after`. Who names a version that this server
  // has not heard of waits until the store was asked.
  std::int64_t AwaitPlan(std::int64_t after, double seconds, PlanBoard::Waiter waiter);

  // Does what time has brought: stragglers that begin or expire, ranks that were waited for long
  // enough, writes that failed before.
  void Tick();

  // The sums of what Report() took that the store does not have yet, as at the end of the process.
  std::vector<store::Fact> TakeIterations();

  // Reads what others wrote since the last time; publishes it and goes on from there. All that
  // was acknowledged anywhere before the call is known when `done` is called. Calls at the same
  // time share one reading. Nothing to do where the store is this process's alone.
  using Refreshed = std::function<void(const Result<void>&)>;
  void Refresh(Refreshed done);
  // Also what other servers were told of iterations, at most once a second.
  void RefreshAll(Refreshed done);
  // Whether the store has, or had, something that was not read yet. Without locks.
  bool IsBehind(const store::JobMarks& marks) const;

  // What is to be computed next of what the job lacks.
  std::optional<PlanningStep> NextStep() const;
  // A share of the present step is done.
  void SetProgress(double share) { progress_ = share; }
  // A step has no result. Whether there are plans already, so that only better ones lack.
  bool GiveUpBetterPlans(const PlanningStep& step);
  bool WantsWork() const;
  // Whether ranks are to measure now.
  bool WantsProfile() const;

  JobView View() const;
  // What is durable, as a value.
  JobLife Life() const;
  std::vector<store::RankRecord> Ranks() const;
  // Asks the store where the rank is not known here and may be elsewhere. kUnavailable: nobody
  // can say.
  using RankFound = std::function<void(const Outcome<store::RankRecord>&)>;
  void FindRank(int rank, RankFound found);
  // What the rank said of the sweep that it is at, or did last.
  struct ReportedRows {
    std::vector<ProfileKey> rows;
    bool done = false;
  };
  ReportedRows RowsOf(int rank) const;

 private:
  // A command that was not answered yet.
  struct Operation {
    Command command;
    Caller caller;
    Reply reply;
    double until_seconds = 0;  // Other servers that are faster all the time are borne so long.
    bool has_looked = false;   // The store was asked since it came.
  };
  using OperationPointer = std::shared_ptr<Operation>;

  // All of these on the strand.
  void Run(const OperationPointer& operation);
  void RunInternal(Command command, Reply reply = {});
  bool MayRetry(const Operation& operation, const Failure& failure) const;
  void RefreshThenRun(const OperationPointer& operation);
  void RunLater(const OperationPointer& operation);
  void Settle(const OperationPointer& operation, Outcome<Answer> outcome);
  void Carry(const OperationPointer& operation, Decision decision, const Moment& now);
  void Begin(const OperationPointer& operation);  // Not on the strand.
  void MarkUnderway(const std::vector<store::Fact>& facts);
  void UnmarkUnderway(const std::vector<store::Fact>& facts);
  void OnWritten(const OperationPointer& operation, const Decision& decision, double looked_at,
                 const Result<store::JobMarks>& written);
  void OnRefused(const OperationPointer& operation, const Decision& decision, const Error& error);
  void ApplyWritten(const Decision& decision, const store::JobMarks& marks);
  void ApplyRows(const Decision& decision, const store::JobMarks& marks);
  Answer AnswerWith(std::int64_t straggler) const;
  void RunNext();
  void OnPhase(const Phase& before);
  void Publish();
  void SeeMarks();
  Advance AdvanceNow() const;
  void AdvanceJob();
  void AskLibrary(const std::string& layout);
  void FlushIterations();
  void LookAtWatch();
  void LookAtTimeNow();
  void WhenRead(Refreshed done);
  void StartReading();
  void ReadOnce(std::int64_t last_waiter, int readings);
  void OnRead(const Result<Reading>& reading, std::int64_t last_waiter, int readings);
  void EndReading(const Result<void>& outcome, std::int64_t last_waiter);
  struct Reports;
  void TryReports(const std::shared_ptr<Reports>& reports);
  void TakeReports(const Reports& reports);
  void Hear(const ClientReport& client);
  void WatchDrift(const std::vector<KindReport>& kinds);
  void WatchIterations(const std::vector<IterationReport>& reports);
  void Announce(const Announcement& announcement);
  void Audit(const Operation& operation, const Decision& decision);
  bool is_shared() const { return context_->store.is_shared(); }

  JobContext* const context_;
  const store::JobRecord record_;  // As created, without profile.
  const Shape shape_;
  PlanBoard board_;
  std::atomic<bool> is_gone_ = false;
  std::atomic<double> asked_at_seconds_ = 0;
  std::atomic<double> progress_ = 0;
  std::atomic<std::int64_t> seen_revision_ = 0;  // As life_.marks.
  std::atomic<std::int64_t> seen_rows_ = 0;

  Outbox strand_;
  // Of the strand, all below.
  JobLife life_;
  Underway underway_;
  bool is_changing_ = false;              // A change of the phase is under way.
  std::deque<OperationPointer> waiting_;  // For that.
  // Readings: one at a time; who asks meanwhile waits for the next.
  bool is_reading_ = false;
  std::vector<Refreshed> of_this_reading_;
  std::vector<Refreshed> of_next_reading_;
  std::int64_t checked_rows_ = -1;    // The store had no others when it was read.
  std::int64_t highest_version_ = 0;  // That any rank can have been told by this server.
  bool is_asking_library_ = false;
  bool has_asked_library_ = false;
  double last_measured_seconds_ = 0;
  IterationSums sums_;
  double flush_at_seconds_ = 0;
  double iterations_read_at_seconds_;
  std::map<int, ClientReport> clients_;  // The last of each rank; not durable.
  JobWatch watch_;                       // Its lock is a leaf.
  DriftWatch drift_;
  std::optional<double> looked_at_day_seconds_;  // For stragglers. None: look again.
  double work_again_at_seconds_ = 0;             // 0: not.
  bool has_given_up_ = false;                    // No better plan is to come for long.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_
