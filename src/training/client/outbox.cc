// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "client/outbox.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace perseus::client {
namespace {

void Append(ProfileReport* report, ProfileReport more) {
  // A newer row of the same kind and clock is the better one.
  std::erase_if(report->rows, [&](const measure::Estimate& old) {
    return std::any_of(more.rows.begin(), more.rows.end(), [&](const measure::Estimate& row) {
      return row.kind == old.kind && row.mhz == old.mhz;
    });
  });
  report->rows.insert(report->rows.end(), std::make_move_iterator(more.rows.begin()),
                      std::make_move_iterator(more.rows.end()));
  report->notes.insert(report->notes.end(), std::make_move_iterator(more.notes.begin()),
                       std::make_move_iterator(more.notes.end()));
  if (more.blocking) report->blocking = more.blocking;
  if (!more.waiting.empty()) report->waiting = std::move(more.waiting);
  if (more.counter_period_seconds) report->counter_period_seconds = more.counter_period_seconds;
  report->cost = more.cost;
  report->done = report->done || more.done;
}

}  // namespace

void Outbox::Trim() {
  while (iterations_.size() > kMaxIterations) {
    iterations_.pop_front();
    ++dropped_;
  }
  while (notices_.size() > kMaxNotices) notices_.pop_front();
}

void Outbox::Add(const IterationReport& report) {
  const MutexLock lock(mutex_);
  iterations_.push_back(report);
  Trim();
}

void Outbox::Add(const StragglerNotice& notice) {
  {
    const MutexLock lock(mutex_);
    notices_.push_back(notice);
    Trim();
  }
  changed_.NotifyAll();
}

void Outbox::Add(ProfileReport report) {
  {
    const MutexLock lock(mutex_);
    if (!profile_) profile_.emplace();
    Append(&*profile_, std::move(report));
  }
  changed_.NotifyAll();
}

Outbox::Contents Outbox::Wait(double seconds) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const MutexLock lock(mutex_);
  while (!awake_ && notices_.empty() && !profile_ && changed_.WaitUntil(mutex_, until)) {
  }
  Contents contents;
  contents.iterations.assign(iterations_.begin(), iterations_.end());
  contents.notices.assign(notices_.begin(), notices_.end());
  contents.profile = std::exchange(profile_, std::nullopt);
  iterations_.clear();
  notices_.clear();
  return contents;
}

void Outbox::PutBack(Contents contents) {
  // The server needs these of all ranks of the iteration; what is late is of no use.
  for (IterationReport& report : contents.iterations) report.timeline.reset();
  const MutexLock lock(mutex_);
  iterations_.insert(iterations_.begin(), contents.iterations.begin(), contents.iterations.end());
  notices_.insert(notices_.begin(), contents.notices.begin(), contents.notices.end());
  if (contents.profile) {
    ProfileReport newer = profile_ ? std::move(*profile_) : ProfileReport{};
    profile_ = std::move(contents.profile);
    Append(&*profile_, std::move(newer));
  }
  Trim();
}

void Outbox::Wake() {
  {
    const MutexLock lock(mutex_);
    awake_ = true;
  }
  changed_.NotifyAll();
}

std::uint64_t Outbox::dropped() const {
  const MutexLock lock(mutex_);
  return dropped_;
}

}  // namespace perseus::client
