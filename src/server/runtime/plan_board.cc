// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/plan_board.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace perseus::server {

std::shared_ptr<const PublishedPlan> PlanBoard::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

template <typename Predicate>
PlanBoard::Entries PlanBoard::Take(const Predicate& is_woken) {
  Entries woken;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const auto entry = next++;
    if (is_woken(*entry)) woken.insert(woken.end(), waiting_.extract(entry));
  }
  return woken;
}

void PlanBoard::Call(const Entries& woken, const std::shared_ptr<const PublishedPlan>& plan) {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [ticket, entry] : woken) {
    if (entry.until >= now) entry.waiter(plan);
  }
}

std::function<void()> PlanBoard::Publish(const std::shared_ptr<const PublishedPlan>& plan) {
  const MutexLock lock(mutex_);
  const bool is_older = current_ != nullptr && plan->version.version < current_->version.version;
  if (is_older && !plan->gone) return [] {};
  current_ = plan;
  auto woken = std::make_shared<const Entries>(Take(
      [&](const auto& entry) { return plan->gone || entry.second.after < plan->version.version; }));
  return [woken, plan] { Call(*woken, plan); };
}

std::int64_t PlanBoard::version() const {
  const MutexLock lock(mutex_);
  return current_ == nullptr ? 0 : current_->version.version;
}

std::int64_t PlanBoard::Wait(std::int64_t after, double seconds, Waiter waiter) {
  std::shared_ptr<const PublishedPlan> news;
  {
    const MutexLock lock(mutex_);
    if (current_ == nullptr || (!current_->gone && current_->version.version == after)) {
      ForgetExpired();
      const auto wait = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(seconds));
      waiting_[++last_ticket_] = {after, std::chrono::steady_clock::now() + wait,
                                  std::move(waiter)};
      return last_ticket_;
    }
    news = current_;
  }
  waiter(news);
  return 0;
}

void PlanBoard::Forget(std::int64_t ticket) {
  // Destroyed without the lock: its callbacks may call back.
  std::map<std::int64_t, Entry>::node_type entry;
  const MutexLock lock(mutex_);
  entry = waiting_.extract(ticket);
}

void PlanBoard::ForgetExpired() {
  if (waiting_.size() < sweep_at_) return;
  const auto now = std::chrono::steady_clock::now();
  std::erase_if(waiting_, [&](const auto& entry) { return entry.second.until < now; });
  sweep_at_ = std::max<std::size_t>(1024, 2 * waiting_.size());
}

std::size_t PlanBoard::waiting() const {
  const MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  return static_cast<std::size_t>(
      std::count_if(waiting_.begin(), waiting_.end(),
                    [&](const auto& entry) { return entry.second.until >= now; }));
}

}  // namespace perseus::server
