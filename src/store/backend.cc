// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/backend.h"

#include <fmt/format.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace perseus::store {
namespace {

constexpr std::string_view kSqlite = "sqlite:";
constexpr std::string_view kPostgresql = "postgresql://";
constexpr int kBusySeconds = 5;

// What the process that holds a lock wrote of itself: its id.
std::string LockOwner(const FileDescriptor& lock) {
  std::array<char, 32> text = {};
  const ssize_t size = ::pread(lock.get(), text.data(), text.size() - 1, 0);
  std::string owner(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!owner.empty() && (owner.back() == '\n' || owner.back() == ' ')) owner.pop_back();
  return owner;
}

// One process keeps what it knows of jobs in memory, so that a second one must
// not write behind its back.
Result<FileDescriptor> TakeLock(const std::string& file) {
  const std::string path = file + ".lock";
  FileDescriptor lock = OpenFile(path, O_RDWR | O_CREAT, 0600);
  if (!lock.valid()) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: {}; the store needs a folder in which files can be made",
                                 path, SystemMessage(errno)));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: cannot be locked: {}", path, SystemMessage(errno)));
    }
    const std::string owner = LockOwner(lock);
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: the store is in use by another process{}; stop that one, or "
                                 "name another file",
                                 file, owner.empty() ? "" : fmt::format(" (id {})", owner)));
  }
  const std::string own = fmt::format("{:<16}\n", ::getpid());
  // The id is a courtesy: the lock holds without it.
  [[maybe_unused]] const ssize_t written = ::pwrite(lock.get(), own.data(), own.size(), 0);
  return lock;
}

Result<Database> OpenSqlite(const std::string& file) {
  if (file.empty() || file.find_first_of(std::string_view("\"\0", 2)) != std::string::npos) {
    return InvalidInput("the store's file has no name, or one with a quote; write sqlite:FILE");
  }
  Database database;
  database.name = file;
  Result<FileDescriptor> lock = TakeLock(file);
  if (!lock) return tl::unexpected(lock.error());
  database.lock = *std::move(lock);
  try {
    database.session = std::make_unique<soci::session>(
        soci::sqlite3, fmt::format("dbname=\"{}\" timeout={}", file, kBusySeconds));
    soci::session& sql = *database.session;
    std::string mode;
    sql << "PRAGMA journal_mode=WAL", soci::into(mode);
    if (mode != "wal") {
      return MakeError(ErrorCode::kIo,
                       fmt::format("{}: the file system has no shared memory, which "
                                   "the store needs; name a file on a local disk",
                                   file));
    }
    sql << "PRAGMA synchronous=FULL";
    sql << "PRAGMA foreign_keys=ON";
  } catch (const std::exception& exception) {
    return tl::unexpected(DatabaseError(file, exception));
  }
  return database;
}

std::string SqliteSentence(const std::string& name, int code, const std::string& detail) {
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fmt::format(
          "{}: the store is busy: another program has held it for {} s; nothing was "
          "written, try again",
          name, kBusySeconds);
    case SQLITE_FULL:
      return fmt::format("{}: the disk is full; nothing was written; make room and try again",
                         name);
    case SQLITE_READONLY:
      return fmt::format(
          "{}: the store is read-only; nothing was written; give this user the right "
          "to write the file and its folder",
          name);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return fmt::format(
          "{}: the store is damaged, or is no store of Perseus ({}); restore a copy, "
          "or name another file",
          name, detail);
    case SQLITE_IOERR:
      return fmt::format("{}: the disk refused to read or write; nothing was written ({})", name,
                         detail);
    case SQLITE_CANTOPEN:
      return fmt::format(
          "{}: the store cannot be opened ({}); its folder must be there and this "
          "user must have the right to write in it",
          name, detail);
    default:
      return fmt::format("{}: the store failed: {}", name, detail);
  }
}

}  // namespace

Result<Database> OpenDatabase(const std::string& spec) {
  const std::string_view text = spec;
  if (text.starts_with(kSqlite)) return OpenSqlite(spec.substr(kSqlite.size()));
  if (text.starts_with(kPostgresql)) {
    return InvalidInput(
        "stores on PostgreSQL are not there yet in this version; use sqlite:FILE, which one server "
        "on one machine needs no more than");
  }
  // Without the rest, which may hold a password.
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return InvalidInput("the store has no kind; write sqlite:FILE");
  }
  return InvalidInput(fmt::format("stores of the kind '{}' are not known; write sqlite:FILE",
                                  text.substr(0, colon)));
}

Error DatabaseError(const std::string& name, const std::exception& exception) {
  if (const auto* error = dynamic_cast<const soci::sqlite3_soci_error*>(&exception)) {
    return {ErrorCode::kIo, SqliteSentence(name, error->result(), error->get_error_message())};
  }
  // SOCI's own steps (begin, commit) throw the plain type; its text has the reason.
  const std::string_view text = exception.what();
  const auto has = [&](std::string_view words) { return text.find(words) != text.npos; };
  int code = SQLITE_ERROR;
  if (has("locked")) code = SQLITE_BUSY;
  if (has("is full")) code = SQLITE_FULL;
  if (has("readonly")) code = SQLITE_READONLY;
  if (has("malformed") || has("not a database")) code = SQLITE_CORRUPT;
  if (has("disk I/O")) code = SQLITE_IOERR;
  if (has("unable to open")) code = SQLITE_CANTOPEN;
  return {ErrorCode::kIo, SqliteSentence(name, code, std::string(text))};
}

bool IsRefusedFact(const std::exception& exception) {
  const auto* const error = dynamic_cast<const soci::sqlite3_soci_error*>(&exception);
  if (error == nullptr)
    return std::string_view(exception.what()).find("constraint") != std::string::npos;
  const int code = error->result() & 0xFF;
  return code == SQLITE_CONSTRAINT || code == SQLITE_TOOBIG || code == SQLITE_MISMATCH;
}

}  // namespace perseus::store
