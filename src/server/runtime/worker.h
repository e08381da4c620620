// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_WORKER_H_
#define PERSEUS_SERVER_RUNTIME_WORKER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"

namespace perseus::server {

struct WorkerOptions {
  // Threads for first plans. 0: one per core, but at least two.
  int urgent_threads = 0;
  // Threads for better plans. 0: one per two cores, but at least one.
  int other_threads = 0;
  double retry_seconds = 5;  // Until work that failed is tried again.
};

// Runs planning work on threads of its own. Urgent work (a job's first plan) has separate threads,
// so that it never waits until better plans of another job are ready. Threads for better plans have
// a lower scheduling priority: first plans preempt them at any moment, and they lose nothing that
// they found. The kernel still gives them a share of the processor, so that each search ends. The
// oldest work comes first. One thread at a time works on a job. Thread-safe.
class Worker {
 public:
  // Called by several threads, each for another job. Must call `keep_going` now and then and return
  // when that is false: the server stops. Returns whether the work is settled; false: try again
  // soon.
  using Perform =
      std::function<bool(const std::string& job, const std::function<bool()>& keep_going)>;
  // Called by several threads.
  using OnProblem = std::function<void(const std::string& sentence)>;

  // `on_problem` gets a sentence about work that throws; the thread then continues with other work.
  Worker(Perform perform, OnProblem on_problem, WorkerOptions options = {});
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  // Calls Stop() and Wait().
  ~Worker();

  // Asks for work on this job. If a thread works on it already, there is more work after that.
  void Want(const std::string& job, bool is_urgent);

  // Asks running work to end and begins no more. Does not wait.
  void Stop();
  // After Stop(): waits for running work.
  void Wait();

 private:
  using Clock = std::chrono::steady_clock;
  struct Wanted {
    bool is_urgent = false;
    std::int64_t number = 0;  // The lowest is the oldest.
    Clock::time_point not_before;
  };

  void Start(bool is_urgent, int threads);
  // Waits for work; nullopt: the worker stops.
  std::optional<std::string> Next(bool is_urgent);
  void RunOne(const std::string& job, bool is_urgent);
  bool PerformOne(const std::string& job);

  const Perform perform_;
  const OnProblem on_problem_;
  const WorkerOptions options_;

  std::atomic<bool> stopping_ = false;
  Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, Wanted> wanted_ PERSEUS_GUARDED_BY(mutex_);  // By job.
  std::set<std::string> in_hand_ PERSEUS_GUARDED_BY(mutex_);
  std::int64_t last_number_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_WORKER_H_
