// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_WORKER_H_
#define PERSEUS_SERVER_RUNTIME_WORKER_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "store/store.h"

namespace perseus::server {

struct WorkerOptions {
  // How soon after a server's death another one takes over what it was at.
  double lease_seconds = 2;
  double renew_seconds = 0.5;
  // How often the store is asked for work that other servers were told of.
  double poll_seconds = 0.25;
};

// Claims work from the store and has it done, one after the other, off the
// threads that answer. The lease keeps two servers from computing the same; that
// both may do so, where one is slow to hear that its lease ran out, is for
// `perform` to bear. Thread-safe.
class Worker {
 public:
  // Looks at `keep_going` now and then and ends when it is false: the server stops, or
  // the lease is lost. Returns whether the work is settled; false: try again soon.
  using Perform =
      std::function<bool(const std::string& job, const std::function<bool()>& keep_going)>;
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
  void Run();
  void RunOne(const std::string& job);
  bool PerformOne(const std::string& job);
  void Renew();

  store::Store& store_;
  const Perform perform_;
  const OnProblem on_problem_;
  const WorkerOptions options_;

  std::atomic<bool> stopping_ = false;
  std::atomic<bool> is_lost_ = false;  // The lease of what is being done.
  std::mutex mutex_;                   // Of all below.
  std::condition_variable changed_;
  bool is_woken_ = false;
  std::string job_;  // That is being worked on; empty: none.
  std::thread worker_;
  std::thread renewer_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_WORKER_H_
