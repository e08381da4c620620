// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "store/sqlite.h"

#include <fmt/format.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "store/schema.h"

namespace perseus::store {
namespace {

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
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
      return fmt::format("{}: the store refused it: {}", name, detail);
    default:
      return fmt::format("{}: the store failed: {}", name, detail);
  }
}

// What SOCI's own steps say, which throw the plain type.
int CodeOfText(std::string_view text) {
  const auto has = [&](std::string_view words) { return text.find(words) != text.npos; };
  if (has("constraint")) return SQLITE_CONSTRAINT;
  if (has("locked")) return SQLITE_BUSY;
  if (has("is full")) return SQLITE_FULL;
  if (has("readonly")) return SQLITE_READONLY;
  if (has("malformed") || has("not a database")) return SQLITE_CORRUPT;
  if (has("disk I/O")) return SQLITE_IOERR;
  if (has("unable to open")) return SQLITE_CANTOPEN;
  return SQLITE_ERROR;
}

class Sqlite : public Backend {
 public:
  Sqlite(std::string file, FileDescriptor lock) : file_(std::move(file)), lock_(std::move(lock)) {}

  const std::string& name() const override { return file_; }
  bool is_shared() const override { return false; }

  std::unique_ptr<soci::session> Connect() const override {
    auto session = std::make_unique<soci::session>(
        soci::sqlite3, fmt::format("dbname=\"{}\" timeout={}", file_, kBusySeconds));
    std::string mode;
    *session << "PRAGMA journal_mode=WAL", soci::into(mode);
    if (mode != "wal") {
      throw soci::soci_error(
          "the file system has no shared memory, which the store needs; name a file on a local "
          "disk");
    }
    *session << "PRAGMA synchronous=FULL";
    *session << "PRAGMA foreign_keys=ON";
    return session;
  }

  int SocketOf(soci::session& /*session*/) const override { return -1; }

  std::string BeginToWrite(double /*statement_seconds*/) const override {
    return "BEGIN IMMEDIATE";
  }
  std::string BeginToRead(double /*statement_seconds*/) const override { return "BEGIN"; }
  std::string BeginToMigrate() const override { return "BEGIN IMMEDIATE"; }

  std::string_view now() const override { return "((julianday('now') - 2440587.5) * 86400.0)"; }
  std::string_view lock_or_skip() const override { return ""; }
  std::string_view tables() const override {
    return "SELECT name FROM sqlite_master WHERE type = 'table'";
  }

  std::string BeginToNotify() const override { return BeginToRead(0); }
  void Notify(soci::session& /*sql*/, const std::vector<JobMarks>& /*marks*/,
              const std::string& /*server_id*/) const override {}
  std::unique_ptr<Watcher> Watch(const std::string& /*server_id*/,
                                 std::function<void(std::vector<std::string>)> /*woken*/,
                                 std::function<void()> /*look*/) const override {
    return nullptr;
  }

  Fault FaultOf(const std::exception& exception) const override {
    const auto* const error = dynamic_cast<const soci::sqlite3_soci_error*>(&exception);
    const std::string detail = error == nullptr ? exception.what() : error->get_error_message();
    const int code = error == nullptr ? CodeOfText(detail) : error->result();
    const int kind = code & 0xFF;
    const bool is_refused =
        kind == SQLITE_CONSTRAINT || kind == SQLITE_TOOBIG || kind == SQLITE_MISMATCH;
    return {
        is_refused ? FaultKind::kRefused : FaultKind::kFailed,
        {is_refused ? ErrorCode::kConflict : ErrorCode::kIo, SqliteSentence(file_, code, detail)}};
  }

 private:
  const std::string file_;
  const FileDescriptor lock_;  // Of FILE.lock; given back by the kernel, however we end.
};

// A file that another program made must stay as it is, without even a lock beside
// it. What cannot be read at all is left to Connect(), which says why.
Result<void> CheckNotAStranger(const Sqlite& backend) {
  struct stat status = {};
  if (::stat(backend.name().c_str(), &status) != 0 || status.st_size == 0) return {};
  try {
    soci::session session(soci::sqlite3, fmt::format("dbname=\"{}\" readonly=true timeout={}",
                                                     backend.name(), kBusySeconds));
    if (auto own = CheckIsStore(session, backend); !own) return tl::unexpected(own.error());
    return {};
  } catch (const soci::sqlite3_soci_error& error) {
    if ((error.result() & 0xFF) == SQLITE_NOTADB) {
      return tl::unexpected(backend.FaultOf(error).error);
    }
    return {};
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

Result<std::shared_ptr<const Backend>> OpenSqlite(const std::string& file) {
  if (file.empty() || file.find_first_of(std::string_view("\"\0", 2)) != std::string::npos) {
    return InvalidInput("the store's file has no name, or one with a quote; write sqlite:FILE");
  }
  if (auto own = CheckNotAStranger(Sqlite(file, FileDescriptor())); !own) {
    return tl::unexpected(own.error());
  }
  Result<FileDescriptor> lock = TakeLock(file);
  if (!lock) return tl::unexpected(lock.error());
  return std::make_shared<const Sqlite>(file, *std::move(lock));
}

}  // namespace perseus::store
