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
#include "store/store.h"

namespace perseus::server {

struct WorkerOptions {
  // Threads for first plans. 0: one for each core, and two at least.
  int urgent_threads = 0;
  // Threads for better plans. 0: half as many as there are cores, and one at least.
  int other_threads = 0;
  // How soon after a server's death another one takes over what it was at.
  double lease_seconds = 2;
  double renew_seconds = 0.5;
  // How often the store is asked for work that other servers were told of.
  double poll_seconds = 0.25;
};

// Claims work from the store and has it done, off the threads that answer. Urgent work, a job's
// first plan, has threads of its own, so that it waits for no better plan of another job. Better
// plans are made by threads of a lower priority: first plans take the processor from them at any
// moment, and nothing that they found is lost. The kernel leaves them a share all the same, so
// that each comes to its end, however many first plans come meanwhile; the oldest one is first.
//
// A job is in the hand of one thread at a time. The lease keeps two servers from computing the
// same; that both may do so, where one is slow to hear that its lease ran out, is for `perform`
// to bear. Thread-safe.
class Worker {
 public:
  // Called by several threads, each for another job. Looks at `keep_going` now and then and ends
  // when it is false: the server stops, or the lease is lost. Returns whether the work is settled;
  // false: try again soon.
  using Perform =
      std::function<bool(const std::string& job, const std::function<bool()>& keep_going)>;
  // Called by several threads.
  using OnProblem = std::function<void(const std::string& sentence)>;

  // `store` outlives it. `on_problem` is told of work that threw; the next goes on.
  Worker(store::Store& store, Perform perform, OnProblem on_problem, WorkerOptions options = {});
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Stops and waits.
  ~Worker();

  // There is work now.
  void Wake();

  // Asks what is being done to end, and takes no more. Does not wait.
  void Stop();
  // After Stop(): waits for what is being done, and gives it back.
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
  // Waits for work; null: there is to be no more.
  std::shared_ptr<InHand> Next(Pool* pool);
  void RunOne(InHand* work);
  bool PerformOne(const InHand& work);
  void RenewAll();
  // Without the lock meanwhile.
  Result<std::optional<std::string>> Claim(store::WorkKind kind) PERSEUS_REQUIRES(mutex_);
  Result<bool> Renew(const std::string& job) PERSEUS_REQUIRES(mutex_);
  // So many times longer where nobody else can take over.
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
