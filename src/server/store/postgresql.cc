// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <libpq-fe.h>
#include <soci/postgresql/soci-postgresql.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "perseus/result.h"
#include "server/store/backend.h"

namespace perseus::store {
namespace {

// The address of a database.
struct PostgresqlAddress {
  std::string uri;       // With time limits for a dead server. Contains the password.
  std::string name;      // For messages: "postgresql://HOST:PORT/DATABASE".
  std::string password;  // Must not appear in messages; may be empty.
};

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};

// A server that died without a word is noticed within seconds, whether it is
// asked, answers, or nothing happens.
constexpr std::array<std::pair<const char*, const char*>, 7> kDefaults = {{
    {"connect_timeout", "2"},
    {"keepalives_idle", "2"},
    {"keepalives_interval", "1"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "5000"},
    {"fallback_application_name", "perseus"},
    {"client_encoding", "UTF8"},
}};

// All but letters and digits, so that no parser on the way is misled: SOCI splits its text at
// blanks and at the first "=".
std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';
    encoded +=
        is_plain ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return encoded;
}

// Whether the password may hold a plain /: libpq then takes pieces of it for the port and the
// database.
bool IsMisread(std::string_view uri, std::string_view ports) {
  const bool are_numbers = std::all_of(ports.begin(), ports.end(),
                                       [](char c) { return (c >= '0' && c <= '9') || c == ','; });
  uri.remove_prefix(std::min(uri.size(), uri.find("://") + 3));
  uri = uri.substr(0, uri.find('?'));
  const std::size_t path = uri.find('/');
  return !are_numbers || (path != uri.npos && uri.find('@', path) != uri.npos);
}

constexpr std::string_view kUnreadable =
    "the store's address cannot be read; write "
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE?OPTION=VALUE, with %40 for a @, %2F for a / "
    "and %25 for a % in the password";

// Parses a URI that a person wrote and adds time limits where it sets none. kInvalidInput: the
// message shows no part of `uri`, which may hold a password.
Result<PostgresqlAddress> ParsePostgresqlAddress(const std::string& uri) {
  const std::unique_ptr<PQconninfoOption, FreeOptions> options(
      PQconninfoParse(uri.c_str(), nullptr));
  // libpq's own words may hold a piece of the password.
  if (options == nullptr) return InvalidInput(std::string(kUnreadable));
  std::map<std::string, std::string> values(kDefaults.begin(), kDefaults.end());
  for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
    if (option->val != nullptr && *option->val != '\0') values[option->keyword] = option->val;
  }
  const auto value = [&](const char* key) {
    const auto found = values.find(key);
    return found == values.end() ? std::string() : found->second;
  };
  if (IsMisread(uri, value("port"))) return InvalidInput(std::string(kUnreadable));
  // Of several, the one that takes writes; also the one to which they fail over.
  if (value("host").find(',') != std::string::npos) {
    values.try_emplace("target_session_attrs", "read-write");
  }
  PostgresqlAddress address;
  address.password = value("password");
  address.name = fmt::format("postgresql://{}{}{}/{}", value("host"),
                             value("port").empty() ? "" : ":", value("port"), value("dbname"));
  for (const auto& [key, text] : values) {
    address.uri +=
        fmt::format("{}{}={}", address.uri.empty() ? "postgresql:///?" : "&", key, Encoded(text));
  }
  return address;
}

// The connection works, but this database cannot be used (for example: too old). what() is the end
// of a sentence that begins with the database's name.
class UnfitDatabase : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Known {
  std::string_view mark;  // The begin of an SQLSTATE, or words of libpq or the server.
  FaultKind kind;
  std::string_view sentence;
};

constexpr std::string_view kStandby =
    "the database is a read-only standby; nothing was written; name the primary, or all hosts "
    "(postgresql://HOST1,HOST2/DATABASE), of which the one that takes writes is used";

// The first that fits. Appendix A of PostgreSQL's documentation.
constexpr std::array<Known, 19> kStates = {{
    {"23", FaultKind::kRefused, "the store refused it"},
    {"22", FaultKind::kRefused, "the store cannot hold such text or numbers"},
    {"54", FaultKind::kRefused, "the store refused it as too large"},
    {"40", FaultKind::kInTheWay, "another server was in the way each time; nothing was written"},
    {"55P03", FaultKind::kInTheWay,
     "another server has held what is to be changed for too long; nothing was written"},
    {"57014", FaultKind::kFailed,
     "the database did not answer in time; nothing was written; see what else it does"},
    {"57", FaultKind::kLost, "the database was stopped or is starting; nothing was written"},
    {"08", FaultKind::kLost, "the connection to the database was lost; nothing was written"},
    {"25006", FaultKind::kLost, kStandby},
    {"0A000", FaultKind::kLost, kStandby},  // "cannot set ... read-write mode during recovery"
    {"25P03", FaultKind::kLost, "the database gave the transaction up; nothing was written"},
    {"53100", FaultKind::kFailed,
     "the database's disk is full; nothing was written; make room and try again"},
    {"53300", FaultKind::kLost,
     "the database has no connection left; raise max_connections, or put PgBouncer before it"},
    {"53", FaultKind::kFailed, "the database is short of memory or disk; nothing was written"},
    {"42501", FaultKind::kFailed,
     "the role lacks a right; make it the owner of the database (CREATE DATABASE perseus OWNER "
     "ROLE), and of the tables in it"},
    {"42P01", FaultKind::kFailed, "tables of the store are missing; restore a copy"},
    {"58", FaultKind::kFailed, "the database's disk refused to read or write"},
    {"XX", FaultKind::kFailed, "the database is damaged, or has met a bug of its own"},
    {"26", FaultKind::kLost, "a pooler has mixed up statements; nothing was written"},
}};

// Before there is a connection.
constexpr std::array<Known, 16> kWords = {{
    {"password authentication failed", FaultKind::kFailed,
     "the database does not take this user and password; correct its line in "
     "~/.pgpass, or in the file that PGPASSFILE names"},
    {"no password supplied", FaultKind::kFailed,
     "the database asks for a password; write it into ~/.pgpass"},
    {"authentication failed", FaultKind::kFailed,
     "the database does not take this user; its pg_hba.conf says who may come, and how"},
    {"no pg_hba.conf entry", FaultKind::kFailed,
     "the database lets nobody in from here as this user; add a line to its pg_hba.conf"},
    {"does not exist", FaultKind::kFailed,
     "there is no such database or role; make them (docs/how-to/postgresql.md says how)"},
    {"permission denied for database", FaultKind::kFailed,
     "this user may not connect to the database; GRANT CONNECT to it"},
    {"no such database", FaultKind::kFailed, "the pooler knows no such database"},
    {"is not permitted to log in", FaultKind::kFailed,
     "this role may not log in; ALTER ROLE ... LOGIN"},
    {"unsupported startup parameter", FaultKind::kFailed,
     "PgBouncer refuses an option of the address; leave it out, or name it in "
     "ignore_startup_parameters"},
    {"server does not support SSL", FaultKind::kFailed,
     "the database has no TLS, which the address asks for (sslmode)"},
    {"certificate", FaultKind::kFailed, "the database's certificate is not trusted"},
    {"session is read-only", FaultKind::kLost,
     "none of the hosts takes writes; promote one of them"},
    {"too many clients", FaultKind::kLost,
     "the database has no connection left; raise max_connections, or put PgBouncer before it"},
    {"remaining connection slots", FaultKind::kLost,
     "the database has no connection left; raise max_connections, or put PgBouncer before it"},
    {"starting up", FaultKind::kLost, "the database is starting"},
    {"", FaultKind::kLost, "the database cannot be reached; nothing was written"},
}};

// One line without SOCI's and libpq's headings, and without the password.
std::string Detail(std::string text, const std::string& password) {
  const auto cut = [&](std::string_view heading) {
    const std::size_t at = text.find(heading);
    if (at != std::string::npos) text.erase(0, at + heading.size());
  };
  cut("Cannot establish connection to the database.");
  cut("FATAL:");
  cut("ERROR:");
  // SOCI adds the statement and all its values.
  text.erase(std::min(text.find(" while executing"), text.size()));
  for (std::size_t at = 0; !password.empty() && (at = text.find(password)) != std::string::npos;) {
    text.replace(at, password.size(), "...");
  }
  std::string line;
  for (const char letter : text) {
    const bool is_blank = letter == '\n' || letter == ' ' || letter == '\t';
    if (!is_blank) {
      line += letter;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// The meaning of an exception of SOCI's PostgreSQL backend: decided by its SQLSTATE or, if there is
// no connection and so no SQLSTATE, by libpq's message.
Fault PostgresqlFault(const PostgresqlAddress& address, const std::exception& exception) {
  if (dynamic_cast<const UnfitDatabase*>(&exception) != nullptr) {
    return {FaultKind::kFailed,
            {ErrorCode::kIo, fmt::format("{}: {}", address.name, exception.what())}};
  }
  const auto* const failure = dynamic_cast<const soci::postgresql_soci_error*>(&exception);
  const auto* const error = dynamic_cast<const soci::soci_error*>(&exception);
  const std::string text = error == nullptr ? exception.what() : error->get_error_message();
  const std::string state = failure == nullptr ? "" : failure->sqlstate();
  const std::string detail = Detail(text, address.password);
  const auto fault = [&](const Known& known) {
    const bool is_refused = known.kind == FaultKind::kRefused;
    const ErrorCode code = !is_refused                            ? ErrorCode::kIo
                           : known.mark == std::string_view("23") ? ErrorCode::kConflict
                                                                  : ErrorCode::kInvalidInput;
    return Fault{known.kind,
                 {code, fmt::format("{}: {}{}", address.name, known.sentence,
                                    detail.empty() ? "" : " (" + detail + ")")}};
  };
  for (const Known& known : kStates) {
    if (std::string_view(state).starts_with(known.mark)) return fault(known);
  }
  const bool has_state = std::any_of(state.begin(), state.end(),
                                     [](char letter) { return letter != ' ' && letter != '\0'; });
  // A connection that does not come about is of SOCI's plain type.
  const bool is_connecting = text.find("Cannot establish connection") != std::string::npos;
  if (has_state || (failure == nullptr && !is_connecting)) {
    return fault({"", FaultKind::kFailed, "the store failed"});
  }
  // libpq's own: there is no connection, or none any more.
  for (const Known& known : kWords) {
    if (detail.find(known.mark) != std::string::npos) return fault(known);
  }
  return fault(kWords.back());
}

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
  bool is_remote() const override { return true; }

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
        "{}; SELECT pg_advisory_xact_lock({})",
        Begin("ISOLATION LEVEL READ COMMITTED READ WRITE", kMigrationSeconds, kStoppedSeconds),
        kMigrationLock);
  }

  std::string_view now() const override {
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)";
  }
  // A database that was made anew from a copy has another number, too.
  std::string_view instance() const override {
    return "(SELECT CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) * 1000000 AS BIGINT) + "
           "CAST(oid AS BIGINT) FROM pg_database WHERE datname = current_database())";
  }
  // Renewals of the lease, which change no key, need not wait for it.
  std::string_view share_row() const override { return "FOR KEY SHARE"; }
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
  Fault FaultOf(const std::exception& exception) const override {
    return PostgresqlFault(address_, exception);
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
