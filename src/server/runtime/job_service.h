// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_
#define PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "perseus/result.h"
#include "server/domain/failure.h"
#include "server/planning/given_plan.h"
#include "server/planning/job_spec.h"
#include "server/runtime/events.h"
#include "server/runtime/managed_job.h"
#include "server/runtime/refresher.h"
#include "server/runtime/shared_clock.h"
#include "server/runtime/worker.h"
#include "store/store.h"

namespace perseus::server {

struct ServiceOptions {
  std::optional<GivenPlan> given_plan = {};
  std::size_t max_jobs = 10'000;
  std::function<double()> now_seconds = {};  // Time of day; empty: the store's.
  double tick_seconds = 0.1;                 // How late a straggler may begin.
  WorkerOptions worker = {};
  // For the log: one sentence on what threw. From any thread.
  std::function<void(const std::string& sentence)> on_problem = {};
};

// All jobs of a server, without HTTP. Where the store is shared, also those that
// other servers made: each is read when it is first asked for, or heard of. Thread-safe.
class JobService {
 public:
  // Goes on where the jobs of the store were.
  static Result<std::unique_ptr<JobService>> Start(std::unique_ptr<store::Store> store,
                                                   ServiceOptions options);
  // Ends what is being computed, acknowledges what was taken, closes the store.
  ~JobService();
  JobService(const JobService&) = delete;
  JobService& operator=(const JobService&) = delete;

  struct Created {
    std::shared_ptr<ManagedJob> job;
    bool is_new = false;  // False: there is one of this client key.
  };
  Outcome<Created> Create(const JobSpec& spec, store::JobOrigin origin = store::JobOrigin::kApi);

  // kUnavailable: it is not known here, and the store cannot be asked.
  Outcome<std::shared_ptr<ManagedJob>> Get(const std::string& id);
  // The same, as it is at this moment, as far as the store can say: for those who look at
  // what another server may have been told just now. `is_stale`: the store did not answer,
  // so that it is what was known before.
  Outcome<std::shared_ptr<ManagedJob>> GetFresh(const std::string& id, bool* is_stale = nullptr);
  Outcome<std::shared_ptr<ManagedJob>> GetByKey(const std::string& client_key);
  // Null: there is none, or the store cannot be asked.
  std::shared_ptr<ManagedJob> Find(const std::string& id) { return Get(id).value_or(nullptr); }

  // Those that are known here, by the time of creation.
  std::vector<std::shared_ptr<ManagedJob>> Jobs() const;
  // The same after a look at what other servers did.
  std::vector<std::shared_ptr<ManagedJob>> FreshJobs(bool* is_stale = nullptr);
  Outcome<void> Delete(const std::string& id);

  // The library of profiles, the newest first, without their CSV.
  Outcome<std::vector<store::ProfileRecord>> ListProfiles();
  Outcome<store::ProfileRecord> FindProfile(const std::string& id);
  Outcome<void> DeleteProfile(const std::string& id);

  EventHub& events() { return events_; }
  const std::optional<GivenPlan>& given_plan() const { return options_.given_plan; }
  store::StoreCounters store_counters() const { return store_->counters(); }
  // Whether other servers may be at work on the same jobs.
  bool is_shared() const { return store_->is_shared(); }
  // Jobs whose plans are being made or are to be, here or elsewhere.
  std::size_t jobs_that_want_work() const;

  // Asks what is being computed to end, without waiting for it: another server, or this
  // one after a restart, computes it again.
  void StopWork() { worker_->Stop(); }

  // Every job's id is this and 16 hexadecimal digits.
  static constexpr const char* kIdPrefix = "j-";

 private:
  using JobPointer = std::shared_ptr<ManagedJob>;

  JobService(std::unique_ptr<store::Store> store, ServiceOptions options);
  Result<void> Restore();
  void TickAll();
  void TickOnce();
  void MeasureClock();
  Outcome<Created> CreatedElsewhere(const std::string& client_key);

  // job_lookup.cc: what other servers made and deleted.
  JobPointer Known(const std::string& id) const;
  JobPointer Add(store::StoredJob stored, bool ask_for_work,
                 std::shared_ptr<const Job> built = nullptr);
  void Forget(const std::string& id);
  Outcome<JobPointer> Read(const std::string& id);
  bool MayLookUp(const std::string& id);
  void RefreshJob(const std::string& id);
  void OnChanged(const std::vector<store::JobMarks>& marks, bool are_all);
  bool PerformWork(const std::string& id, const std::function<bool()>& keep_going);

  ServiceOptions options_;
  EventHub events_;
  std::unique_ptr<store::Store> store_;
  SharedClock clock_;
  JobContext context_;

  std::mutex creation_mutex_;        // One creation at a time.
  mutable std::shared_mutex mutex_;  // Of the two below.
  std::map<std::string, JobPointer> jobs_;
  std::map<std::string, std::string> ids_;  // By client key.

  std::mutex lookup_mutex_;       // Of the three below.
  std::set<std::string> absent_;  // Ids that the store did not have. None is ever used again.
  std::chrono::steady_clock::time_point lookups_since_;
  int lookups_ = 0;  // Since then.

  std::mutex stop_mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::unique_ptr<Refresher> refresher_;
  std::unique_ptr<Worker> worker_;
  std::thread ticker_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_JOB_SERVICE_H_
