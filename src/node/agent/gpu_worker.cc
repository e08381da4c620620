// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/gpu_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/clocks.h"
#include "common/mutex.h"

namespace perseus::agent {
namespace {

constexpr auto kFreshConditions = std::chrono::seconds(1);
// A driver call is called hanging after this.
constexpr auto kHanging = std::chrono::seconds(2);

// The supported clock nearest to `mhz`, the higher one of two: never slower than asked without
// need.
int NearestClock(const std::vector<int>& ascending, int mhz) {
  const auto above = std::lower_bound(ascending.begin(), ascending.end(), mhz);
  if (above == ascending.begin()) return *above;
  if (above == ascending.end()) return ascending.back();
  const int below = *std::prev(above);
  return mhz - below < *above - mhz ? below : *above;
}

std::int64_t Microseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

// The state that a GpuWorker and its thread share. All functions except Run() may be called from
// any thread and return at once.
class GpuWorker::Loop {
 public:
  using Clock = std::chrono::steady_clock;
  using Tickets = std::vector<Ticket>;

  Loop(WorkerContext context, device::Gpu* gpu, bool is_dirty)
      : context_(std::move(context)), gpu_(gpu), is_dirty_(is_dirty), must_release_(is_dirty) {
    status_.uuid = gpu->info().uuid;
    status_.name = gpu->info().name;
    status_.index = gpu->info().index;
  }

  void Run() {
    const MutexLock lock(mutex_);
    while (!stopping_ || must_release_) {
      const Clock::time_point now = Clock::now();
      if (must_release_ && now >= retry_at_) {
        DoRelease();
      } else if (wanted_ && now >= next_set_) {
        DoLock();
      } else if (!energy_readers.empty()) {
        DoReadEnergy();
      } else if (!clock_readers.empty()) {
        DoReadClock();
      } else if (!condition_readers.empty() || PollIsDue(now)) {
        DoReadConditions();
      } else if (const Clock::time_point next = NextDeadline(); next == Clock::time_point::max()) {
        changed_.Wait(mutex_);
      } else {
        changed_.WaitUntil(mutex_, next);
      }
    }
    ended_ = true;
    ended_changed_.NotifyAll();
  }

  void Lock(int mhz, const Ticket& ticket) {
    const MutexLock lock(mutex_);
    Supersede();
    wanted_ = {NearestClock(gpu_->info().clocks_mhz, mhz), ticket};
    changed_.NotifyOne();
  }

  void Release(const Ticket& ticket, bool force) {
    const MutexLock lock(mutex_);
    Supersede();
    // A call that is under way may be locking the clock: then is_dirty_ is set.
    if (!is_dirty_ && !force) {
      Post(ticket, Done{});
      return;
    }
    must_release_ = true;
    retry_at_ = {};
    releasers_.push_back(ticket);
    changed_.NotifyOne();
  }

  void Read(Tickets Loop::*readers, const Ticket& ticket) {
    const MutexLock lock(mutex_);
    (this->*readers).push_back(ticket);
    changed_.NotifyOne();
  }

  bool HoldsClock() const {
    const MutexLock lock(mutex_);
    return wanted_.has_value() || (is_dirty_ && !must_release_);
  }

  GpuStatus Status() const {
    const MutexLock lock(mutex_);
    GpuStatus status = status_;
    status.restore_pending = must_release_;
    if (call_began_ && Clock::now() - *call_began_ > kHanging) {
      status.last_error = fmt::format(
          "the driver has not answered for {} s",
          std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - *call_began_).count());
    }
    if (conditions_) status.conflicts = device::ClockConflicts(*conditions_, is_dirty_);
    return status;
  }

  void BeginStop() {
    const MutexLock lock(mutex_);
    stopping_ = true;
    Supersede();
    must_release_ = is_dirty_;
    retry_at_ = {};
    changed_.NotifyOne();
  }

  bool WaitForEnd(Clock::time_point deadline) {
    const MutexLock lock(mutex_);
    while (!ended_ && ended_changed_.WaitUntil(mutex_, deadline)) {
    }
    return ended_;
  }

  Tickets energy_readers PERSEUS_GUARDED_BY(mutex_);
  Tickets clock_readers PERSEUS_GUARDED_BY(mutex_);
  Tickets condition_readers PERSEUS_GUARDED_BY(mutex_);

 private:
  template <typename Call>
  auto WithoutLock(const Call& call) PERSEUS_REQUIRES(mutex_) {
    const MutexUnlock open_again(mutex_);
    return call();
  }

  template <typename Call>
  auto CallDriver(const Call& call) PERSEUS_REQUIRES(mutex_) {
    call_began_ = Clock::now();
    auto result = WithoutLock(call);
    call_began_.reset();
    status_.last_error = result ? "" : result.error().message;
    if (!result) ++status_.failures;
    return result;
  }

  struct WantedLock {
    int mhz = 0;
    Ticket ticket;
  };
  // Each makes its driver call without the lock.
  void DoRelease() PERSEUS_REQUIRES(mutex_) {
    Tickets tickets = std::exchange(releasers_, {});
    const Result<void> released = CallDriver([this] { return gpu_->ReleaseClock(); });
    if (!released) {
      // Those that came during the call, too: a lock may come before the next attempt.
      for (const Ticket& ticket : std::exchange(releasers_, {})) tickets.push_back(ticket);
      ReleaseFailed(released.error(), tickets);
      return;
    }
    ++status_.restores;
    if (retry_wait_ > Clock::duration{0}) {
      context_.log->Write(LogLevel::kWarning, "restored",
                          {{"gpu", gpu_->info().uuid}, {"after", "earlier attempts failed"}});
    }
    retry_wait_ = Clock::duration{0};
    status_.locked_mhz.reset();
    said_conflicts_.clear();
    must_release_ = !releasers_.empty();
    for (const Ticket& ticket : tickets) Post(ticket, Done{});
    if (is_dirty_) Forget();
  }

  void DoLock() PERSEUS_REQUIRES(mutex_) {
    const WantedLock wanted = *std::exchange(wanted_, std::nullopt);
    // The new clock replaces the one that could not be given back, once it is locked. Set apart,
    // to tell a Release that comes from here on.
    const bool restore_waits = std::exchange(must_release_, false);
    if (status_.locked_mhz == wanted.mhz) {
      Post(wanted.ticket, SetAnswer{.mhz = wanted.mhz, .took_us = 0});
      return;
    }
    // From here on a Release, whenever it comes, gives the clock back.
    const bool was_dirty = std::exchange(is_dirty_, true);
    if (!was_dirty) {
      const Result<void> added = WithoutLock([this] {
        Result<void> noted = context_.journal->Add(gpu_->info().uuid);
        if (noted && context_.claim) context_.claim->Mark(true);
        return noted;
      });
      if (!added) {
        ++status_.failures;
        status_.last_error = added.error().message;
        is_dirty_ = false;
        must_release_ |= restore_waits;
        Post(wanted.ticket,
             DeviceRefusal(
                 {ErrorCode::kIo,
                  fmt::format("the clock is not locked because the journal cannot be written: {}",
                              added.error().message)}));
        return;
      }
      conditions_read_ = {};
    }
    if (must_release_) {  // Came while the journal was written.
      ++status_.superseded;
      Post(wanted.ticket, SetAnswer{.superseded = true});
      return;
    }
    const Clock::time_point began = Clock::now();
    next_set_ = began + context_.settings.min_interval;
    const Result<void> locked = CallDriver([&] { return gpu_->LockClock(wanted.mhz); });
    const std::int64_t took_us = Microseconds(Clock::now() - began);
    if (!locked) {
      status_.locked_mhz.reset();      // Who knows; the next set asks the driver in any case.
      must_release_ |= restore_waits;  // At retry_at_, as before.
      Post(wanted.ticket, DeviceRefusal(locked.error()));
      return;
    }
    ++status_.sets;
    status_.locked_mhz = wanted.mhz;
    Post(wanted.ticket,
         SetAnswer{.mhz = wanted.mhz, .took_us = std::max<std::int64_t>(took_us, 1)});
  }

  void DoReadEnergy() PERSEUS_REQUIRES(mutex_) {
    const Tickets tickets = std::exchange(energy_readers, {});
    std::int64_t at_ns = 0;
    const Result<double> joules = CallDriver([&] {
      Result<double> read = gpu_->EnergyJoules();
      at_ns = MonotonicNs();
      return read;
    });
    for (const Ticket& ticket : tickets) {
      Post(ticket,
           joules ? Body(EnergyAnswer{*joules, at_ns}) : Body(DeviceRefusal(joules.error())));
    }
  }

  void DoReadClock() PERSEUS_REQUIRES(mutex_) {
    const Tickets tickets = std::exchange(clock_readers, {});
    const Result<int> mhz = CallDriver([this] { return gpu_->ClockMhz(); });
    for (const Ticket& ticket : tickets) {
      Post(ticket, mhz ? Body(ClockAnswer{*mhz}) : Body(DeviceRefusal(mhz.error())));
    }
  }

  void DoReadConditions() PERSEUS_REQUIRES(mutex_) {
    const Tickets tickets = std::exchange(condition_readers, {});
    const Clock::time_point now = Clock::now();
    if (!conditions_ || now - conditions_read_ >=
                            std::min<Clock::duration>(kFreshConditions, context_.settings.poll)) {
      Result<device::GpuConditions> read = CallDriver([this] { return gpu_->Conditions(); });
      conditions_read_ = Clock::now();
      if (!read) {
        for (const Ticket& ticket : tickets) Post(ticket, DeviceRefusal(read.error()));
        return;
      }
      conditions_ = *std::move(read);
      SayNewConflicts();
    }
    const ConditionsAnswer answer = {*conditions_, device::ClockConflicts(*conditions_, is_dirty_)};
    for (const Ticket& ticket : tickets) Post(ticket, answer);
  }

  void ReleaseFailed(const Error& error, const Tickets& tickets) PERSEUS_REQUIRES(mutex_) {
    const auto& settings = context_.settings;
    status_.locked_mhz.reset();  // Who knows.
    const bool is_first = retry_wait_ == Clock::duration{0};
    retry_wait_ = is_first ? settings.retry_least
                           : std::min<Clock::duration>(retry_wait_ * 2, settings.retry_most);
    retry_at_ = Clock::now() + retry_wait_;
    if (is_first) {
      context_.log->Write(
          LogLevel::kError, "restore_failed",
          {{"gpu", gpu_->info().uuid},
           {"error", error.message},
           {"next", "the agent tries again until it works; the journal names the GPU until then"}});
    }
    for (const Ticket& ticket : tickets) {
      Post(ticket,
           Refused{Refusal::kDevice,
                   fmt::format("GPU {}: its clock could not be given back: {}; the agent tries "
                               "again until it works",
                               gpu_->info().uuid, error.message)});
    }
  }

  // The clock is back: the journal need not know it any more.
  void Forget() PERSEUS_REQUIRES(mutex_) {
    is_dirty_ = false;
    const MutexUnlock open_again(mutex_);
    if (context_.claim) context_.claim->Mark(false);
    const Result<void> removed = context_.journal->Remove(gpu_->info().uuid);
    if (removed) return;
    context_.log->Write(LogLevel::kWarning, "journal_not_cleared",
                        {{"gpu", gpu_->info().uuid}, {"error", removed.error().message}});
  }

  void SayNewConflicts() PERSEUS_REQUIRES(mutex_) {
    if (!is_dirty_) return;
    for (const std::string& conflict : device::ClockConflicts(*conditions_, is_dirty_)) {
      if (!said_conflicts_.insert(conflict).second) continue;
      context_.log->Write(LogLevel::kWarning, "clock_fought",
                          {{"gpu", gpu_->info().uuid}, {"why", conflict}});
    }
  }

  void Supersede() PERSEUS_REQUIRES(mutex_) {
    if (!wanted_) return;
    ++status_.superseded;
    Post(wanted_->ticket, SetAnswer{.superseded = true});
    wanted_.reset();
  }

  bool PollIsDue(Clock::time_point now) const PERSEUS_REQUIRES(mutex_) {
    return is_dirty_ && now - conditions_read_ >= context_.settings.poll;
  }

  Clock::time_point NextDeadline() const PERSEUS_REQUIRES(mutex_) {
    Clock::time_point next = Clock::time_point::max();
    if (must_release_) next = std::min(next, retry_at_);
    if (wanted_) next = std::min(next, next_set_);
    if (is_dirty_) next = std::min(next, conditions_read_ + context_.settings.poll);
    return next;
  }

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
  GpuStatus status_ PERSEUS_GUARDED_BY(mutex_);  // Without what Status() adds.
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  bool ended_ PERSEUS_GUARDED_BY(mutex_) = false;

  Clock::time_point next_set_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point retry_at_ PERSEUS_GUARDED_BY(mutex_);
  Clock::duration retry_wait_ PERSEUS_GUARDED_BY(mutex_){0};  // 0: the last restore went well.
  std::optional<Clock::time_point> call_began_ PERSEUS_GUARDED_BY(mutex_);

  std::optional<device::GpuConditions> conditions_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point conditions_read_ PERSEUS_GUARDED_BY(mutex_);
  std::set<std::string> said_conflicts_
      PERSEUS_GUARDED_BY(mutex_);  // Since the clock was first locked.
};

GpuWorker::GpuWorker(const WorkerContext& context, device::Gpu* gpu, bool is_dirty)
    : loop_(std::make_shared<Loop>(context, gpu, is_dirty)),
      thread_([loop = loop_] { loop->Run(); }) {}

GpuWorker::~GpuWorker() {
  if (!thread_.joinable()) return;
  BeginStop();
  FinishStop(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

void GpuWorker::Lock(int mhz, const Ticket& ticket) { loop_->Lock(mhz, ticket); }
void GpuWorker::Release(const Ticket& ticket, bool force) { loop_->Release(ticket, force); }
void GpuWorker::ReadEnergy(const Ticket& ticket) { loop_->Read(&Loop::energy_readers, ticket); }
void GpuWorker::ReadClock(const Ticket& ticket) { loop_->Read(&Loop::clock_readers, ticket); }
void GpuWorker::ReadConditions(const Ticket& ticket) {
  loop_->Read(&Loop::condition_readers, ticket);
}
bool GpuWorker::HoldsClock() const { return loop_->HoldsClock(); }
GpuStatus GpuWorker::Status() const { return loop_->Status(); }
void GpuWorker::BeginStop() { loop_->BeginStop(); }

bool GpuWorker::FinishStop(std::chrono::steady_clock::time_point deadline) {
  if (!thread_.joinable()) return true;
  const bool ended = loop_->WaitForEnd(deadline);
  // A thread that hangs in the driver cannot be ended. It owns all it uses.
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
  return ended;
}

}  // namespace perseus::agent
