// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_
#define PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "perseus/result.h"
#include "server/base/failure.h"
#include "server/planning/given_plan.h"
#include "server/planning/job_spec.h"
#include "server/runtime/events.h"
#include "server/runtime/managed_job.h"
#include "server/runtime/store_gate.h"
#include "server/runtime/worker.h"
#include "server/store/store.h"

namespace perseus::server {

// Whether the store has the job and cannot read it.
inline bool IsDamaged(const Outcome<std::shared_ptr<ManagedJob>>& job) {
  return !job && job.error().code == FailureCode::kInvalid;
}

struct ServiceOptions {
  std::optional<GivenPlan> given_plan = {};
  std::size_t max_jobs = 10'000;             // Limit of unfinished jobs.
  std::function<double()> now_seconds = {};  // Time of day. Empty: the store's.
  // A monotonic clock. Empty: the machine's.
  std::function<double()> steady_seconds = {};
  double tick_seconds =
      0.1;  // How often jobs look at the time: a straggler begins so late at most.
  // How long after its end a finished job is deleted. None: never.
  std::optional<double> keep_finished_seconds = {};
  // How long after its ranks fell silent a job ends. None: never.
  std::optional<double> finish_silent_seconds = {};
  WorkerOptions worker = {};
  // For the log; called from any thread. on_problem gets a sentence about each exception, on_change
  // gets each change that a client asked for.
  std::function<void(const std::string& sentence)> on_problem = {};
  std::function<void(const AuditRecord&)> on_change = {};
  // Gets each change of how many reports were acknowledged whose sums are not written yet.
  std::function<void(std::int64_t change)> on_unwritten = {};
};

// All jobs of the active server of a store, without HTTP. Only Start(), the destructor and the
// calls about the library of profiles and the history wait for the store. Each callback is called
// once, perhaps before the call returns. Thread-safe.
class JobService {
 public:
  using JobPointer = std::shared_ptr<ManagedJob>;

  // Loads the jobs of the store and continues them.
  static Result<std::unique_ptr<JobService>> Start(std::unique_ptr<store::Store> store,
                                                   ServiceOptions options);
  // Stops planning, completes the writes that were accepted, closes the store.
  ~JobService();
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;

  struct Created {
    JobPointer job;
    bool is_new = false;  // False: a job with this client key existed already.
  };
  using CreatedCallback = std::function<void(const Outcome<Created>&)>;
  void Create(const JobSpec& spec, store::JobOrigin origin, const Caller& caller,
              CreatedCallback created);

  using FoundCallback = std::function<void(const Outcome<JobPointer>&)>;
  // kUnavailable: the job is not in memory, and the store does not answer.
  void Get(const std::string& id, const FoundCallback& found);
  void GetByKey(const std::string& client_key, const FoundCallback& found);

  // The jobs in this server's memory, by time of creation. Only finished jobs may be missing.
  std::vector<JobPointer> Jobs() const;
  // All jobs, by time of creation. A job that is not in memory is listed as the store has it.
  struct Listed {
    store::JobHead head;
    JobPointer job;  // Null: the job is not in memory.
  };
  std::vector<Listed> List() const;

  // The head of a job; nullopt: there is none.
  std::optional<store::JobHead> HeadOf(const std::string& id) const;
  // Runs `task` on a thread that may wait for the store.
  void OnReader(std::function<void()> task) { readers_.Post(std::move(task)); }

  // Drops a deleted job from memory.
  void Forget(const std::string& id);

  // Deletes a job that Get() refuses as damaged (kInvalid), without reading it.
  using DeletedCallback = std::function<void(const Outcome<void>&)>;
  void DeleteDamaged(const std::string& id, const Caller& caller, DeletedCallback deleted);
  // Number of jobs that are there and were found damaged or set aside (ManagedJob::is_aside()).
  std::size_t damaged_jobs() const;

  // The library of profiles, the newest first. List entries have no CSV.
  Outcome<std::vector<store::ProfileRecord>> ListProfiles();
  Outcome<store::ProfileRecord> FindProfile(const std::string& id);
  Outcome<void> DeleteProfile(const std::string& id, const Caller& caller);

  // See store::Store::ListHistory().
  Outcome<std::vector<store::NamedHistoryRow>> ListHistory(const store::HistoryQuery& wanted);

  EventHub& events() { return events_; }
  const std::optional<GivenPlan>& given_plan() const { return options_.given_plan; }
  store::StoreCounters store_counters() const { return store_.counters(); }
  // Whether this server may answer: another one may have the store by now.
  bool is_active() const { return store_.is_active(); }
  std::size_t max_jobs() const { return options_.max_jobs; }
  // Number of jobs that have not finished, whether or not they were loaded yet.
  std::size_t unfinished_jobs() const;
  // Number of jobs that wait for plans.
  std::size_t jobs_that_want_work() const;

  // Asks the planning threads to stop and does not wait for them. The next start of a server
  // computes the plans again.
  void StopWork() { worker_->Stop(); }

  // A job's id is this prefix and 16 hexadecimal digits.
  static constexpr const char* kIdPrefix = "j-";

 private:
  JobService(std::unique_ptr<store::Store> store, ServiceOptions options);
  Result<void> Restore();
  void Rest();
  Moment Now() const;
  void TickAll();
  void TickOnce();
  std::string KnownKey(const std::string& client_key) const;
  JobPointer Known(const std::string& id) const;
  JobPointer Add(LoadedJob loaded, bool ask_for_work);
  void Load(const std::string& id, bool ask_for_work, const FoundCallback& found);
  bool PerformWork(const std::string& id, const std::function<bool()>& keep_going);

  ServiceOptions options_;
  EventHub events_;
  store::Store& store_;
  Readers readers_;
  StoreGate gate_;
  JobContext context_;

  mutable SharedMutex mutex_;
  std::map<std::string, JobPointer> jobs_ PERSEUS_GUARDED_BY(mutex_);  // At work.
  // The others: they are loaded when asked for.
  std::map<std::string, store::JobHead> heads_ PERSEUS_GUARDED_BY(mutex_);
  std::map<std::string, std::string> ids_ PERSEUS_GUARDED_BY(mutex_);  // Of both, by client key.

  mutable Mutex lookup_mutex_;
  std::set<std::string> damaged_ PERSEUS_GUARDED_BY(lookup_mutex_);  // Ids.
  // Callbacks that wait for a job, by its id.
  std::map<std::string, std::vector<FoundCallback>> loading_ PERSEUS_GUARDED_BY(lookup_mutex_);

  Mutex stop_mutex_;
  ConditionVariable stop_;
  bool stopping_ PERSEUS_GUARDED_BY(stop_mutex_) = false;
  std::unique_ptr<Worker> worker_;
  std::thread ticker_;
  // The first to be destroyed: its last callbacks use the others, and this store.
  const std::unique_ptr<store::Store> own_store_;
};

// Computes one planning step of the job: a first curve, a better one, or the plan for its target.
// Waits for the store, so only planning threads may call it. Stops when `keep_going` returns false.
// Returns whether the step is settled; false: try again soon.
bool WorkOnPlans(ManagedJob& job, store::Store& store, const std::function<bool()>& keep_going);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_
