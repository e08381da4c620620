// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/active.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <stdexcept>
#include <utility>

namespace perseus::store {
namespace {

// Between two renewals of the lease.
constexpr std::chrono::milliseconds kRenewPeriod{500};
// The clock of a database may be set back a little while a lease lasts.
constexpr double kLeaseSlackSeconds = 1;
// Of a renewal, and of giving the store back.
constexpr double kLeaseCallSeconds = 1;

std::string RandomId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

BootClock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<BootClock::duration>(std::chrono::duration<double>(seconds));
}

// SQL expression.
std::string LeaseEnd(const Backend& backend) {
  return backend.is_remote() ? fmt::format("{} + {}", backend.now(), kLeaseSeconds) : "0";
}

double SystemSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::optional<std::string> ActiveServer(soci::session& sql, const Backend& backend) {
  std::string address;
  // A lease of another database, or one that lasts longer than any (its clock was set), is none.
  const std::string leased =
      backend.is_remote()
          ? fmt::format(" AND instance = {0} AND leased_until > {1} AND leased_until <= {1} + {2}",
                        backend.instance(), backend.now(), kLeaseSeconds + kLeaseSlackSeconds)
          : "";
  Query query(sql, "SELECT address FROM active WHERE server <> ''" + leased);
  query.Into(address);
  if (!query.Next()) return std::nullopt;
  return address;
}

Active::Active(std::shared_ptr<const Backend> backend, Watchdog* watchdog, std::string address)
    : backend_(std::move(backend)),
      address_(std::move(address)),
      server_id_(RandomId()),
      link_(backend_, watchdog) {}

Active::~Active() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (!renewer_.joinable()) return;
  renewer_.join();
  if (WhyNot()) return;
  static_cast<void>(link_.Try(
      backend_->BeginToWrite(kLeaseCallSeconds), kLeaseCallSeconds, [&](soci::session& sql) {
        sql << "UPDATE active SET server = '' WHERE server = :s", soci::use(server_id_);
      }));
}

void Active::Take(soci::session& sql) {
  const BootClock::time_point asked = BootClock::now();
  const double before = SystemSeconds();
  double now = 0;
  long long history = 0;
  // A store without jobs has no history to lose.
  Query query(sql,
              fmt::format("UPDATE active SET epoch = epoch + 1, server = :s, address = :a, "
                          "leased_until = {0}, instance = {1}, history = CASE WHEN epoch = 0 OR "
                          "instance = {1} THEN history ELSE CAST({2} AS BIGINT) END RETURNING "
                          "epoch, history, {2}",
                          LeaseEnd(*backend_), backend_->instance(), backend_->now()));
  query.Use(server_id_).Use(address_).Into(epoch_).Into(history).Into(now);
  if (!query.Next()) {
    throw std::runtime_error(
        "the row that names the active server is missing; restore a copy of the store");
  }
  history_seconds_ = history;
  skew_seconds_ = backend_->is_remote() ? now - (before + SystemSeconds()) / 2 : 0;
  const MutexLock lock(mutex_);
  leased_until_ = asked + Seconds(kLeaseSeconds);
}

void Active::Begin() {
  if (backend_->is_remote()) renewer_ = std::thread([this] { RenewAll(); });
}

bool Active::Check(soci::session& sql) const {
  int one = 0;
  Query query(sql, fmt::format("SELECT 1 FROM active WHERE epoch = :e AND server = :s AND instance "
                               "= {} {}",
                               backend_->instance(), backend_->share_row()));
  query.Use(epoch_).Use(server_id_).Into(one);
  return query.Next();
}

std::string Active::TakenSentence() const {
  return fmt::format(
      "{}: another server has taken the store, or another database stands in its "
      "place; this server is not active any more, and nothing was written",
      backend_->name());
}

std::string Active::LateSentence() const {
  return fmt::format(
      "{}: this server could not renew its lease of the store in {} s, as it was "
      "stopped or the database did not answer; it is not active any more",
      backend_->name(), kLeaseSeconds);
}

std::optional<std::string> Active::WhyNot() const {
  const MutexLock lock(mutex_);
  if (why_not_ || !backend_->is_remote() || BootClock::now() < leased_until_) return why_not_;
  return LateSentence();
}

void Active::GiveUp(const std::string& why) {
  const MutexLock lock(mutex_);
  if (!why_not_) why_not_ = why;
  changed_.NotifyAll();
}

// The lease of this process counts from before a renewal was asked for: it ends no later than the
// database's. A connection that is lost for a moment costs nothing.
void Active::Renew() {
  const BootClock::time_point asked = BootClock::now();
  bool is_renewed = false;
  // Its commit need not reach the disk: a database that forgets it has another instance().
  const std::optional<Failure> failure =
      link_.Try(backend_->BeginToWrite(kLeaseCallSeconds) + "; SET LOCAL synchronous_commit = off",
                kLeaseCallSeconds, [&](soci::session& sql) {
                  Query query(sql, fmt::format("UPDATE active SET leased_until = {} WHERE epoch = "
                                               ":e AND server = :s AND instance = {} RETURNING 1",
                                               LeaseEnd(*backend_), backend_->instance()));
                  int one = 0;
                  query.Use(epoch_).Use(server_id_).Into(one);
                  is_renewed = query.Next();
                });
  if (failure) return;
  if (!is_renewed) return GiveUp(TakenSentence());
  const MutexLock lock(mutex_);
  leased_until_ = asked + Seconds(kLeaseSeconds);
}

void Active::RenewAll() {
  const MutexLock lock(mutex_);
  while (!stopping_ && !why_not_) {
    const auto until = std::chrono::steady_clock::now() + kRenewPeriod;
    while (!stopping_ && !why_not_ && changed_.WaitUntil(mutex_, until)) {
    }
    if (stopping_ || why_not_) return;
    const bool is_late = BootClock::now() >= leased_until_;
    const MutexUnlock open_again(mutex_);
    if (is_late) {
      GiveUp(LateSentence());
    } else {
      Renew();
    }
  }
}

}  // namespace perseus::store
