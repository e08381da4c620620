// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_PLAN_BOARD_H_
#define PERSEUS_SERVER_RUNTIME_PLAN_BOARD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/mutex.h"
#include "server/domain/published_plan.h"

namespace perseus::server {

// Where ranks read the current plan and wait for the next. Thread-safe; apart
// from the job's own lock, so that no reader waits for a commit.
class PlanBoard {
 public:
  // Called once, on the thread that publishes or, where there is news already,
  // on that which waits.
  using Waiter = std::function<void(const std::shared_ptr<const PublishedPlan>&)>;

  // Null: nothing was published.
  std::shared_ptr<const PublishedPlan> Current() const;

  // Whoever looks finds this from now on. What is older than what was published is passed over:
  // no rank goes back. Returns what calls those that wait for this or an earlier version (all,
  // where the job is gone): for later, where no lock is held.
  [[nodiscard]] std::function<void()> Publish(const std::shared_ptr<const PublishedPlan>& plan);

  // The version that is published; 0: none.
  std::int64_t version() const;

  // Calls `waiter` when the version is later than `after` and something was
  // published; forgets it after `seconds` (somebody else answers then). Returns what
  // Forget() takes; 0: it was called.
  std::int64_t Wait(std::int64_t after, double seconds, Waiter waiter);

  // The last one that Wait() returned.
  std::int64_t last_ticket() const;

  // What is published is what the store holds, as it was after `ticket` was given:
  // calls those up to that who wait for a later version. They have theirs from
  // another store, or from one that lost its last commits.
  void Confirm(std::int64_t ticket);

  // Does not call that waiter any more, where it still waits.
  void Forget(std::int64_t ticket);

  std::size_t waiting() const;

 private:
  struct Entry {
    std::int64_t after = 0;
    std::chrono::steady_clock::time_point until;
    Waiter waiter;
  };
  using Entries = std::map<std::int64_t, Entry>;  // By ticket.

  template <typename Predicate>
  Entries Take(const Predicate& is_woken) PERSEUS_REQUIRES(mutex_);
  void ForgetExpired() PERSEUS_REQUIRES(mutex_);
  static void Call(const Entries& woken, const std::shared_ptr<const PublishedPlan>& plan);

  mutable Mutex mutex_;
  std::shared_ptr<const PublishedPlan> current_ PERSEUS_GUARDED_BY(mutex_);
  Entries waiting_ PERSEUS_GUARDED_BY(mutex_);
  std::int64_t last_ticket_ PERSEUS_GUARDED_BY(mutex_) = 0;
  // Size at which expired ones are looked for.
  std::size_t sweep_at_ PERSEUS_GUARDED_BY(mutex_) = 1024;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_PLAN_BOARD_H_
