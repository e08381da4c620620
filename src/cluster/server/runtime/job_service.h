// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_
#define PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "perseus/result.h"
#include "server/base/failure.h"
#include "server/planning/given_plan.h"
#include "server/planning/job_spec.h"
#include "server/runtime/events.h"
#include "server/runtime/managed_job.h"
#include "server/runtime/readers.h"
#include "server/runtime/refresher.h"
#include "server/runtime/shared_clock.h"
#include "server/runtime/store_gate.h"
#include "server/runtime/worker.h"
#include "store/store.h"

namespace perseus::server {

struct ServiceOptions {
  std::optional<GivenPlan> given_plan = {};
  std::size_t max_jobs = 10'000;             // That have not finished.
  std::function<double()> now_seconds = {};  // Time of day. Empty: the store's.
  // Time that passes, never set. Empty: the machine's.
  std::function<double()> steady_seconds = {};
  double tick_seconds = 0.1;  // How late a straggler may begin.
  // Finished jobs are deleted so long after their end. None: never.
  std::optional<double> keep_finished_seconds = {};
  WorkerOptions worker = {};
  // For the log, from any thread: one sentence on what threw, and each change that was asked for.
  std::function<void(const std::string& sentence)> on_problem = {};
  std::function<void(const AuditRecord&)> on_change = {};
};

// All jobs of a server, without HTTP. Where the store is shared, also those that other servers
// made: each is read when it is first asked for, or heard of. No call waits for the store but
// Start(), the destructor and the library of profiles; each callback comes once, perhaps before
// the call returns. Thread-safe.
class JobService {
 public:
  using JobPointer = std::shared_ptr<ManagedJob>;

  // Goes on where the jobs of the store were.
  static Result<std::unique_ptr<JobService>> Start(std::unique_ptr<store::Store> store,
                                                   ServiceOptions options);
  // Ends what is being computed, acknowledges what was taken, closes the store.
  ~JobService();
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;

  struct Created {
    JobPointer job;
    bool is_new = false;  // False: there is one of this client key.
  };
  using CreatedCallback = std::function<void(const Outcome<Created>&)>;
  void Create(const JobSpec& spec, store::JobOrigin origin, const Caller& caller,
              CreatedCallback created);

  using FoundCallback = std::function<void(const Outcome<JobPointer>&)>;
  // kUnavailable: it is not known here, and the store cannot be asked.
  void Get(const std::string& id, const FoundCallback& found);
  void GetByKey(const std::string& client_key, FoundCallback found);
  // As it is at this moment, as far as the store can say: for those who look at what another
  // server may have been told just now. `is_stale`: the store did not answer, so that it is what
  // was known before.
  using FreshCallback = std::function<void(const Outcome<JobPointer>&, bool is_stale)>;
  void GetFresh(const std::string& id, FreshCallback found);

  // Those that are at work here, by the time of creation: all but some that have finished.
  std::vector<JobPointer> Jobs() const;
  // All jobs, by the time of creation, after a look at what other servers did. What is listed of a
  // job that is not at work here is what the store says of it.
  struct Listed {
    store::JobHead head;
    JobPointer job;  // Null: it is not at work here.
  };
  using ListCallback = std::function<void(std::vector<Listed>, bool is_stale)>;
  void List(ListCallback list);

  // What is known of a job without asking the store; nullopt: nothing.
  std::optional<store::JobHead> HeadOf(const std::string& id) const;
  // Has it done on a thread that may wait for the store.
  void OnReader(std::function<void()> task) { readers_.Post(std::move(task)); }

  // Has a job forgotten that is gone.
  void Forget(const std::string& id);

  // The library of profiles, the newest first, without their CSV.
  Outcome<std::vector<store::ProfileRecord>> ListProfiles();
  Outcome<store::ProfileRecord> FindProfile(const std::string& id);
  Outcome<void> DeleteProfile(const std::string& id);

  EventHub& events() { return events_; }
  const std::optional<GivenPlan>& given_plan() const { return options_.given_plan; }
  store::StoreCounters store_counters() const { return store_->counters(); }
  // Whether other servers may be at work on the same jobs.
  bool is_shared() const { return store_->is_shared(); }
  std::size_t max_jobs() const { return options_.max_jobs; }
  // Jobs whose plans are being made or are to be, here or elsewhere.
  std::size_t jobs_that_want_work() const;

  // Asks what is being computed to end, without waiting for it: another server, or this
  // one after a restart, computes it again.
  void StopWork() { worker_->Stop(); }

  // Every job's id is this and 16 hexadecimal digits.
  static constexpr const char* kIdPrefix = "j-";

 private:
  JobService(std::unique_ptr<store::Store> store, ServiceOptions options);
  Result<void> Restore();
  void Rest();
  Moment Now() const;
  void TickAll();
  void TickOnce();
  void MeasureClock();
  std::string KnownKey(const std::string& client_key) const;
  std::size_t unfinished_jobs() const;
  std::vector<Listed> All() const;

  // job_lookup.cc: what other servers made and deleted.
  JobPointer Known(const std::string& id) const;
  JobPointer Add(LoadedJob loaded, bool ask_for_work);
  void Load(const std::string& id, bool ask_for_work, const FoundCallback& found);
  bool MayLookUp(const std::string& id);
  void RefreshNow(const std::string& id, const std::function<void()>& done);
  void OnChanged(const std::vector<store::JobMarks>& marks, bool are_all);
  bool IsNews(const store::JobMarks& mark) const;
  bool PerformWork(const std::string& id, const std::function<bool()>& keep_going);

  ServiceOptions options_;
  EventHub events_;
  std::unique_ptr<store::Store> store_;
  SharedClock clock_;
  Readers readers_;
  StoreGate gate_;
  JobContext context_;

  mutable SharedMutex mutex_;
  std::map<std::string, JobPointer> jobs_ PERSEUS_GUARDED_BY(mutex_);  // At work.
  // The others: they are loaded when asked for.
  std::map<std::string, store::JobHead> heads_ PERSEUS_GUARDED_BY(mutex_);
  std::map<std::string, std::string> ids_ PERSEUS_GUARDED_BY(mutex_);  // Of both, by client key.

  Mutex lookup_mutex_;
  // Ids that the store did not have. None is ever used again.
  std::set<std::string> absent_ PERSEUS_GUARDED_BY(lookup_mutex_);
  // Who waits for it.
  std::map<std::string, std::vector<FoundCallback>> loading_ PERSEUS_GUARDED_BY(lookup_mutex_);
  std::chrono::steady_clock::time_point lookups_since_ PERSEUS_GUARDED_BY(lookup_mutex_);
  int lookups_ PERSEUS_GUARDED_BY(lookup_mutex_) = 0;  // Since then.

  Mutex stop_mutex_;
  ConditionVariable stop_;
  bool stopping_ PERSEUS_GUARDED_BY(stop_mutex_) = false;
  std::unique_ptr<Refresher> refresher_;
  std::unique_ptr<Worker> worker_;
  std::thread ticker_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_
