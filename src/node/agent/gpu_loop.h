// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_GPU_LOOP_H_
#define PERSEUS_AGENT_GPU_LOOP_H_

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/gpu_worker.h"
#include "common/mutex.h"

namespace perseus::agent {

// The state that a GpuWorker and its thread share. All functions except Run() may be called from
// any thread and return at once.
class GpuLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Tickets = std::vector<Ticket>;

  GpuLoop(WorkerContext context, device::Gpu* gpu, bool is_dirty)
      : context_(std::move(context)), gpu_(gpu), is_dirty_(is_dirty), must_release_(is_dirty) {}

  void Run();

  void Lock(int mhz, const Ticket& ticket);
  void Release(const Ticket& ticket, bool force);
  void Read(Tickets GpuLoop::*readers, const Ticket& ticket);
  bool HoldsClock() const;
  GpuStatus Status() const;
  void BeginStop();
  bool WaitForEnd(Clock::time_point deadline);

  Tickets energy_readers PERSEUS_GUARDED_BY(mutex_);
  Tickets clock_readers PERSEUS_GUARDED_BY(mutex_);
  Tickets condition_readers PERSEUS_GUARDED_BY(mutex_);

 private:
  struct WantedLock {
    int mhz = 0;
    Ticket ticket;
  };
  // Each makes its driver call without the lock.
  void DoRelease() PERSEUS_REQUIRES(mutex_);
  void DoLock() PERSEUS_REQUIRES(mutex_);
  void DoReadEnergy() PERSEUS_REQUIRES(mutex_);
  void DoReadClock() PERSEUS_REQUIRES(mutex_);
  void DoReadConditions() PERSEUS_REQUIRES(mutex_);

  template <typename Call>
  auto WithoutLock(const Call& call) PERSEUS_REQUIRES(mutex_);
  template <typename Call>
  auto CallDriver(const Call& call) PERSEUS_REQUIRES(mutex_);
  void ReleaseFailed(const Error& error, const Tickets& tickets) PERSEUS_REQUIRES(mutex_);
  void Forget() PERSEUS_REQUIRES(mutex_);
  void SayNewFights() PERSEUS_REQUIRES(mutex_);
  void Supersede() PERSEUS_REQUIRES(mutex_);
  bool PollIsDue(Clock::time_point now) const PERSEUS_REQUIRES(mutex_);
  Clock::time_point NextDeadline() const PERSEUS_REQUIRES(mutex_);
  using Body = decltype(Answer::body);
  void Post(const Ticket& ticket, Body body) {
    if (ticket.connection != 0)
      context_.mailbox->Post({gpu_->info().uuid, ticket, std::move(body)});
  }
  Refused DeviceRefusal(const Error& error) const {
    return {Refusal::kDevice, fmt::format("GPU {}: {}", gpu_->info().uuid, error.message)};
  }

  const WorkerContext context_;
  device::Gpu* const gpu_;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  ConditionVariable ended_changed_;
  bool is_dirty_
      PERSEUS_GUARDED_BY(mutex_);  // Its clock may be locked by us; the journal names it.
  bool must_release_ PERSEUS_GUARDED_BY(mutex_);  // Before all else.
  Tickets releasers_ PERSEUS_GUARDED_BY(mutex_);
  std::optional<WantedLock> wanted_ PERSEUS_GUARDED_BY(mutex_);
  std::optional<int> locked_mhz_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool ended_ PERSEUS_GUARDED_BY(mutex_) = false;

  Clock::time_point next_set_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point retry_at_ PERSEUS_GUARDED_BY(mutex_);
  Clock::duration retry_wait_ PERSEUS_GUARDED_BY(mutex_){0};  // 0: the last restore went well.
  std::optional<Clock::time_point> call_began_ PERSEUS_GUARDED_BY(mutex_);

  std::optional<device::GpuConditions> conditions_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point conditions_read_ PERSEUS_GUARDED_BY(mutex_);
  std::set<std::string> said_fights_
      PERSEUS_GUARDED_BY(mutex_);  // Since the clock was first locked.

  std::string last_error_ PERSEUS_GUARDED_BY(mutex_);
  std::int64_t sets_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::int64_t restores_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::int64_t failures_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::int64_t superseded_ PERSEUS_GUARDED_BY(mutex_) = 0;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_GPU_LOOP_H_
