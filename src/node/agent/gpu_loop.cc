// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/gpu_loop.h"

#include <algorithm>
#include <iterator>

#include "agent/fights.h"
#include "common/monotonic_clock.h"

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

void GpuLoop::Lock(int mhz, const Ticket& ticket) {
  const MutexLock lock(mutex_);
  Supersede();
  wanted_ = {NearestClock(gpu_->info().clocks_mhz, mhz), ticket};
  changed_.NotifyOne();
}

void GpuLoop::Supersede() {
  if (!wanted_) return;
  ++superseded_;
  Post(wanted_->ticket, SetAnswer{.superseded = true});
  wanted_.reset();
}

void GpuLoop::Release(const Ticket& ticket, bool force) {
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

void GpuLoop::Read(Tickets GpuLoop::*readers, const Ticket& ticket) {
  const MutexLock lock(mutex_);
  (this->*readers).push_back(ticket);
  changed_.NotifyOne();
}

bool GpuLoop::HoldsClock() const {
  const MutexLock lock(mutex_);
  return wanted_.has_value() || (is_dirty_ && !must_release_);
}

GpuStatus GpuLoop::Status() const {
  const MutexLock lock(mutex_);
  GpuStatus status;
  status.uuid = gpu_->info().uuid;
  status.name = gpu_->info().name;
  status.index = gpu_->info().index;
  status.locked_mhz = locked_mhz_;
  status.restore_pending = must_release_;
  status.last_error = last_error_;
  if (call_began_ && Clock::now() - *call_began_ > kHanging) {
    status.last_error = fmt::format(
        "the driver has not answered for {} s",
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - *call_began_).count());
  }
  status.sets = sets_;
  status.restores = restores_;
  status.failures = failures_;
  status.superseded = superseded_;
  if (conditions_) status.fights = FightsOf(*conditions_, is_dirty_);
  return status;
}

void GpuLoop::BeginStop() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  Supersede();
  must_release_ = is_dirty_;
  retry_at_ = {};
  changed_.NotifyOne();
}

bool GpuLoop::WaitForEnd(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  while (!ended_ && ended_changed_.WaitUntil(mutex_, deadline)) {
  }
  return ended_;
}

template <typename Call>
auto GpuLoop::WithoutLock(const Call& call) {
  const MutexUnlock unlocked(mutex_);
  return call();
}

template <typename Call>
auto GpuLoop::CallDriver(const Call& call) {
  call_began_ = Clock::now();
  auto result = WithoutLock(call);
  call_began_.reset();
  last_error_ = result ? "" : result.error().message;
  if (!result) ++failures_;
  return result;
}

void GpuLoop::Run() {
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

bool GpuLoop::PollIsDue(Clock::time_point now) const {
  return is_dirty_ && now - conditions_read_ >= context_.settings.poll;
}

GpuLoop::Clock::time_point GpuLoop::NextDeadline() const {
  Clock::time_point next = Clock::time_point::max();
  if (must_release_) next = std::min(next, retry_at_);
  if (wanted_) next = std::min(next, next_set_);
  if (is_dirty_) next = std::min(next, conditions_read_ + context_.settings.poll);
  return next;
}

void GpuLoop::DoRelease() {
  Tickets tickets = std::exchange(releasers_, {});
  const Result<void> released = CallDriver([this] { return gpu_->ReleaseClock(); });
  if (!released) {
    // Those that came during the call, too: a lock may come before the next attempt.
    for (const Ticket& ticket : std::exchange(releasers_, {})) tickets.push_back(ticket);
    ReleaseFailed(released.error(), tickets);
    return;
  }
  ++restores_;
  if (retry_wait_ > Clock::duration{0}) {
    context_.log->Write(LogLevel::kWarning, "restored",
                        {{"gpu", gpu_->info().uuid}, {"after", "earlier attempts failed"}});
  }
  retry_wait_ = Clock::duration{0};
  locked_mhz_.reset();
  said_fights_.clear();
  must_release_ = !releasers_.empty();
  for (const Ticket& ticket : tickets) Post(ticket, Done{});
  if (is_dirty_) Forget();
}

void GpuLoop::ReleaseFailed(const Error& error, const Tickets& tickets) {
  const auto& settings = context_.settings;
  locked_mhz_.reset();  // Who knows.
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
void GpuLoop::Forget() {
  is_dirty_ = false;
  const MutexUnlock unlocked(mutex_);
  if (context_.claim) context_.claim->Mark(false);
  const Result<void> removed = context_.journal->Remove(gpu_->info().uuid);
  if (removed) return;
  context_.log->Write(LogLevel::kWarning, "journal_not_cleared",
                      {{"gpu", gpu_->info().uuid}, {"error", removed.error().message}});
}

void GpuLoop::DoLock() {
  const WantedLock wanted = *std::exchange(wanted_, std::nullopt);
  // The new clock replaces the one that could not be given back, once it is locked. Set apart,
  // to tell a Release that comes from here on.
  const bool restore_waits = std::exchange(must_release_, false);
  if (locked_mhz_ == wanted.mhz) {
    Post(wanted.ticket, SetAnswer{.mhz = wanted.mhz});
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
      ++failures_;
      last_error_ = added.error().message;
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
    ++superseded_;
    Post(wanted.ticket, SetAnswer{.superseded = true});
    return;
  }
  const Clock::time_point began = Clock::now();
  next_set_ = began + context_.settings.min_interval;
  const Result<void> locked = CallDriver([&] { return gpu_->LockClock(wanted.mhz); });
  const std::int64_t took_us = Microseconds(Clock::now() - began);
  if (!locked) {
    locked_mhz_.reset();             // Who knows; the next set asks the driver in any case.
    must_release_ |= restore_waits;  // At retry_at_, as before.
    Post(wanted.ticket, DeviceRefusal(locked.error()));
    return;
  }
  ++sets_;
  locked_mhz_ = wanted.mhz;
  Post(wanted.ticket, SetAnswer{.mhz = wanted.mhz, .took_us = std::max<std::int64_t>(took_us, 1)});
}

void GpuLoop::DoReadEnergy() {
  const Tickets tickets = std::exchange(energy_readers, {});
  std::int64_t at_ns = 0;
  const Result<double> joules = CallDriver([&] {
    Result<double> read = gpu_->EnergyJoules();
    at_ns = MonotonicNs();
    return read;
  });
  for (const Ticket& ticket : tickets) {
    Post(ticket, joules ? Body(EnergyAnswer{*joules, at_ns}) : Body(DeviceRefusal(joules.error())));
  }
}

void GpuLoop::DoReadClock() {
  const Tickets tickets = std::exchange(clock_readers, {});
  const Result<int> mhz = CallDriver([this] { return gpu_->ClockMhz(); });
  for (const Ticket& ticket : tickets) {
    Post(ticket, mhz ? Body(ClockAnswer{*mhz}) : Body(DeviceRefusal(mhz.error())));
  }
}

void GpuLoop::DoReadConditions() {
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
    SayNewFights();
  }
  const ConditionsAnswer answer = {*conditions_, FightsOf(*conditions_, is_dirty_)};
  for (const Ticket& ticket : tickets) Post(ticket, answer);
}

void GpuLoop::SayNewFights() {
  if (!is_dirty_) return;
  for (const std::string& fight : FightsOf(*conditions_, is_dirty_)) {
    if (!said_fights_.insert(fight).second) continue;
    context_.log->Write(LogLevel::kWarning, "clock_fought",
                        {{"gpu", gpu_->info().uuid}, {"why", fight}});
  }
}

}  // namespace perseus::agent
