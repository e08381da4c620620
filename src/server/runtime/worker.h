// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_WORKER_H_
#define PERSEUS_SERVER_RUNTIME_WORKER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "server/store/store.h"

namespace perseus::server {

struct WorkerOptions {
  // Threads for first plans. 0: one per core, but at least two.
  int urgent_threads = 0;
  // Threads for better plans. 0: one per two cores, but at least one.
  int other_threads = 0;
  // How long after a server's death another one takes over its work.
  double lease_seconds = 2;
  double renew_seconds = 0.5;
  // How often to ask the store for work that other servers added.
  double poll_seconds = 0.25;
};

// Claims planning work from the store and runs it on threads of its own. Urgent work (a job's first
// plan) has separate threads, so that it never waits until better plans of another job are ready.
// Threads for better plans have a lower scheduling priority: first plans preempt them at any
// moment, and they lose nothing that they found. The kernel still gives them a share of the
// processor, so that each search ends. The oldest work is claimed first.
//
// One thread at a time works on a job. A lease keeps two servers from computing the same. If a
// server notices late that its lease ran out, both may compute it for a while; `perform` must
// tolerate that. Thread-safe.
class Worker {
 public:
  // Called by several threads, each for another job. Must call `keep_going` now and then and return
  // when that is false: the server stops, or the lease is lost. Returns whether the work is
  // settled; false: try again soon.
  using Perform =
      std::function<bool(const std::string& job, const std::function<bool()>& keep_going)>;
  // Called by several threads.
  using OnProblem = std::function<void(const std::string& sentence)>;

  // `store` must outlive this object. `on_problem` gets a sentence about work that throws; the
  // thread then continues with other work.
  Worker(store::Store& store, Perform perform, OnProblem on_problem, WorkerOptions options = {});
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Calls Stop() and Wait().
  ~Worker();

  // Makes idle threads ask the store for work now.
  void Wake();

  // Asks running work to end and claims no more. Does not wait.
  void Stop();
  // After Stop(): waits for running work and returns it to the store.
  void Wait();

 private:
  struct Pool {
    explicit Pool(store::WorkKind its_kind) : kind(its_kind) {}
    const store::WorkKind kind;
    Mutex turn;             // One thread asks for work; the others wait behind it.
    bool is_woken = false;  // With the worker's mutex_.
    std::vector<std::thread> threads;
  };
  struct InHand {
    std::string job;
    std::atomic<bool> is_lost = false;  // Its lease.
    bool is_claimed_again = false;      // With the worker's mutex_.
  };

  void Start(Pool* pool, int threads);
  // Waits for work; null: the worker stops.
  std::shared_ptr<InHand> Next(Pool* pool);
  void RunOne(InHand* work);
  bool PerformOne(const InHand& work);
  void RenewAll();
  // Without the lock meanwhile.
  Result<std::optional<std::string>> Claim(store::WorkKind kind) PERSEUS_REQUIRES(mutex_);
  Result<bool> Renew(const std::string& job) PERSEUS_REQUIRES(mutex_);
  // So many times longer where no other server can take over.
  double Lasting(double seconds) const;

  store::Store& store_;
  const Perform perform_;
  const OnProblem on_problem_;
  const WorkerOptions options_;

  std::atomic<bool> stopping_ = false;
  Mutex mutex_;  // Taken after Pool::turn.
  ConditionVariable changed_;
  std::map<std::string, std::shared_ptr<InHand>> in_hand_ PERSEUS_GUARDED_BY(mutex_);
  Pool urgent_{store::WorkKind::kUrgent};
  Pool other_{store::WorkKind::kOther};
  std::thread renewer_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_WORKER_H_
