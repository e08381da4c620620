// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_RUNTIME_PLAN_BOARD_H_
#define PERSEUS_SERVER_RUNTIME_PLAN_BOARD_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "server/domain/published_plan.h"
#include "server/planning/curve.h"

namespace perseus::server {

// The texts of one job's plans: each is made once, for the first rank that asks, and shared by all.
// Thread-safe.
class PlanTexts {
 public:
  // See Curve::RowsTexts().
  std::shared_ptr<const std::string> Of(const std::shared_ptr<const Curve>& curve,
                                        const CurvePlan& plan, int pp_rank) {
    const MutexLock lock(mutex_);
    if (std::exchange(curve_, curve) != curve) texts_.clear();
    auto found = texts_.find(plan.id);
    if (found == texts_.end()) {
      std::vector<std::shared_ptr<const std::string>> made;
      for (std::string& text : curve->RowsTexts(plan)) {
        made.push_back(std::make_shared<const std::string>(std::move(text)));
      }
      const std::size_t most_plans = std::max<std::size_t>(1, kMostTexts / made.size());
      if (texts_.size() >= most_plans) texts_.clear();
      found = texts_.emplace(plan.id, std::move(made)).first;
    }
    return found->second[static_cast<std::size_t>(pp_rank)];
  }

 private:
  // Several versions of the largest jobs' stages.
  static constexpr std::size_t kMostTexts = 512;

  Mutex mutex_;
  std::shared_ptr<const Curve> curve_ PERSEUS_GUARDED_BY(mutex_);  // Of which the texts are.
  // By plan, then by rank of a pipeline.
  std::map<std::int64_t, std::vector<std::shared_ptr<const std::string>>> texts_
      PERSEUS_GUARDED_BY(mutex_);
};

// Gives ranks the current plan, or lets them wait for the next. Thread-safe. It has a lock of its
// own, so that no reader waits for the job's lock.
class PlanBoard {
 public:
  // Called once: on the thread that publishes, or within Wait() if another version is there
  // already.
  using Waiter = std::function<void(const std::shared_ptr<const PublishedPlan>&)>;

  // Null: nothing was published yet.
  std::shared_ptr<const PublishedPlan> Current() const;

  // The texts of the plans that are published here.
  const std::shared_ptr<PlanTexts>& texts() const { return texts_; }

  // Makes `plan` the current one. Ignores a plan that is older than the current one, so that no
  // rank goes back. Returns a function that calls the waiters which this plan satisfies (all of
  // them if the job is deleted). Call it when no lock is held.
  [[nodiscard]] std::function<void()> Publish(const std::shared_ptr<const PublishedPlan>& plan);

  // The current version; 0: none.
  std::int64_t version() const;

  // Calls `waiter` once the current version is later than `after`, and at once if it is earlier:
  // `after` then comes from another store, or from commits that the store lost. Forgets it after
  // `seconds`; the caller must answer its client then. Returns a ticket for Forget(); 0: `waiter`
  // was called.
  std::int64_t Wait(std::int64_t after, double seconds, Waiter waiter);

  // Drops the waiter of this ticket if it still waits.
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

  const std::shared_ptr<PlanTexts> texts_ = std::make_shared<PlanTexts>();
  mutable Mutex mutex_;
  std::shared_ptr<const PublishedPlan> current_ PERSEUS_GUARDED_BY(mutex_);
  Entries waiting_ PERSEUS_GUARDED_BY(mutex_);
  std::int64_t last_ticket_ PERSEUS_GUARDED_BY(mutex_) = 0;
  // Size at which expired ones are looked for.
  std::size_t sweep_at_ PERSEUS_GUARDED_BY(mutex_) = 1024;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_RUNTIME_PLAN_BOARD_H_
