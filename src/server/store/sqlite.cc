// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <soci/sqlite3/soci-sqlite3.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "common/file_descriptor.h"
#include "common/mutex.h"
#include "server/store/active.h"
#include "server/store/backend.h"

namespace perseus::store {
namespace {

constexpr int kBusySeconds = 5;

// Which file a name leads to; nullopt: none.
struct FileId {
  dev_t device = 0;
  ino_t number = 0;
  friend bool operator==(const FileId&, const FileId&) = default;
};

std::optional<FileId> IdOf(const std::string& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileId{.device = status.st_dev, .number = status.st_ino};
}

// The target of a link, beside which SQLite puts its log.
std::string RealPath(const std::string& file) {
  std::error_code none;
  const std::string real = std::filesystem::weakly_canonical(file, none).string();
  return real.empty() ? file : real;
}

// The process id that the holder of a lock wrote. Nullopt: no process of ours wrote the text.
std::optional<std::string> LockOwner(const FileDescriptor& lock) {
  std::array<char, 32> text = {};
  const ssize_t size = ::pread(lock.get(), text.data(), text.size(), 0);
  std::string owner(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!owner.empty() && (owner.back() == '\n' || owner.back() == ' ')) owner.pop_back();
  const bool is_id = owner.find_first_not_of("0123456789") == std::string::npos;
  return is_id ? std::optional(owner) : std::nullopt;
}

// Opens FILE.lock, which another user may have put there: no link is followed, and nothing is
// written into another program's file.
Result<FileDescriptor> OpenLock(const std::string& path) {
  FileDescriptor lock = OpenFile(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
  struct stat status = {};
  if (!lock.valid() && errno != ELOOP) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: {}; the store needs a folder in which files can be made",
                                 path, SystemMessage(errno)));
  }
  if (!lock.valid() || ::fstat(lock.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_nlink > 1 || !LockOwner(lock)) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: this is a link, or a file of another program, where the "
                                 "store keeps its lock; remove it, or name another store",
                                 path));
  }
  return lock;
}

// Invalid: another process has it.
Result<FileDescriptor> TakeLock(const std::string& file) {
  const std::string path = file + ".lock";
  Result<FileDescriptor> lock = OpenLock(path);
  if (!lock) return lock;
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return FileDescriptor();
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: cannot be locked: {}", path, SystemMessage(errno)));
  }
  const std::string own = fmt::format("{:<16}\n", ::getpid());
  // The id is a courtesy: the lock holds without it.
  [[maybe_unused]] const ssize_t written = ::pwrite(lock->get(), own.data(), own.size(), 0);
  return lock;
}

// Root must not write where another user could have put a link meanwhile.
Result<void> CheckOwners(const std::string& file) {
  if (::geteuid() != 0) return {};
  const auto refuse = [](const std::string& path, std::string_view why) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: {}, and this process runs as root; run it as the user whose "
                                 "store this is, or name a file in a folder of root's",
                                 path, why));
  };
  std::string folder = std::filesystem::path(file).parent_path().string();
  if (folder.empty()) folder = ".";
  struct stat status = {};
  if (::stat(folder.c_str(), &status) == 0) {
    const bool is_sticky = (status.st_mode & S_ISVTX) != 0;
    const bool may_group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != 0;
    const bool may_others = (status.st_mode & S_IWOTH) != 0;
    if (status.st_uid != 0) return refuse(folder, "the folder belongs to another user");
    if (!is_sticky && (may_group || may_others)) {
      return refuse(folder, "other users may write in the folder");
    }
  }
  for (const std::string_view end : {"", "-wal", "-shm", ".lock"}) {
    const std::string path = fmt::format("{}{}", file, end);
    if (::lstat(path.c_str(), &status) == 0 && status.st_uid != 0) {
      return refuse(path, "the file belongs to another user");
    }
  }
  return {};
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
      return fmt::format(
          "{}: the disk refused to read or write; nothing was written ({}); is it full, or gone? "
          "Free some space, or name another file",
          name, detail);
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

// The code for a text of SOCI's own steps, which throw the plain type.
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
  explicit Sqlite(std::string file) : file_(std::move(file)) {
    const std::string real = RealPath(file_);
    watched_ = {real, real + "-wal", file_ + ".lock"};
  }

  const std::string& name() const override { return file_; }
  bool is_remote() const override { return false; }

  Result<std::optional<std::string>> Lock() const override {
    const MutexLock lock(mutex_);
    Result<FileDescriptor> taken = TakeLock(file_);
    if (!taken) return tl::unexpected(taken.error());
    if (taken->valid()) {
      lock_ = *std::move(taken);
      return std::nullopt;
    }
    return Holder();
  }

  std::optional<Error> WhyLost() const override {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (!ids_[i] || IdOf(watched_[i]) == ids_[i]) continue;
      return Error{ErrorCode::kIo,
                   fmt::format("{}: the file was deleted or replaced while the store was open; "
                               "nothing is written any more, as a restart would lose it; restore "
                               "a copy of the store, then start Perseus again",
                               watched_[i])};
    }
    return std::nullopt;
  }

  std::optional<std::uint64_t> FreeBytes() const override {
    std::error_code none;
    const std::string folder = std::filesystem::path(file_).parent_path().string();
    const auto space = std::filesystem::space(folder.empty() ? "." : folder, none);
    return none ? std::nullopt : std::optional<std::uint64_t>(space.available);
  }

  std::unique_ptr<soci::session> Connect() const override {
    // It would make a new, empty file.
    if (const std::optional<Error> lost = WhyLost()) throw soci::soci_error(lost->message);
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
    // Reading makes the log where there is none.
    int tables = 0;
    *session << "SELECT COUNT(*) FROM sqlite_master", soci::into(tables);
    RememberFiles();
    return session;
  }

  int SocketOf(soci::session& /*session*/) const override { return -1; }

  std::string BeginToWrite(double /*statement_seconds*/) const override {
    return "BEGIN IMMEDIATE";
  }
  std::string BeginToRead(double /*statement_seconds*/) const override { return "BEGIN"; }
  std::string BeginToMigrate() const override { return "BEGIN IMMEDIATE"; }

  std::string_view now() const override { return "((julianday('now') - 2440587.5) * 86400.0)"; }
  std::string_view tables() const override {
    return "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*' "
           "ORDER BY rowid";
  }
  std::string_view columns() const override {
    return "SELECT name, LOWER(type) FROM pragma_table_info(:t) ORDER BY cid";
  }

  Fault FaultOf(const std::exception& exception) const override {
    const auto* const error = dynamic_cast<const soci::sqlite3_soci_error*>(&exception);
    std::string detail = error == nullptr ? exception.what() : error->get_error_message();
    // The name of SOCI's own function: "sqlite3_statement_backend::prepare: ".
    if (detail.starts_with("sqlite3_")) detail.erase(0, detail.find(": ") + 2);
    const int code = error == nullptr ? CodeOfText(detail) : error->result();
    const int kind = code & 0xFF;
    const bool is_refused =
        kind == SQLITE_CONSTRAINT || kind == SQLITE_TOOBIG || kind == SQLITE_MISMATCH;
    return {
        is_refused ? FaultKind::kRefused : FaultKind::kFailed,
        {is_refused ? ErrorCode::kConflict : ErrorCode::kIo, SqliteSentence(file_, code, detail)}};
  }

 private:
  // The address of the server that has the lock; else its process.
  std::string Holder() const {
    try {
      soci::session session(soci::sqlite3, fmt::format("dbname=\"{}\" readonly=true timeout={}",
                                                       file_, kBusySeconds));
      if (const auto address = ActiveServer(session, *this); address && !address->empty()) {
        return *address;
      }
    } catch (const std::exception&) {
      // It may be making its tables.
    }
    const FileDescriptor lock = OpenFile(file_ + ".lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    return "process " + (lock.valid() ? LockOwner(lock).value_or("") : "");
  }

  // As the first connection finds them.
  void RememberFiles() const {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < watched_.size(); ++i) {
      if (!ids_[i]) ids_[i] = IdOf(watched_[i]);
    }
  }

  const std::string file_;
  // Files whose loss loses the store: the database, its log and the lock.
  std::array<std::string, 3> watched_;
  mutable Mutex mutex_;
  mutable std::array<std::optional<FileId>, 3> ids_ PERSEUS_GUARDED_BY(mutex_);
  // Of FILE.lock; given back by the kernel, however we end.
  mutable FileDescriptor lock_ PERSEUS_GUARDED_BY(mutex_);
};

// A file that another program made must stay as it is, without even a lock beside it. Connect()
// reports a file that cannot be read at all.
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

// Checks that an existing file can be a database.
Result<void> CheckKind(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  struct stat status = {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &status) != 0) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: the store's folder is not there ({}); make it, or name "
                                 "another file",
                                 file, SystemMessage(errno)));
  }
  if (::stat(file.c_str(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode)) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("{}: this is {}; name a file for the store", file,
                                 S_ISDIR(status.st_mode) ? "a directory" : "no regular file"));
  }
  const FileDescriptor opened = OpenFile(file, O_RDONLY);
  if (status.st_size == 0 || !opened.valid()) return {};
  std::array<char, 16> head = {};  // Of every database of SQLite.
  const ssize_t size = ::pread(opened.get(), head.data(), head.size(), 0);
  if (size < 0 || std::string_view(head.data(), head.size()) ==
                      std::string_view("SQLite format 3\0", head.size())) {
    return {};
  }
  return MakeError(ErrorCode::kIo,
                   SqliteSentence(file, SQLITE_NOTADB, "the file is not a database"));
}

}  // namespace

Result<void> CheckSqliteFile(const std::string& file) {
  if (file.empty() || file.find_first_of(std::string_view("\"\0", 2)) != std::string::npos) {
    return InvalidInput("the store's file has no name, or one with a quote; write sqlite:FILE");
  }
  return CheckKind(file);
}

Result<std::shared_ptr<const Backend>> OpenSqlite(const std::string& file) {
  if (auto good = CheckSqliteFile(file); !good) return tl::unexpected(good.error());
  auto backend = std::make_shared<const Sqlite>(file);
  if (auto own = CheckNotAStranger(*backend); !own) return tl::unexpected(own.error());
  for (const std::string& path : {file, RealPath(file)}) {
    if (auto ours = CheckOwners(path); !ours) return tl::unexpected(ours.error());
  }
  return backend;
}

}  // namespace perseus::store
