// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_STORE_BACKEND_H_
#define PERSEUS_STORE_BACKEND_H_

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
#include "store/facts.h"

// All that differs between databases. The SQL of the other files is what SQLite
// and PostgreSQL have in common: BIGINT, DOUBLE PRECISION, TEXT, ON CONFLICT,
// RETURNING.
namespace perseus::store {

// What an exception of SOCI means for who wrote or read.
enum class FaultKind : std::uint8_t {
  kRefused,   // The tables refused what was written; the database is well.
  kInTheWay,  // Another transaction was; nothing was written, and trying again helps.
  kLost,      // The connection is gone.
  kFailed,    // The database or the disk.
};
struct Fault {
  FaultKind kind = FaultKind::kFailed;
  Error error;  // Its sentence. kConflict where the tables refused, kIo otherwise.
};

// Hears of what other processes write, on a thread of its own, until it is
// destroyed.
class Watcher {
 public:
  Watcher() = default;
  virtual ~Watcher() = default;
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;
};

inline constexpr double kStoppedSeconds = 3;

// A kind of database, and where it is. Thread-safe: it does not change.
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
  // Why what is committed now will not be there after a restart; nullopt: it will.
  virtual std::optional<Error> WhyLost() const { return std::nullopt; }

  // A connection with durability and constraints switched on. Throws what
  // FaultOf() reads.
  virtual std::unique_ptr<soci::session> Connect() const = 0;
  // Its socket, to be shut down where the database does not answer; -1: none.
  virtual int SocketOf(soci::session& session) const = 0;

  // Statements that begin a transaction; one to read sees one moment of the store.
  // No statement of it takes longer than `statement_seconds`, where that can be said. The
  // database ends one to write by itself where this process is stopped in it for
  // kStoppedSeconds.
  virtual std::string BeginToWrite(double statement_seconds) const = 0;
  virtual std::string BeginToRead(double statement_seconds) const = 0;
  // Ends one.
  virtual std::string Commit() const { return "COMMIT"; }
  // Begins one that no other migration runs beside.
  virtual std::string BeginToMigrate() const = 0;

  // An expression: seconds since 1970 by the database's clock.
  virtual std::string_view now() const = 0;
  // The same by a clock that nobody sets, where one process owns the store; its zero changes
  // with each boot then.
  virtual std::string lease_now() const { return std::string(now()); }
  // What makes a SELECT ... lock its rows and pass by those that others hold.
  virtual std::string_view lock_or_skip() const = 0;
  // A query of the names of all tables.
  virtual std::string_view tables() const = 0;

  virtual Fault FaultOf(const std::exception& exception) const = 0;

  // Wakes the watchers of other processes: a transaction of its own. Nothing where
  // nobody else writes.
  virtual std::string BeginToNotify() const = 0;
  virtual void Notify(soci::session& sql, const std::vector<JobMarks>& marks,
                      const std::string& server_id) const = 0;
  // `woken` is called with ids of jobs that another process than `server_id` told
  // of, and `look` from time to time, as messages can be lost. Null: nobody else writes.
  virtual std::unique_ptr<Watcher> Watch(const std::string& server_id,
                                         std::function<void(std::vector<std::string>)> woken,
                                         std::function<void()> look) const = 0;
};

// The backend that `spec` names: "sqlite:FILE" or a URI "postgresql://...". One of
// SQLite holds the file's lock as long as it lives, and makes the file.
Result<std::shared_ptr<const Backend>> OpenBackend(const std::string& spec);

}  // namespace perseus::store

#endif  // PERSEUS_STORE_BACKEND_H_
