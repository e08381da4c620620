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
#include "server/domain/event_kind.h"
#include "server/domain/schema.h"

namespace perseus::server {

struct EventType {
  EventKind kind;
  std::string_view name;
  std::string_view when;
  std::string_view schema;  // Its name in the document.
  std::span<const Member> members;
  // Tells of what a job's summary shows: not to be sent after a later summary.
  bool shows_state = false;
};

// All of them, in the order of EventKind.
std::span<const EventType> EventTypes();
inline const EventType& TypeOf(EventKind kind) {
  return EventTypes()[static_cast<std::size_t>(kind)];
}

struct Event {
  EventKind kind = EventKind::kJob;
  std::string job;
  std::string data;           // One JSON object.
  std::int64_t revision = 0;  // Of the job, where it tells of what has one; else 0.
  std::int64_t sequence = 0;  // Set by the hub: 1, 2, ...

  std::string name() const { return std::string(TypeOf(kind).name); }
};

// Numbers events, keeps the last ones, and hands them to whoever listens, in order. Whoever
// emits one waits for nobody: listeners are called on threads of the hub, without its lock.
// Thread-safe.
class EventHub {
 public:
  explicit EventHub(std::size_t kept = 4096);
  // Waits for calls of listeners that run.
  ~EventHub();
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;

  // False: it wants no more. Null only asks for that. An event kReset says that some before it
  // were missed. Must not call the hub.
  using Listener = std::function<bool(const Event*)>;
  enum class Pace : std::uint8_t {
    kNeverBlocks,  // Shares a thread with all others of this pace.
    kMayBlock,     // Has a thread of its own.
  };

  // `job`: only of that one; empty: of all.
  void Listen(std::string job, Listener listener, Pace pace = Pace::kNeverBlocks);
  // The same, and first all that came after event `sequence`. False, and nothing: that is not
  // known any more.
  bool ListenAfter(std::int64_t sequence, std::string job, Listener listener);

  void Emit(Event event);
  // The number of the last event; 0: there was none.
  std::int64_t last() const;
  // Differs from that of every other hub: numbers of two hubs have nothing in common.
  const std::string& epoch() const { return epoch_; }

  // Waits until listeners were called with all that was emitted before. For tests.
  void Settle();

 private:
  struct Entry {
    std::string job;
    Listener listener;
    std::int64_t next = 0;  // The number of the first event that it has not seen.
  };
  // A thread and those whom it calls.
  struct Lane {
    std::vector<Entry> joining;    // With the hub's mutex_.
    std::int64_t handed_on = 0;    // Likewise: the last event that all have seen.
    std::vector<Entry> listeners;  // Of the thread alone.
    std::thread thread;
  };

  void Join(Lane* lane, Entry entry) PERSEUS_REQUIRES(mutex_);
  Lane* AddLane() PERSEUS_REQUIRES(mutex_);
  bool IsSettled(std::int64_t upto) const PERSEUS_REQUIRES(mutex_);
  void Run(Lane* lane);
  static bool Deliver(const std::vector<std::shared_ptr<const Event>>& events, std::int64_t oldest,
                      Entry* entry);

  const std::size_t kept_;
  const std::string epoch_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::deque<std::shared_ptr<const Event>> events_ PERSEUS_GUARDED_BY(mutex_);  // The last ones.
  std::int64_t last_ PERSEUS_GUARDED_BY(mutex_) = 0;
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Lane>> lanes_
      PERSEUS_GUARDED_BY(mutex_);  // The first: of those that never block.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_EVENTS_H_
