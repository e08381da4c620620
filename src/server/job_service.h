// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_JOB_SERVICE_H_
#define PERSEUS_SERVER_JOB_SERVICE_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "perseus/result.h"
#include "server/events.h"
#include "server/failure.h"
#include "server/given_plan.h"
#include "server/job_spec.h"
#include "server/managed_job.h"
#include "server/task_queue.h"
#include "store/store.h"

namespace perseus::server {

struct ServiceOptions {
  std::optional<GivenPlan> given_plan = {};
  std::size_t max_jobs = 10'000;
  std::function<double()> now_seconds = {};  // Time of day; empty: the system's.
  double tick_seconds = 0.1;                 // How late a straggler may begin.
  // For the log: one sentence on what threw. From any thread.
  std::function<void(const std::string& sentence)> on_problem = {};
};

// All jobs of a server, without HTTP. Thread-safe.
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

  // Null: there is none.
  std::shared_ptr<ManagedJob> Find(const std::string& id) const;
  std::shared_ptr<ManagedJob> FindByKey(const std::string& client_key) const;
  std::vector<std::shared_ptr<ManagedJob>> Jobs() const;  // By the time of creation.
  Outcome<void> Delete(const std::string& id);

  EventHub& events() { return events_; }
  const std::optional<GivenPlan>& given_plan() const { return options_.given_plan; }
  store::StoreCounters store_counters() const { return store_->counters(); }
  std::size_t tasks_waiting() const { return tasks_.waiting(); }

  // Asks what is being computed to end, without waiting for it: it is computed
  // again after a restart.
  void StopTasks() { tasks_.Stop(); }

 private:
  JobService(std::unique_ptr<store::Store> store, ServiceOptions options);
  Result<void> Restore();
  void TickAll();
  void TickOnce();

  ServiceOptions options_;
  EventHub events_;
  std::unique_ptr<store::Store> store_;
  TaskQueue tasks_;
  JobContext context_;

  std::mutex creation_mutex_;        // One creation at a time.
  mutable std::shared_mutex mutex_;  // Of the two below.
  std::map<std::string, std::shared_ptr<ManagedJob>> jobs_;
  std::map<std::string, std::string> ids_;  // By client key.

  std::mutex stop_mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread ticker_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_JOB_SERVICE_H_
