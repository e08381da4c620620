// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_ACTIVE_H_
#define PERSEUS_SERVER_STORE_ACTIVE_H_

#include <soci/soci.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "common/clocks.h"
#include "common/mutex.h"
#include "server/store/backend.h"
#include "server/store/link.h"

// One server at a time is active: it alone may change the store. The table `active` has one row,
// which names it. Its `epoch` grows by one whenever a server takes the store. Every transaction
// that writes checks the row first, so that a server that slept cannot write over its successor.
namespace perseus::store {

// For how long a server has the store after the last renewal. A server that hangs is followed by
// another after this time.
inline constexpr double kLeaseSeconds = 4;

// The address of the active server, as it gave it. Nullopt: no server has the store, or one
// whose lease has run out. Throws as SOCI does.
std::optional<std::string> ActiveServer(soci::session& sql, const Backend& backend);

// This process as the active server. Where the store is a database server's, the database gives it
// a lease, which a thread of this object renews: a server that is dead, stopped or cut off loses
// the store when the lease ends. A store in a file is kept by the file's lock instead. Thread-safe.
class Active {
 public:
  // `address`: for clients of other servers on this store.
  Active(std::shared_ptr<const Backend> backend, Watchdog* watchdog, std::string address);
  // Gives the store back, so that the next server need not wait for the end of the lease.
  ~Active();
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;

  // Takes the store, which no other server may have, in the transaction of the caller. Throws as
  // SOCI does.
  void Take(soci::session& sql);
  // To be called once that transaction is durable.
  void Begin();

  // Whether this server still has the store. In a transaction to write: then it has it until the
  // end of the transaction. Throws as SOCI does.
  bool Check(soci::session& sql) const;

  // The reason for a false Check().
  std::string TakenSentence() const;
  // Why this server is not active any more; nullopt: it is, and its lease runs.
  std::optional<std::string> WhyNot() const;
  // Ends it: what the store holds is not known to this process any more.
  void GiveUp(const std::string& why);

  // Whether another process has become the database since a server last took the store: a
  // replica that took over, which may lack the last commits, or a restart. Then it is the time of
  // day at which this server took it; else that of the last such moment. 0: there was none.
  std::int64_t history_seconds() const { return history_seconds_; }
  // How far the store's clock is ahead of this machine's.
  double skew_seconds() const { return skew_seconds_; }

 private:
  std::string LateSentence() const;
  void Renew();
  void RenewAll();

  const std::shared_ptr<const Backend> backend_;
  const std::string address_;
  const std::string server_id_;  // 64 random bits: one that nobody else has.
  Link link_;                    // Of the lease alone: it waits for no other transaction.
  long long epoch_ = 0;
  std::int64_t history_seconds_ = 0;
  double skew_seconds_ = 0;

  mutable Mutex mutex_;
  ConditionVariable changed_;
  BootClock::time_point leased_until_ PERSEUS_GUARDED_BY(mutex_);
  std::optional<std::string> why_not_ PERSEUS_GUARDED_BY(mutex_);
  bool stopping_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::thread renewer_;
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_ACTIVE_H_
