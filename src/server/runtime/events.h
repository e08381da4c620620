// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_EVENTS_H_
#define PERSEUS_SERVER_RUNTIME_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "server/domain/decide.h"
#include "server/domain/schema.h"

namespace perseus::server {

struct EventType {
  EventKind kind;
  std::string_view name;
  std::string_view when;
  std::string_view schema;  // The schema's name in the OpenAPI document.
  std::span<const Field> fields;
  // The event reports something that the job's summary also shows. So it must not be sent after a
  // summary that is newer than the event.
  bool shows_state = false;
};

// All event types, in the order of EventKind.
std::span<const EventType> EventTypes();
inline const EventType& TypeOf(EventKind kind) {
  return EventTypes()[static_cast<std::size_t>(kind)];
}

struct Event {
  EventKind kind = EventKind::kJob;
  std::string job;
  std::string data;           // One JSON object.
  std::int64_t revision = 0;  // The job's revision. 0: the event is not about a revision.
  std::int64_t sequence = 0;  // Set by the hub: 1, 2, ...

  std::string name() const { return std::string(TypeOf(kind).name); }
};

// Numbers events, keeps the last ones, and passes them to listeners in order. Emit() waits for no
// listener: the hub calls listeners on a thread of its own, without holding its lock. Thread-safe.
class EventHub {
 public:
  explicit EventHub(std::size_t kept = 4096);
  // Waits for running calls of listeners to end.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // Returns false to stop listening. A null event only asks whether to go on. An event kReset says
  // that the listener missed events before it. A listener must not block or call the hub.
  using Listener = std::function<bool(const Event*)>;

  // `job`: the listener gets events of this job only; empty: of all jobs.
  void Listen(std::string job, Listener listener);
  // The same, but the listener first gets all events after number `sequence`. Returns false and
  // does nothing if the hub no longer has them.
  bool ListenAfter(std::int64_t sequence, std::string job, Listener listener);

  void Emit(Event event);
  // The number of the last event; 0: there was none yet.
  std::int64_t last() const;
  // Identifies this hub. Event numbers are comparable only within one epoch.
  const std::string& epoch() const { return epoch_; }

  // Waits until listeners have received all events emitted before this call. For tests.
  void Settle();

 private:
  struct Entry {
    std::string job;
    Listener listener;
    std::int64_t next = 0;  // Number of the first event that the listener has not seen.
  };
  void Join(Entry entry) PERSEUS_REQUIRES(mutex_);
  void Run();
  static bool Deliver(const std::vector<std::shared_ptr<const Event>>& events, std::int64_t oldest,
                      Entry* entry);

  const std::size_t kept_;
  const std::string epoch_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<const Event>> events_ PERSEUS_GUARDED_BY(mutex_);  // The last ones.
  std::int64_t last_ PERSEUS_GUARDED_BY(mutex_) = 0;
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::vector<Entry> joining_ PERSEUS_GUARDED_BY(mutex_);
  std::int64_t handed_on_ PERSEUS_GUARDED_BY(mutex_) = 0;  // The last event that all have seen.
  std::vector<Entry> listeners_;                           // Of the thread alone.
  std::thread thread_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_EVENTS_H_
