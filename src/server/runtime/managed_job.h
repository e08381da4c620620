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
#include <string_view>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/base/failure.h"
#include "server/detect/conditions_watch.h"
#include "server/detect/drift_watch.h"
#include "server/detect/iteration_history.h"
#include "server/detect/iteration_sums.h"
#include "server/detect/job_watch.h"
#include "server/detect/rank_watch.h"
#include "server/detect/reports.h"
#include "server/domain/caller.h"
#include "server/domain/decide.h"
#include "server/domain/job_life.h"
#include "server/domain/profiling_summary.h"
#include "server/planning/measured_timeline.h"
#include "server/runtime/events.h"
#include "server/runtime/job_store.h"
#include "server/runtime/plan_board.h"
#include "server/store/facts.h"

namespace perseus::server {

// One state behind a mutex, and the effects of its changes, done in their order outside of it, on
// whichever thread came last. A thread that changes the state waits neither for a disk nor for
// another's callback.
class PERSEUS_CAPABILITY("strand") Strand {
 public:
  using Effect = std::function<void()>;

  // `on_problem` is told of effects that threw.
  explicit Strand(std::function<void(const std::string&)> on_problem)
      : on_problem_(std::move(on_problem)) {}

  // Holds the mutex as long as it lives. In the end, also when a change threw, does the effects
  // that were added, unless another thread does already.
  class PERSEUS_SCOPED_CAPABILITY Turn {
   public:
    explicit Turn(const Strand& strand) PERSEUS_ACQUIRE(strand) : strand_(strand) {
      strand_.mutex_.Lock();
    }
    ~Turn() PERSEUS_RELEASE() {
      strand_.Drain();
      strand_.mutex_.Unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    const Strand& strand_;
  };

  // Tells clang, within a lambda that is called at once, that this is a turn.
  void IsHeld() const PERSEUS_ASSERTS(this) {}

  // Within a turn: `effect` is to be done once the mutex is free.
  void Then(Effect effect) const PERSEUS_REQUIRES(this) PERSEUS_NO_THREAD_SAFETY_ANALYSIS {
    effects_.push_back(std::move(effect));
  }

 private:
  void Drain() const PERSEUS_REQUIRES(mutex_) {
    if (is_draining_) return;
    is_draining_ = true;
    while (!effects_.empty()) {
      std::vector<Effect> effects = std::exchange(effects_, {});
      const MutexUnlock open_again(mutex_);
      for (Effect& effect : effects) {
        Do(effect);
        effect = nullptr;  // Its captures may call back: it goes without the mutex.
      }
    }
    is_draining_ = false;
  }

  void Do(const Effect& effect) const {
    try {
      effect();
    } catch (const std::exception& exception) {
      if (on_problem_) on_problem_(std::string("A bug: an answer threw: ") + exception.what());
    }
  }

  const std::function<void(const std::string&)> on_problem_;
  mutable Mutex mutex_;
  mutable std::vector<Effect> effects_ PERSEUS_GUARDED_BY(mutex_);
  mutable bool is_draining_ PERSEUS_GUARDED_BY(mutex_) = false;
};

// A rank's place in its job.
struct RankPlace {
  int rank = 0;
  int dp_rank = 0;
  int pp_rank = 0;
};

// The places of a job's ranks, for readers of plans. A registered rank never moves, so one number
// says all about it. Readers take no lock and do not wait.
class RankPlaces {
 public:
  explicit RankPlaces(std::int64_t world_size) : places_(static_cast<std::size_t>(world_size)) {}

  // Nullopt: no such rank has registered.
  std::optional<RankPlace> Find(int rank) const {
    if (rank < 0 || static_cast<std::size_t>(rank) >= places_.size()) return std::nullopt;
    const std::uint64_t place = places_[static_cast<std::size_t>(rank)];
    if (place == 0) return std::nullopt;
    return RankPlace{rank, static_cast<int>(place >> 32U) - 1, static_cast<int>(place & kLow)};
  }

  // One writer at a time.
  void Set(const store::RankRecord& rank) {
    if (rank.rank < 0 || static_cast<std::size_t>(rank.rank) >= places_.size()) return;
    places_[static_cast<std::size_t>(rank.rank)] =
        (static_cast<std::uint64_t>(rank.dp_rank + 1) << 32U) |
        static_cast<std::uint32_t>(rank.pp_rank);
  }
  // Forgets the others.
  void SetAll(const std::map<int, store::RankRecord>& ranks) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (!ranks.contains(static_cast<int>(i))) places_[i] = 0;
    }
    for (const auto& [number, rank] : ranks) Set(rank);
  }

 private:
  static constexpr std::uint64_t kLow = 0xffffffff;

  // By rank: 2^32 (dp_rank + 1) + pp_rank. 0: not known.
  std::vector<std::atomic<std::uint64_t>> places_;
};

// For the log: a durable change that a client asked for.
struct AuditRecord {
  std::string job;
  std::string what;
  std::string before;
  std::string after;
  std::string token_name;
  std::string peer;
};

// The parts of the server that a job uses. Outlives all jobs. All functions are thread-safe.
struct JobContext {
  JobStore& store;
  EventHub& events;
  std::function<Moment()> now;
  // Whether the operator's plan for jobs over Zeus' wire fits a job of this shape.
  std::function<bool(const Shape&)> has_given_plan;
  // Asks the planning threads for the plans that the job lacks.
  std::function<void(const std::string& id, Work work)> want_work;
  // Versions of plans that a job of before this time of day had may have been lost; see
  // store::Active::history_seconds().
  std::int64_t history_seconds = 0;
  std::function<void(const AuditRecord&)> on_change = {};
  std::function<void(std::int64_t change)> on_unwritten = {};  // See ServiceOptions.
  std::function<void(const std::string& sentence)> on_problem = {};
};

// A rank, with the words of its client and of the watch.
struct RankNow {
  store::RankRecord record;
  std::optional<ClientReport> client;  // None: it did not report yet.
  std::optional<double> lateness;      // See JobWatch::Lateness().
};

// A snapshot of a job, to show to clients.
struct JobView {
  store::JobRecord record;  // Without profile.
  std::int64_t revision = 0;
  bool has_profile = false;
  std::string target;
  std::int64_t ranks_registered = 0;
  std::vector<int> missing_ranks;  // The first that have not registered.
  std::int64_t ranks_measured = 0;
  std::vector<store::StragglerRecord> stragglers;
  std::int64_t slow_pipelines = 0;            // That these slow, now or later.
  std::shared_ptr<const PublishedPlan> plan;  // Null: none was published.
  bool refined = false;                       // No better plan will come.
  std::vector<store::IterationSummary> iterations;
  double progress = 0;                                     // Share of the planning step done, 0..1.
  std::map<std::string, double> client_counts = {};        // Sums over ranks.
  std::map<std::string, std::int64_t> client_states = {};  // Ranks by the state they report.
  bool has_ended = false;                // The trainers of all registered ranks have ended.
  std::int64_t complaining_clients = 0;  // Clients that report an error,
  std::vector<ClientReport> troubled_clients = {};  // and the first of them.
  std::int64_t shadow_clients = 0;                  // Clients in shadow mode: they set no clock.
  WatchView watch = {};
  std::string profile_source = {};  // Empty: there is no profile yet.
  bool sweeps_again = false;        // Ranks measure again and follow the old profile's plans.
  ProfilingSummary profiling = {};
  std::vector<Drift> drifts = {};
  std::optional<ConditionsState> conditions = {};  // None: the job is told them, or has none.
  MeasuredConditions measured = {};                // By ranks that report.
  std::vector<double> transfer_seconds = {};       // FixedTimes::comm_delay_seconds of the plans.
  // The last iteration of pipeline 0 that all its ranks timed, as planned. Null: none yet.
  std::shared_ptr<const MeasuredTimeline> timeline = {};
  std::string profile_sha256 = {};        // Of the profile that plans are made of; empty: none yet.
  std::vector<perseus::Note> notes = {};  // Oddities in it and in the settings.
};

// The result of a command.
struct Answer {
  std::int64_t straggler = 0;     // The id of the straggler that was added. 0: none.
  std::int64_t plan_version = 0;  // This and the rest: the job's state after the change.
  store::JobState state = store::JobState::kRegistering;
  WatchSettings settings = {};
};

// One job in memory. It runs the rules of domain/ on a strand and never waits for the
// store.
// - Do() decides a command at once. Its facts are durable before the job publishes a plan, sends an
//   event or answers. If the store refuses the facts, nothing has happened.
// - Several writes about ranks and measurements may be under way at once. Other changes are made
//   one after the other.
// No call waits. Thread-safe.
class ManagedJob : public std::enable_shared_from_this<ManagedJob> {
 public:
  ManagedJob(JobContext* context, JobLife life, const StoredSums& sums);
  ManagedJob(const ManagedJob&) = delete;
  ManagedJob& operator=(const ManagedJob&) = delete;

  // Continues a loaded job. Call it once, before anything else. `ask_for_work`: also ask for the
  // plans that the job lacks.
  void Resume(bool ask_for_work);

  const std::string& id() const { return record_.id; }
  const std::string& name() const { return record_.name; }
  const std::string& client_key() const { return record_.client_key; }
  double created_at_seconds() const { return record_.created_at_seconds; }
  store::JobOrigin origin() const { return record_.origin; }
  const std::string& settings_json() const { return record_.settings_json; }
  const Shape& shape() const { return shape_; }
  // Grows with every change of the job's phase.
  std::int64_t revision() const { return revision_; }
  PlanBoard& board() { return board_; }
  bool is_gone() const { return is_gone_; }
  bool is_finished() const { return is_finished_; }
  // It has finished, and no client asked for that.
  bool has_ended_itself() const;
  // The rules threw again and again, so the server does nothing with the job by itself until it is
  // started again. Plans are read and commands are carried out as ever.
  bool is_aside() const { return is_aside_; }
  // The job's entry in a list.
  store::JobHead head() const;
  // Notes that a client asks for the job; see MayRest().
  void Touch() { asked_at_seconds_ = context_->now().seconds; }

  // Whether the job may leave the memory: it has finished, no client has asked for it since
  // `since_seconds`, none waits at it, and the store has all of it.
  bool MayRest(double since_seconds) const;

  // Carries out a command; `reply` is called once, perhaps before this returns.
  using Reply = std::function<void(const Outcome<Answer>&)>;
  void Do(Command command, Caller caller, Reply reply);

  // Takes reports of iterations and of clients. Their sums become durable within a second or two.
  using Done = std::function<void(const Outcome<void>&)>;
  void Report(const std::vector<IterationReport>& reports, const std::vector<ClientReport>& clients,
              Done done);

  // The trouble of this client's rank, by the clients' reports; "": none.
  std::string TroubleOf(const ClientReport& client) const;
  // Whether the client is that of the first rank, which trains while others are missing.
  bool LacksRanksOf(const ClientReport& client) const;

  // As PlanBoard::Wait().
  std::int64_t AwaitPlan(std::int64_t after, double seconds, PlanBoard::Waiter waiter) {
    HearRanks();
    return board_.Wait(after, seconds, std::move(waiter));
  }

  // Handles effects of time: stragglers begin and expire, waiting for late ranks ends, failed
  // writes are tried again. To be called every ServiceOptions::tick_seconds.
  void Tick();

  // Finishes the job if it has ranks, and none of them was heard of for so long: they are gone
  // without a word.
  void FinishIfSilent(double seconds);

  // The sums and the history from Report() that are not in the store yet. For the end of the
  // process.
  std::vector<store::Fact> TakeIterations();
  // How writing these sums ended.
  void OnIterationsWritten(const std::vector<store::Fact>& facts, bool are_written);

  // The next planning step, or nullopt if no plan is missing.
  std::optional<PlanningStep> NextStep() const;
  // See perseus::server::IsPast().
  bool IsPast(const PlanningStep& step) const;
  // Reports the share of the present planning step that is done, for View().
  void SetProgress(double share) { progress_ = share; }
  // A planning step has no result. Returns true if the job has plans already and only lacks better
  // ones.
  bool GiveUpBetterPlans(const PlanningStep& step);
  bool WantsWork() const;
  // Whether ranks must measure now. Takes no lock.
  bool WantsProfile() const { return is_profiling_; }

  JobView View() const;
  std::shared_ptr<const MeasuredTimeline> Timeline() const;  // See JobView::timeline.
  // A copy of the durable state.
  JobLife Life() const;
  std::vector<store::RankRecord> Ranks() const;
  // The ranks as they are known now, by number.
  std::vector<RankNow> RanksNow() const;
  // Calls `visit` for each rank, by number, with the last word of its client (nullptr: none yet).
  // It must neither keep its arguments nor ask anything of the job.
  using RankVisitor = std::function<void(const store::RankRecord&, const ClientReport*)>;
  void VisitRanks(const RankVisitor& visit) const;
  // A rank's place; nullopt: it has not registered. Takes no lock.
  std::optional<RankPlace> PlaceOf(int rank) const { return places_.Find(rank); }
  std::optional<store::RankRecord> KnownRank(int rank) const;
  // The rank's reports of its present or last sweep.
  struct ReportedRows {
    std::vector<ProfileKey> rows;
    bool done = false;
  };
  ReportedRows RowsOf(int rank) const;

 private:
  // A command that is not answered yet.
  struct Operation {
    Command command;
    Caller caller;
    Reply reply;

    // Whether it is written alone.
    bool is_change() const { return caller.if_revision || !HoldsAtAnyRevision(command); }
  };
  using OperationPointer = std::shared_ptr<Operation>;

  // A step that may throw, and the index of its command; 0 if it has none.
  using Attempt = std::pair<std::string_view, std::size_t>;

  void Begin(const OperationPointer& operation);
  void Run(const OperationPointer& operation) PERSEUS_REQUIRES(strand_);
  Outcome<Decision> DecideNow(Operation* operation, Moment* now) const PERSEUS_REQUIRES(strand_);
  void RunInternal(Command command, Reply reply = {}) PERSEUS_REQUIRES(strand_);
  void RunLater(const OperationPointer& operation) PERSEUS_REQUIRES(strand_);
  void Settle(const OperationPointer& operation, Outcome<Answer> outcome) PERSEUS_REQUIRES(strand_);
  void Carry(const OperationPointer& operation, Decision decision, const Moment& now)
      PERSEUS_REQUIRES(strand_);
  void OnWritten(const OperationPointer& operation, const Decision& decision, double looked_at,
                 const store::Revision& written) PERSEUS_REQUIRES(strand_);
  void OnRefused(const OperationPointer& operation, const Error& error) PERSEUS_REQUIRES(strand_);
  void ApplyWritten(const Decision& decision, std::int64_t revision) PERSEUS_REQUIRES(strand_);
  void ApplyEnd(const Decision& decision) PERSEUS_REQUIRES(strand_);
  void ApplyRows(const Decision& decision) PERSEUS_REQUIRES(strand_);
  void Want(Work work) const PERSEUS_REQUIRES(strand_);
  Answer AnswerWith(std::int64_t straggler) const PERSEUS_REQUIRES(strand_);
  void RunNext() PERSEUS_REQUIRES(strand_);
  void OnPhase(const Phase& before) PERSEUS_REQUIRES(strand_);
  void Publish() PERSEUS_REQUIRES(strand_);
  void SeePhase() PERSEUS_REQUIRES(strand_);
  void HearRanks() { heard_at_seconds_ = context_->now().seconds; }
  Advance AdvanceNow() const PERSEUS_REQUIRES(strand_);
  void AdvanceJob() PERSEUS_REQUIRES(strand_);
  void AskLibrary(const std::string& layout) PERSEUS_REQUIRES(strand_);
  std::vector<store::Fact> TakeSums() PERSEUS_REQUIRES(strand_);
  void FlushIterations() PERSEUS_REQUIRES(strand_);
  void CountUnwritten() PERSEUS_REQUIRES(strand_);
  void LookAtWatch() PERSEUS_REQUIRES(strand_);
  void LookAtConditions() PERSEUS_REQUIRES(strand_);
  void LookAtTimeNow() PERSEUS_REQUIRES(strand_);
  void TakeReports(const std::vector<IterationReport>& reports,
                   const std::vector<ClientReport>& clients) PERSEUS_REQUIRES(strand_);
  void KeepTimeline(const WholeIteration& whole, const IterationReport& last)
      PERSEUS_REQUIRES(strand_);
  void Hear(const ClientReport& client, std::size_t iterations) PERSEUS_REQUIRES(strand_);
  bool CanSetClocksAgain(const ClientReport& client) const PERSEUS_REQUIRES(strand_);
  void WatchDrift(const std::vector<KindReport>& kinds) PERSEUS_REQUIRES(strand_);
  void WatchIterations(const std::vector<IterationReport>& reports) PERSEUS_REQUIRES(strand_);
  void RecordCost(const WatchedIteration& iteration, double day_seconds) PERSEUS_REQUIRES(strand_);
  void Tell(const std::string& problem) const PERSEUS_REQUIRES(strand_);
  void NoteThrow(const Attempt& attempt, std::string problem, const Operation& operation)
      PERSEUS_REQUIRES(strand_);
  void Announce(const Announcement& announcement) PERSEUS_REQUIRES(strand_);
  void Audit(const Operation& operation, const Decision& decision) PERSEUS_REQUIRES(strand_);

  JobContext* const context_;
  const store::JobRecord record_;  // As created, without profile.
  const Shape shape_;
  PlanBoard board_;
  RankPlaces places_;
  std::atomic<bool> is_gone_ = false;
  std::atomic<bool> is_profiling_ = false;
  std::atomic<bool> is_finished_ = false;
  std::atomic<bool> is_aside_ = false;
  std::atomic<double> asked_at_seconds_ = 0;
  std::atomic<double> heard_at_seconds_ = 0;  // When a rank last spoke, or the job changed.
  std::atomic<double> progress_ = 0;
  std::atomic<std::int64_t> revision_ = 0;  // As life_.revision.

  Strand strand_;
  JobLife life_ PERSEUS_GUARDED_BY(strand_);
  Underway underway_ PERSEUS_GUARDED_BY(strand_);
  bool is_changing_ PERSEUS_GUARDED_BY(strand_) = false;  // A change of the phase is under way.
  std::deque<OperationPointer> waiting_ PERSEUS_GUARDED_BY(strand_);  // For that.
  std::int64_t highest_version_ PERSEUS_GUARDED_BY(strand_) =
      0;  // That any rank can have been told.
  bool is_asking_library_ PERSEUS_GUARDED_BY(strand_) = false;
  bool has_asked_library_ PERSEUS_GUARDED_BY(strand_) = false;
  std::int64_t stays_running_at_ PERSEUS_GUARDED_BY(strand_) = -1;  // Revision.
  double last_measured_seconds_ PERSEUS_GUARDED_BY(strand_) = 0;
  IterationSums sums_ PERSEUS_GUARDED_BY(strand_);
  IterationHistory history_ PERSEUS_GUARDED_BY(strand_);
  std::int64_t counted_unwritten_ PERSEUS_GUARDED_BY(strand_) = 0;  // As told to on_unwritten.
  double flush_at_seconds_ PERSEUS_GUARDED_BY(strand_) = 0;
  bool is_flushing_ PERSEUS_GUARDED_BY(strand_) = false;
  std::map<int, ClientReport> clients_
      PERSEUS_GUARDED_BY(strand_);  // The last of each rank; not durable.
  RankWatch rank_watch_ PERSEUS_GUARDED_BY(strand_);
  // Of each rank of a pipeline; none: not asked for yet. Empty: the settings do not say.
  mutable std::optional<std::vector<ComputationCounts>> planned_ PERSEUS_GUARDED_BY(strand_);
  JobWatch watch_ PERSEUS_GUARDED_BY(strand_);
  DriftWatch drift_ PERSEUS_GUARDED_BY(strand_);
  // Measurements of the ranks that report; not durable.
  ConditionsWatch conditions_ PERSEUS_GUARDED_BY(strand_);
  std::shared_ptr<const MeasuredTimeline> timeline_ PERSEUS_GUARDED_BY(strand_);  // See JobView.
  double conditions_at_seconds_ PERSEUS_GUARDED_BY(strand_) = 0;                  // Looked at next.
  std::optional<double> looked_at_day_seconds_
      PERSEUS_GUARDED_BY(strand_);  // For stragglers. None: look again.
  double work_again_at_seconds_ PERSEUS_GUARDED_BY(strand_) = 0;  // 0: not.
  bool has_given_up_ PERSEUS_GUARDED_BY(strand_) = false;  // No better plan is to come for long.
  std::map<Attempt, int> throws_ PERSEUS_GUARDED_BY(strand_);  // One after the other.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_MANAGED_JOB_H_
