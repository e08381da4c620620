// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_EVENTS_H_
#define PERSEUS_SERVER_RUNTIME_EVENTS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace perseus::server {

// Something that happened to a job, for dashboards.
struct Event {
  std::string name;  // "job", "state", "plan", "straggler", "detection", "profiling", "drift",
                     // "trouble"
  std::string job;
  std::string data;  // One JSON object.
};

// Hands events to whoever listens. Thread-safe.
class EventHub {
 public:
  // False: it wants no more. Null only asks for that. Must not block, nor call
  // the hub.
  using Listener = std::function<bool(const Event*)>;

  // `job`: only of that one; empty: of all.
  void Listen(std::string job, Listener listener) {
    const std::lock_guard lock(mutex_);
    // Who left is not only found when something happens.
    std::erase_if(listeners_, [](const Entry& entry) { return !entry.listener(nullptr); });
    listeners_.push_back({std::move(job), std::move(listener)});
  }

  void Emit(const Event& event) {
    const std::lock_guard lock(mutex_);
    std::erase_if(listeners_, [&](const Entry& entry) {
      return (entry.job.empty() || entry.job == event.job) && !entry.listener(&event);
    });
  }

 private:
  struct Entry {
    std::string job;
    Listener listener;
  };
  std::mutex mutex_;
  std::vector<Entry> listeners_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_EVENTS_H_
