// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/plan_board.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace perseus::server {

const CurvePlan* PublishedPlan::PlanOf(int pipeline) const {
  if (curve == nullptr) return nullptr;
  const auto found = version.exceptions.find(pipeline);
  return curve->Find(found == version.exceptions.end() ? version.plan : found->second);
}

std::shared_ptr<const PublishedPlan> PlanBoard::Current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void PlanBoard::Publish(const std::shared_ptr<const PublishedPlan>& plan) {
  std::vector<Entry> woken;
  {
    const std::lock_guard lock(mutex_);
    current_ = plan;
    woken.swap(waiting_);
  }
  const auto now = std::chrono::steady_clock::now();
  for (const Entry& entry : woken) {
    if (entry.until >= now) entry.waiter(plan);
  }
}

void PlanBoard::Wait(std::int64_t after, double seconds, Waiter waiter) {
  std::shared_ptr<const PublishedPlan> news;
  {
    const std::lock_guard lock(mutex_);
    if (current_ == nullptr || (!current_->gone && current_->version.version == after)) {
      ForgetExpired();
      const auto wait = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(seconds));
      waiting_.push_back({std::chrono::steady_clock::now() + wait, std::move(waiter)});
      return;
    }
    news = current_;
  }
  waiter(news);
}

void PlanBoard::ForgetExpired() {
  if (waiting_.size() < sweep_at_) return;
  const auto now = std::chrono::steady_clock::now();
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(),
                                [&](const Entry& entry) { return entry.until < now; }),
                 waiting_.end());
  sweep_at_ = std::max<std::size_t>(1024, 2 * waiting_.size());
}

std::size_t PlanBoard::waiting() const {
  const std::lock_guard lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  return static_cast<std::size_t>(std::count_if(
      waiting_.begin(), waiting_.end(), [&](const Entry& entry) { return entry.until >= now; }));
}

}  // namespace perseus::server
