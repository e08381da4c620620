// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_BACKEND_H_
#define PERSEUS_SERVER_STORE_BACKEND_H_

#include <soci/soci.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"
#include "server/store/facts.h"

// All that differs between databases. The SQL of the other files is what SQLite
// and PostgreSQL have in common: BIGINT, DOUBLE PRECISION, TEXT, ON CONFLICT,
// RETURNING.
namespace perseus::store {

// What an exception of SOCI means for the caller.
enum class FaultKind : std::uint8_t {
  kRefused,   // The tables refused what was written; the database is well.
  kInTheWay,  // Another transaction was in the way. Nothing was written; trying again helps.
  kLost,      // The connection is gone.
  kFailed,    // The database or the disk failed.
};
struct Fault {
  FaultKind kind = FaultKind::kFailed;
  Error error;  // Code: kConflict if the tables refused, kIo otherwise.
};

// Learns of writes by other processes, on a thread of its own, until it is destroyed.
class Watcher {
 public:
  Watcher() = default;
  virtual ~Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
};

inline constexpr double kStoppedSeconds = 3;

// A kind of database and its location. Immutable, so thread-safe.
class Backend {
 public:
  Backend() = default;
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  // For messages: the file, or host and database; never a password.
  virtual const std::string& name() const = 0;
  // Whether other processes may write at the same time.
  virtual bool is_shared() const = 0;
  // Why commits would not survive a restart now (for example: the file was deleted); nullopt: they
  // would.
  virtual std::optional<Error> WhyLost() const { return std::nullopt; }

  // What is free on the disk of the store; nullopt: that is another machine's.
  virtual std::optional<std::uint64_t> FreeBytes() const { return std::nullopt; }

  // Opens a connection with durability and constraints switched on. Throws exceptions that
  // FaultOf() understands.
  virtual std::unique_ptr<soci::session> Connect() const = 0;
  // The session's socket, which can be shut down if the database does not answer; -1: none.
  virtual int SocketOf(soci::session& session) const = 0;

  // SQL that begins a transaction. A transaction to read sees the store at one moment. If the
  // database has such a limit, no statement takes longer than `statement_seconds`, and the database
  // ends a transaction to write if this process is stopped (SIGSTOP) in it for kStoppedSeconds.
  virtual std::string BeginToWrite(double statement_seconds) const = 0;
  virtual std::string BeginToRead(double statement_seconds) const = 0;
  virtual std::string Commit() const { return "COMMIT"; }
  // SQL that begins a transaction which excludes other migrations.
  virtual std::string BeginToMigrate() const = 0;

  // SQL expression: seconds since 1970 by the database's clock.
  virtual std::string_view now() const = 0;
  // SQL expression for times of leases. If one process owns the store, this is the time since boot,
  // which nobody can set.
  virtual std::string lease_now() const { return std::string(now()); }
  // SQL expression for a whole number that names the database as long as it can lose no commit:
  // another one after a restart, or when a standby took over. (A file is always the same.)
  virtual std::string_view instance() const { return "0"; }
  // SQL suffix that makes a SELECT lock its rows and skip rows that others have locked.
  virtual std::string_view lock_or_skip() const = 0;
  // SQL query for the names of all tables, in the order in which they were made.
  virtual std::string_view tables() const = 0;
  // SQL query for names and types of the columns of the table `:t`, in their order.
  virtual std::string_view columns() const = 0;
  // SQL query for names of sessions, but this one, in which servers may use the store. Empty: the
  // lock of this process keeps them away.
  virtual std::string_view other_users() const { return ""; }

  virtual Fault FaultOf(const std::exception& exception) const = 0;

  // Wakes the watchers of other processes, in a transaction of its own. Does nothing if the store
  // is not shared.
  virtual std::string BeginToNotify() const = 0;
  virtual void Notify(soci::session& sql, const std::vector<JobMarks>& marks,
                      const std::string& server_id) const = 0;
  // Starts a watcher. It calls `woken` with ids of jobs that other servers than `server_id`
  // changed, and `look` from time to time, because such messages can be lost. Null: the store is
  // not shared.
  virtual std::unique_ptr<Watcher> Watch(const std::string& server_id,
                                         std::function<void(std::vector<std::string>)> woken,
                                         std::function<void()> look) const = 0;
};

// Makes the backend for `spec`: "sqlite:FILE" or a URI "postgresql://...". A SQLite backend creates
// the file if necessary and holds its lock as long as it lives.
Result<std::shared_ptr<const Backend>> OpenBackend(const std::string& spec);
// The file of a SQLite store; nullopt: `spec` is of another kind.
std::optional<std::string> SqliteFileOf(const std::string& spec);
// What can be said against `spec` at once, without making or locking a file or asking a database.
Result<void> CheckSpec(const std::string& spec);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_BACKEND_H_
