// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_BACKEND_H_
#define PERSEUS_SERVER_STORE_BACKEND_H_

#include <soci/soci.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"

namespace perseus::store {

// One SQL statement with any number of values. It is sent once and has no name in the database;
// SOCI's own `prepare` would leave named statements behind, and a pooler like PgBouncer would hand
// them to other clients. Values are bound by reference in the order of their names in the text, so
// they must live as long as the query. Throws as SOCI does.
class Query {
 public:
  Query(soci::session& sql, const std::string& text) : text_(text), statement_(sql) {}

  template <typename T>
  Query& Use(const T& value) {
    statement_.exchange(soci::use(value));
    return *this;
  }
  template <typename T>
  Query& Into(T& value) {
    statement_.exchange(soci::into(value));
    return *this;
  }
  // With whether it is NULL.
  template <typename T>
  Query& Use(const T& value, soci::indicator& indicator) {
    statement_.exchange(soci::use(value, indicator));
    return *this;
  }
  template <typename T>
  Query& Into(T& value, soci::indicator& indicator) {
    statement_.exchange(soci::into(value, indicator));
    return *this;
  }

  // Reads the next row into the variables of Into(); false: there is none.
  bool Next() {
    if (is_executed_) return statement_.fetch();
    Start();
    return statement_.execute(true);
  }

  // For statements without rows.
  void Execute() {
    Start();
    statement_.execute(true);
  }

 private:
  void Start() {
    is_executed_ = true;
    statement_.alloc();
    statement_.prepare(text_, soci::details::st_one_time_query);
    statement_.define_and_bind();
  }

  const std::string text_;
  soci::statement statement_;
  bool is_executed_ = false;
};

// All differences between databases. The SQL of the other files is common to SQLite and PostgreSQL:
// BIGINT, DOUBLE PRECISION, TEXT, ON CONFLICT, RETURNING.

// The meaning of an exception of SOCI for the caller.
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
  // Whether a database server keeps the store, at the end of a connection that may be lost.
  virtual bool is_remote() const = 0;
  // Keeps other servers away as long as this object lives, where a lock can do that; else the lease
  // of class Active does. Returns nullopt, or who has the lock.
  virtual Result<std::optional<std::string>> Lock() const { return std::nullopt; }
  // Why commits would not survive a restart now (for example: the file was deleted); nullopt: they
  // would.
  virtual std::optional<Error> WhyLost() const { return std::nullopt; }

  // Free bytes on the disk of the store; nullopt: it is another machine's.
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
  // SQL expression for a whole number that names the database as long as it can lose no commit:
  // another one after a restart, or when a standby took over. (A file is always the same.)
  virtual std::string_view instance() const { return "0"; }
  // SQL suffix of a SELECT: until the end of the transaction, nobody changes the keys of its rows.
  virtual std::string_view share_row() const { return ""; }
  // SQL query for the names of all tables, in the order in which they were made.
  virtual std::string_view tables() const = 0;
  // SQL query for names and types of the columns of the table `:t`, in their order.
  virtual std::string_view columns() const = 0;
  virtual Fault FaultOf(const std::exception& exception) const = 0;
};

// Makes the backend for `spec`: "sqlite:FILE" or a URI "postgresql://...". A SQLite backend creates
// the file if necessary.
Result<std::shared_ptr<const Backend>> OpenBackend(const std::string& spec);
// The file of a SQLite store; nullopt: `spec` is of another kind.
std::optional<std::string> SqliteFileOf(const std::string& spec);
// Checks `spec` as far as possible without making or locking a file or asking a database.
Result<void> CheckSpec(const std::string& spec);

// The version of the tables that this program writes.
inline constexpr int kSchemaVersion = 1;

// The table of this version, which Migrate() itself fills.
inline constexpr std::string_view kVersionTable = "schema_version";

// The table that names the active server.
inline constexpr std::string_view kActiveTable = "active";

// The names of all tables of the database, in the order in which they were made. Throws as SOCI
// does.
std::vector<std::string> Tables(soci::session& sql, const Backend& backend);

// Whether the database holds the tables of a store; false: it has no tables. Fails if it has the
// tables of another program. Throws as SOCI does.
Result<bool> CheckIsStore(soci::session& sql, const Backend& backend);

// The statements that bring the tables from one version to the next.
using SchemaStep = std::span<const std::string_view>;
// Those of this program, from an empty database on.
std::span<const SchemaStep> SchemaSteps();

// Creates the tables, or migrates those of an older version to the last of `steps`. The caller must
// have begun a transaction with Backend::BeginToMigrate(). Fails, and writes nothing, if the tables
// are newer. Throws as SOCI does. (Tests add steps, to be a later program.)
Result<void> Migrate(soci::session& sql, const Backend& backend,
                     std::span<const SchemaStep> steps = SchemaSteps());

// A store in one file. kInvalidInput: the name cannot be a file's. kIo: the file cannot be opened,
// or belongs to another program; it is then left unchanged.
Result<std::shared_ptr<const Backend>> OpenSqlite(const std::string& file);
// The same errors, as far as they show without opening the database or making a file.
Result<void> CheckSqliteFile(const std::string& file);

// A store in a database of PostgreSQL 12 or later, directly or through PgBouncer: nothing is kept
// in a session from one transaction to the next. `uri` is libpq's,
// "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?...". Does not connect. kInvalidInput: `uri` is
// not such a URI.
Result<std::shared_ptr<const Backend>> OpenPostgresql(const std::string& uri);

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_BACKEND_H_
