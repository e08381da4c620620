// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>
#include <soci/postgresql/soci-postgresql.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "perseus/result.h"
#include "server/store/backend.h"
#include "server/store/link.h"

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

// LISTENs on the channel "perseus" on a connection of its own. Messages are "JOB REVISION SERVER".
// This does not work behind a pooler, which gives the connection to other clients between two
// transactions. There, and while there is no connection, only `look` is called from time to time.
class PostgresqlListener : public Watcher {
 public:
  // `uri` is that of PostgresqlAddress. The functions are called on one thread.
  PostgresqlListener(std::string uri, std::string server_id,
                     std::function<void(std::vector<std::string>)> woken,
                     std::function<void()> look);
  ~PostgresqlListener() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct CloseConnection {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  enum class Woken : std::uint8_t { kStop, kSocket, kTime };

  void ListenAndLook();
  void Connect();
  bool ConnectWithin(Clock::time_point until);
  bool Listen(Clock::time_point until);
  std::string Ask(const std::string& query, Clock::time_point until);
  void TakeMessages();
  void Drop();
  Woken Wait(short events, Clock::time_point until) const;

  const std::string uri_;
  const std::string server_id_;
  const std::function<void(std::vector<std::string>)> woken_;
  const std::function<void()> look_;
  const FileDescriptor stop_;  // An eventfd.

  // The members below are used by the thread only.
  std::unique_ptr<PGconn, CloseConnection> connection_;
  bool is_pooled_ = false;
  Backoff backoff_;
  Clock::time_point connect_at_ = {};

  std::thread thread_;
};

// Between two looks: with messages, which can be lost, and without.
constexpr std::chrono::milliseconds kLookSeldom{1000};
constexpr std::chrono::milliseconds kLookOften{250};
constexpr std::chrono::seconds kListenPatience{3};

struct FreeResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
struct FreeMessage {
  void operator()(PGnotify* message) const { PQfreemem(message); }
};

PostgresqlListener::PostgresqlListener(std::string uri, std::string server_id,
                                       std::function<void(std::vector<std::string>)> woken,
                                       std::function<void()> look)
    : uri_(std::move(uri)),
      server_id_(std::move(server_id)),
      woken_(std::move(woken)),
      look_(std::move(look)),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { ListenAndLook(); });
}

PostgresqlListener::~PostgresqlListener() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  thread_.join();
}

void PostgresqlListener::ListenAndLook() {
  Clock::time_point look_at = Clock::now();
  while (true) {
    if (connection_ == nullptr && !is_pooled_ && Clock::now() >= connect_at_) {
      Connect();
      look_at = Clock::now();  // Earlier notices are not told again.
    }
    if (Clock::now() >= look_at) {
      look_();
      look_at = Clock::now() + (connection_ == nullptr ? kLookOften : kLookSeldom);
    }
    const bool is_away = connection_ == nullptr && !is_pooled_;
    switch (Wait(POLLIN, is_away ? std::min(look_at, connect_at_) : look_at)) {
      case Woken::kStop:
        return;
      case Woken::kSocket:
        TakeMessages();
        break;
      case Woken::kTime:
        break;
    }
  }
}

// Until the time, the socket, or the end.
PostgresqlListener::Woken PostgresqlListener::Wait(short events, Clock::time_point until) const {
  const int socket = connection_ == nullptr ? -1 : PQsocket(connection_.get());
  std::array<pollfd, 2> sources = {{{stop_.get(), POLLIN, 0}, {socket, events, 0}}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  // One more: not to be back just before the time.
  ::poll(sources.data(), sources.size(), std::max(0, static_cast<int>(left.count()) + 1));
  if (sources[0].revents != 0) return Woken::kStop;
  return sources[1].revents != 0 ? Woken::kSocket : Woken::kTime;
}

void PostgresqlListener::Drop() {
  connection_.reset();
  connect_at_ = Clock::now() + backoff_.Next();
}

void PostgresqlListener::Connect() {
  const Clock::time_point until = Clock::now() + kListenPatience;
  connection_.reset(PQconnectStart(uri_.c_str()));
  if (connection_ == nullptr || !ConnectWithin(until) || !Listen(until)) return Drop();
  backoff_ = {};
  if (is_pooled_) connection_.reset();
}

bool PostgresqlListener::ConnectWithin(Clock::time_point until) {
  PostgresPollingStatusType status = PGRES_POLLING_WRITING;
  if (PQstatus(connection_.get()) == CONNECTION_BAD) return false;
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
  while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
    const short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (Wait(events, until) != Woken::kSocket) return false;
    status = PQconnectPoll(connection_.get());
  }
  return status == PGRES_POLLING_OK;
}

// The process that answers is another one than that which was connected to: a
// pooler is in between.
bool PostgresqlListener::Listen(Clock::time_point until) {
  const std::string process = Ask("SELECT pg_backend_pid()", until);
  if (process.empty()) return false;
  is_pooled_ = process != std::to_string(PQbackendPID(connection_.get()));
  return is_pooled_ || Ask("LISTEN perseus", until) == "done";
}

// The one cell of the answer, or "done"; empty: there was no answer.
std::string PostgresqlListener::Ask(const std::string& query, Clock::time_point until) {
  if (PQsendQuery(connection_.get(), query.c_str()) == 0) return "";
  std::string answer;
  while (true) {
    while (PQisBusy(connection_.get()) != 0) {
      if (Wait(POLLIN, until) != Woken::kSocket) return "";
      if (PQconsumeInput(connection_.get()) == 0) return "";
    }
    const std::unique_ptr<PGresult, FreeResult> result(PQgetResult(connection_.get()));
    if (result == nullptr) return answer;
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK) answer = "done";
    if (status == PGRES_TUPLES_OK && PQntuples(result.get()) == 1) {
      answer = PQgetvalue(result.get(), 0, 0);
    }
  }
}

void PostgresqlListener::TakeMessages() {
  if (PQconsumeInput(connection_.get()) == 0) return Drop();
  std::vector<std::string> ids;
  while (true) {
    const std::unique_ptr<PGnotify, FreeMessage> message(PQnotifies(connection_.get()));
    if (message == nullptr) break;
    std::istringstream words(message->extra);
    std::string id;
    std::string revision;
    std::string server;
    words >> id >> revision >> server;
    if (server != server_id_ && std::find(ids.begin(), ids.end(), id) == ids.end()) {
      ids.push_back(id);
    }
  }
  if (!ids.empty()) woken_(std::move(ids));
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
