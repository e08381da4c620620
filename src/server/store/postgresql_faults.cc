// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/store/postgresql_faults.h"

#include <fmt/format.h>
#include <soci/postgresql/soci-postgresql.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace perseus::store {
namespace {

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

}  // namespace

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

}  // namespace perseus::store
