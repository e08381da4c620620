// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_PLAN_BOARD_H_
#define PERSEUS_SERVER_PLAN_BOARD_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/comparison_blocks.h"
#include "server/curve.h"
#include "store/facts.h"

namespace perseus::server {

// A version of a job's plan that is durable and may be followed.
struct PublishedPlan {
  store::PlanVersion version;
  std::shared_ptr<const Curve> curve;  // Null where there is no plan.
  double requested_time_seconds = 0;   // Of the pipelines without exception.
  std::string sentence;                // Why there is no plan.
  ComparisonBlocks comparison;         // Iterations that run at maximum clocks all the same.
  bool gone = false;                   // The job was deleted.

  // The plan of a pipeline, or nullptr: maximum clocks.
  const CurvePlan* PlanOf(int pipeline) const;
};

// Where ranks read the current plan and wait for the next. Thread-safe; apart
// from the job's own lock, so that no reader waits for a commit.
class PlanBoard {
 public:
  // Called once, on the thread that publishes or, where there is news already,
  // on that which waits.
  using Waiter = std::function<void(const std::shared_ptr<const PublishedPlan>&)>;

  // Null: nothing was published.
  std::shared_ptr<const PublishedPlan> Current() const;

  // Calls all that wait.
  void Publish(const std::shared_ptr<const PublishedPlan>& plan);

  // Calls `waiter` when the version is another than `after` and something was
  // published; forgets it after `seconds` (somebody else answers then). A
  // client that knows a later version than ours is told ours. Returns what
  // Forget() takes.
  std::int64_t Wait(std::int64_t after, double seconds, Waiter waiter);

  // Does not call that waiter any more, where it still waits.
  void Forget(std::int64_t ticket);

  std::size_t waiting() const;

 private:
  struct Entry {
    std::chrono::steady_clock::time_point until;
    Waiter waiter;
  };
  void ForgetExpired();

  mutable std::mutex mutex_;
  std::shared_ptr<const PublishedPlan> current_;
  std::map<std::int64_t, Entry> waiting_;  // By ticket.
  std::int64_t last_ticket_ = 0;
  std::size_t sweep_at_ = 1024;  // Size at which expired ones are looked for.
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_PLAN_BOARD_H_
