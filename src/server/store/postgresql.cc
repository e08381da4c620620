// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/postgresql.h"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <soci/postgresql/soci-postgresql.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/store/postgresql_address.h"
#include "server/store/postgresql_faults.h"
#include "server/store/postgresql_listener.h"

namespace perseus::store {
namespace {

constexpr int kOldestVersion = 120000;
// "perseus" in ASCII: the lock that migrations of one database share.
constexpr long long kMigrationLock = 0x70657273657573;
constexpr double kMigrationSeconds = 60;

PGconn* ConnectionOf(soci::session& session) {
  return static_cast<soci::postgresql_session_backend*>(session.get_backend())->conn_;
}

int Milliseconds(double seconds) { return static_cast<int>(seconds * 1000); }

class Postgresql : public Backend {
 public:
  explicit Postgresql(PostgresqlAddress address) : address_(std::move(address)) {}

  const std::string& name() const override { return address_.name; }
  bool is_shared() const override { return true; }

  std::unique_ptr<soci::session> Connect() const override {
    auto session = std::make_unique<soci::session>(soci::postgresql, address_.uri);
    PGconn* const connection = ConnectionOf(*session);
    // Warnings would go to the process' standard error otherwise.
    PQsetNoticeProcessor(
        connection, [](void*, const char*) {}, nullptr);
    if (PQserverVersion(connection) < kOldestVersion) {
      throw UnfitDatabase(fmt::format("the database is PostgreSQL {}; 12 or later is needed",
                                      PQserverVersion(connection) / 10000));
    }
    const char* const encoding = PQparameterStatus(connection, "server_encoding");
    if (encoding != nullptr && std::string_view(encoding) != "UTF8") {
      throw UnfitDatabase(fmt::format(
          "the database's encoding is {}; make one with CREATE DATABASE ... ENCODING 'UTF8' "
          "TEMPLATE template0",
          encoding));
    }
    return session;
  }

  int SocketOf(soci::session& session) const override { return PQsocket(ConnectionOf(session)); }

  // SET LOCAL: a session belongs to others between two transactions where a pooler
  // is in between.
  std::string BeginToWrite(double statement_seconds) const override {
    return Begin("ISOLATION LEVEL READ COMMITTED READ WRITE", statement_seconds, kStoppedSeconds);
  }
  std::string BeginToRead(double statement_seconds) const override {
    return Begin("ISOLATION LEVEL REPEATABLE READ READ ONLY", statement_seconds,
                 2 * statement_seconds);
  }
  // A statement_timeout that ends the wait for a synchronous standby makes the commit a
  // success, which it is not yet.
  std::string Commit() const override { return "SET LOCAL statement_timeout = 0; COMMIT"; }
  std::string BeginToMigrate() const override {
    return fmt::format(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL statement_timeout = {}; "
        "SELECT pg_advisory_xact_lock({})",
        Milliseconds(kMigrationSeconds), kMigrationLock);
  }

  std::string_view now() const override {
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)";
  }
  // A database that was made anew from a copy has another number, too.
  std::string_view instance() const override {
    return "(SELECT CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) * 1000000 AS BIGINT) + "
           "CAST(oid AS BIGINT) FROM pg_database WHERE datname = current_database())";
  }
  std::string_view lock_or_skip() const override { return "FOR UPDATE SKIP LOCKED"; }
  std::string_view tables() const override {
    return "SELECT CAST(relname AS TEXT) FROM pg_class WHERE relkind IN ('r', 'p') AND "
           "relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) "
           "ORDER BY oid";
  }
  std::string_view columns() const override {
    return "SELECT CAST(column_name AS TEXT), CAST(data_type AS TEXT) FROM "
           "information_schema.columns WHERE table_schema = current_schema() AND table_name = :t "
           "ORDER BY ordinal_position";
  }
  // By their role or name: both are this session's own, unless an address says otherwise.
  std::string_view other_users() const override {
    return "SELECT CAST(COALESCE(NULLIF(application_name, ''), 'a client') || ' (process ' || pid "
           "|| ')' AS TEXT) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
           "pg_backend_pid() AND (usename = session_user OR application_name = 'perseus' OR "
           "application_name = current_setting('application_name')) ORDER BY pid";
  }

  Fault FaultOf(const std::exception& exception) const override {
    return PostgresqlFault(address_, exception);
  }

  // A commit with NOTIFY takes a lock of the whole instance: so it is one that
  // writes nothing else and does not wait for the disk.
  std::string BeginToNotify() const override {
    return BeginToWrite(1) + "; SET LOCAL synchronous_commit = off";
  }
  void Notify(soci::session& sql, const std::vector<JobMarks>& marks,
              const std::string& server_id) const override {
    for (const JobMarks& mark : marks) {
      const std::string payload = fmt::format("{} {} {}", mark.id, mark.revision, server_id);
      sql << "SELECT pg_notify('perseus', :p)", soci::use(payload);
    }
  }
  std::unique_ptr<Watcher> Watch(const std::string& server_id,
                                 std::function<void(std::vector<std::string>)> woken,
                                 std::function<void()> look) const override {
    return std::make_unique<PostgresqlListener>(address_.uri, server_id, std::move(woken),
                                                std::move(look));
  }

 private:
  static std::string Begin(std::string_view mode, double statement_seconds, double idle_seconds) {
    return fmt::format(
        "BEGIN {}; SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}; "
        "SET LOCAL idle_in_transaction_session_timeout = {}",
        mode, Milliseconds(statement_seconds), Milliseconds(statement_seconds / 2),
        Milliseconds(idle_seconds));
  }

  const PostgresqlAddress address_;
};

}  // namespace

Result<std::shared_ptr<const Backend>> OpenPostgresql(const std::string& uri) {
  Result<PostgresqlAddress> address = ParsePostgresqlAddress(uri);
  if (!address) return tl::unexpected(address.error());
  return std::make_shared<const Postgresql>(*std::move(address));
}

}  // namespace perseus::store
