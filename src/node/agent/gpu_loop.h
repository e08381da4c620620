// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_GPU_LOOP_H_
#define PERSEUS_AGENT_GPU_LOOP_H_

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/gpu_worker.h"

namespace perseus::agent {

// What the worker and its thread share. All but `Run` may be called from any
// thread and return at once.
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

  Tickets energy_readers;
  Tickets condition_readers;

 private:
  struct WantedLock {
    int mhz = 0;
    Ticket ticket;
  };
  using Guard = std::unique_lock<std::mutex>;

  // Each is called with the lock held, makes its driver call without it, and
  // returns with it held.
  void DoRelease(Guard* guard);
  void DoLock(Guard* guard);
  void DoReadEnergy(Guard* guard);
  void DoReadConditions(Guard* guard);

  template <typename Call>
  auto CallDriver(Guard* guard, const Call& call);
  void ReleaseFailed(const Error& error, const Tickets& tickets);
  void Forget(Guard* guard);
  void SayNewFights();
  void Supersede();
  bool PollIsDue(Clock::time_point now) const;
  Clock::time_point NextDeadline() const;
  void Post(const Ticket& ticket, decltype(Answer::body) body) {
    if (ticket.connection != 0)
      context_.mailbox->Post({gpu_->info().uuid, ticket, std::move(body)});
  }
  Refused DeviceRefusal(const Error& error) const {
    return {Refusal::kDevice, fmt::format("GPU {}: {}", gpu_->info().uuid, error.message)};
  }

  const WorkerContext context_;
  device::Gpu* const gpu_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable ended_changed_;
  bool is_dirty_;      // Its clock may be locked by us; the journal names it.
  bool must_release_;  // Before all else.
  Tickets releasers_;
  std::optional<WantedLock> wanted_;
  std::optional<int> locked_mhz_;
  bool stopping_ = false;
  bool ended_ = false;

  Clock::time_point next_set_;
  Clock::time_point retry_at_;
  Clock::duration retry_wait_{0};  // 0: the last restore went well.
  std::optional<Clock::time_point> call_began_;

  std::optional<device::GpuConditions> conditions_;
  Clock::time_point conditions_read_;
  std::set<std::string> said_fights_;  // Since the clock was first locked.

  std::string last_error_;
  std::int64_t sets_ = 0;
  std::int64_t restores_ = 0;
  std::int64_t failures_ = 0;
  std::int64_t superseded_ = 0;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_GPU_LOOP_H_
