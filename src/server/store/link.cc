// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/link.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

namespace perseus::store {

namespace {

// To connect. libpq has a limit of its own for one host, but none for the look-up
// of names or for a pooler that keeps one waiting.
constexpr std::chrono::milliseconds kConnectPatience{4000};
constexpr std::chrono::milliseconds kAskPeriod{50};

// No connection came about.
struct Unconnected {
  Fault fault;
};

}  // namespace

// On a thread of its own, which is left behind where it does not come back. Throws
// Unconnected.
std::unique_ptr<soci::session> Link::Connect() {
  if (!backend_->is_remote()) return backend_->Connect();
  // One that was begun long ago says nothing of now, unless it came about.
  if (connecting_.valid() && WaitForConnection()) {
    Connection connection = connecting_.get();
    if (connection.session != nullptr) return std::move(connection.session);
  }
  if (!connecting_.valid()) {
    // No exception leaves the thread: it would be destroyed by two of them.
    std::packaged_task<Connection()> task([backend = backend_]() -> Connection {
      try {
        return {.session = backend->Connect()};
      } catch (const std::exception& exception) {
        return {.fault = backend->FaultOf(exception)};
      }
    });
    connecting_ = task.get_future();
    std::thread(std::move(task)).detach();
    if (WaitForConnection()) {
      Connection connection = connecting_.get();
      if (connection.session != nullptr) return std::move(connection.session);
      throw Unconnected{std::move(connection.fault)};
    }
  }
  throw Unconnected{
      {FaultKind::kLost,
       {ErrorCode::kIo, fmt::format("{}: the database, or the pooler before it, does not answer; "
                                    "nothing was written",
                                    backend_->name())}}};
}

bool Link::WaitForConnection() {
  const auto until = Clock::now() + kConnectPatience;
  while (Clock::now() < until && (!keep_going_ || keep_going_())) {
    if (connecting_.wait_for(kAskPeriod) == std::future_status::ready) return true;
  }
  return false;
}

std::optional<Failure> Link::Try(const std::string& begin, double seconds, const Work& work) {
  const MutexLock lock(mutex_);
  bool is_ending = false;
  Failure failure;
  try {
    if (session_ == nullptr) session_ = Connect();
    const Watchdog::Watch watch(watchdog_, backend_->SocketOf(*session_), seconds);
    *session_ << begin;
    work(*session_);
    is_ending = true;  // NOLINT(clang-analyzer-deadcode.DeadStores): read if Commit() throws.
    *session_ << backend_->Commit();
    return std::nullopt;
  } catch (Unconnected& none) {
    return Failure{.kind = none.fault.kind, .error = std::move(none.fault.error)};
  } catch (const std::exception& exception) {
    Fault fault = backend_->FaultOf(exception);
    failure = {.kind = fault.kind, .error = std::move(fault.error)};
  }
  if (failure.kind != FaultKind::kLost) {
    RollBack();
    return failure;
  }
  session_.reset();
  if (is_ending) {
    failure.is_unknown = true;
    failure.error.message = fmt::format(
        "{}: the connection was lost at the end of the transaction, so that it is not known "
        "whether it was written; read again",
        backend_->name());
  }
  return failure;
}

// Ends the transaction; and the connection, where even that fails.
void Link::RollBack() {
  if (session_ == nullptr) return;
  try {
    const Watchdog::Watch watch(watchdog_, backend_->SocketOf(*session_), kWaitSeconds);
    *session_ << "ROLLBACK";
  } catch (const std::exception&) {
    // SQLite does so by itself, as when the disk is full.
    if (backend_->is_remote()) session_.reset();
  }
}

std::optional<Failure> Link::Run(const std::string& begin, double seconds, const Work& work) {
  const auto until = Clock::now() + std::chrono::duration<double>(kWaitSeconds);
  Backoff backoff;
  while (true) {
    std::optional<Failure> failure = Try(begin, seconds, work);
    if (!failure) return failure;
    const bool helps = (failure->kind == FaultKind::kLost && !failure->is_unknown) ||
                       failure->kind == FaultKind::kInTheWay;
    const auto pause = backoff.Next();
    if (!helps || Clock::now() + pause > until) return failure;
    std::this_thread::sleep_for(pause);
  }
}

Watchdog::Watch::Watch(Watchdog* watchdog, int socket, double seconds)
    : watchdog_(watchdog), socket_(socket) {
  if (socket_ < 0) return;
  const MutexLock lock(watchdog_->mutex_);
  watchdog_->deadlines_[socket_] = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                      std::chrono::duration<double>(seconds));
  if (!watchdog_->thread_.joinable()) {
    watchdog_->thread_ = std::thread([watchdog = watchdog_] { watchdog->ShutDownLateOnes(); });
  }
  watchdog_->wake_.NotifyOne();
}

Watchdog::Watch::~Watch() {
  if (socket_ < 0) return;
  const MutexLock lock(watchdog_->mutex_);
  watchdog_->deadlines_.erase(socket_);
}

Watchdog::~Watchdog() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake_.NotifyOne();
  if (thread_.joinable()) thread_.join();
}

void Watchdog::ShutDownLateOnes() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    Clock::time_point next = Clock::time_point::max();
    for (auto entry = deadlines_.begin(); entry != deadlines_.end();) {
      if (Clock::now() < entry->second) {
        next = std::min(next, entry->second);
        ++entry;
        continue;
      }
      // Under the lock: it is not closed meanwhile, nor its number reused.
      ::shutdown(entry->first, SHUT_RDWR);
      entry = deadlines_.erase(entry);
    }
    if (next == Clock::time_point::max()) {
      wake_.Wait(mutex_);
    } else {
      wake_.WaitUntil(mutex_, next);
    }
  }
}

}  // namespace perseus::store
