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

// Refreshes jobs that another server changed. Each job is refreshed by one thread at a time. A job
// is refreshed for at most a quarter of the time, however often that is asked for: while thousands
// of ranks register, each of them is a change. Thread-safe.
class Refresher {
 public:
  using Refresh = std::function<void(const std::string& id)>;
  using OnProblem = std::function<void(const std::string& sentence)>;

  // `on_problem` gets a sentence about each refresh that throws, on a thread of this object.
  Refresher(Refresh refresh, OnProblem on_problem);
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;
  // Calls Stop().
  ~Refresher();

  // Asks for a refresh that will see all changes made before this call. Does not wait for it.
  void Ask(const std::string& id);

  // Waits for running refreshes and starts no more.
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
