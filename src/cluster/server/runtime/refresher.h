// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_REFRESHER_H_
#define PERSEUS_SERVER_RUNTIME_REFRESHER_H_

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "common/mutex.h"

namespace perseus::server {

// Refreshes jobs that another server changed: soon, each job on one thread at a
// time, and at most for a quarter of the time, however often it is asked to (while
// thousands of ranks register, each of them is news). Thread-safe.
class Refresher {
 public:
  using Refresh = std::function<void(const std::string& id)>;
  using OnProblem = std::function<void(const std::string& sentence)>;

  // `on_problem` is told, on a thread of this, of refreshes that threw.
  Refresher(Refresh refresh, OnProblem on_problem);
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;
  // Stops.
  ~Refresher();

  // Does not wait. What was changed before the call will have been read.
  void Ask(const std::string& id);

  // Ends what is being done; does no more.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    bool is_asked = false;
    bool is_running = false;
    Clock::time_point not_before;
  };

  void Run();
  void RunOne(const std::string& id);

  const Refresh refresh_;
  const OnProblem on_problem_;
  Mutex mutex_;
  ConditionVariable changed_;
  // Asked for, running, or lately refreshed.
  std::map<std::string, Entry> jobs_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  // One of a large job, whose curve takes long to read, does not keep the others waiting.
  std::array<std::thread, 2> threads_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_REFRESHER_H_
