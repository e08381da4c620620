// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// How a set of files appears whole. All of them are written and flushed into a
// staging folder. Where the target folder is new, the staging folder gets its
// name, in one rename. Where it exists, the staging folder is moved into it
// under the name kCommitName, also in one rename: from then on the new set counts,
// and whoever comes by (the writer itself, or, if it was killed, the next run)
// moves the files from there to their places. Before that rename nothing has
// changed, so that a reader after the next run sees the old set or the new one.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "common/commit_folder.h"
#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/signal_hold.h"
#include "common/staging.h"

namespace perseus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSetStem = ".set";

// Flushes a directory, so that its renames outlive a power cut. Best effort:
// some file systems refuse it.
void SyncDirectory(const std::string& directory) {
  const FileDescriptor file = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (file.valid()) ::fsync(file.get());
}

std::string Join(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

// A path without trailing slashes and ".". ".." stays: behind a symbolic link it
// leads elsewhere than to the part before the link, and callers check what it leads to.
fs::path Normal(const std::string& path) {
  fs::path normal = path;
  while (normal.has_parent_path() && normal != normal.root_path() &&
         (!normal.has_filename() || normal.filename() == ".")) {
    normal = normal.parent_path();
  }
  return normal;
}

std::string ParentOf(const fs::path& path) {
  const std::string parent = path.parent_path().string();
  return parent.empty() ? "." : parent;
}

tl::unexpected<Error> Interrupted(const std::string& path) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: interrupted; nothing was written", path));
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

// Whether `target` is somebody else's in a directory where only owners may
// replace files, as in /tmp.
bool IsHeldByItsOwner(const std::string& target) {
  struct stat file {};
  struct stat folder {};
  const uid_t self = ::geteuid();
  return self != 0 && ::lstat(target.c_str(), &file) == 0 &&
         ::stat(ParentOf(target).c_str(), &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 &&
         file.st_uid != self && folder.st_uid != self;
}

// A file can be put at `target`: nothing else is there.
Result<void> CheckTarget(const std::string& target) {
  if (IsHeldByItsOwner(target)) {
    return CannotWrite(target,
                       "it belongs to another user, and in its directory only owners may replace "
                       "files; choose another place");
  }
  struct stat status {};
  if (::stat(target.c_str(), &status) != 0) {
    if (errno == ENAMETOOLONG) return CannotWrite(target, WriteFailure(ENAMETOOLONG));
    return {};
  }
  if (S_ISREG(status.st_mode)) return {};
  return CannotWrite(target, S_ISDIR(status.st_mode)
                                 ? "it is a directory; choose another name, or remove it"
                                 : "it exists and is not a regular file; choose another name");
}

Result<void> CheckTargets(const std::string& directory, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (auto good = CheckTarget(Join(directory, name)); !good) return good;
  }
  return {};
}

// errno of the first reason why nothing can be made in `directory`; 0: none.
int NoEntryReason(const std::string& directory) {
  return ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

// Makes a folder and removes it: /proc and the like grant root all rights and still refuse.
Result<void> TryToMakeFolder(const std::string& directory, const std::string& stem,
                             const std::string& target) {
  const SignalHold hold;
  const Result<Staged> tried = Staged::MakeFolder(directory, stem, target);
  if (!tried) return tl::unexpected(tried.error());
  return {};
}

tl::unexpected<Error> CannotMake(const std::string& directory, const std::string& reason) {
  return MakeError(ErrorCode::kIo,
                   fmt::format("{}: cannot make the directory: {}", directory, reason));
}

bool Exists(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

bool IsDirectory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

// Whether a ".." comes after a part that is no directory. To make that part would
// let the path lead to a place that nobody has checked.
bool LeadsBackFromNothing(const fs::path& path) {
  bool is_missing = false;
  fs::path prefix;
  for (const fs::path& part : path) {
    prefix /= part;
    is_missing = is_missing || !Exists(prefix);
    if (is_missing && part == "..") return true;
  }
  return false;
}

// A directory can be at `normal`, or made there. Errors name `directory`.
Result<void> CheckDirectory(const std::string& directory, const fs::path& normal) {
  if (IsDirectory(normal)) return {};
  if (LeadsBackFromNothing(normal)) {
    return CannotMake(directory, "\"..\" follows a part that is not a directory; leave both out");
  }
  if (!Exists(normal)) {
    if (errno == ENAMETOOLONG) return CannotMake(directory, WriteFailure(ENAMETOOLONG));
    return {};
  }
  if (IsDirectory(normal)) return {};  // Another process made it meanwhile.
  std::error_code ignored;
  return CannotMake(
      directory, normal.string() + (fs::exists(normal, ignored) || !fs::is_symlink(normal, ignored)
                                        ? " is a file"
                                        : " is a symbolic link that leads nowhere"));
}

// Makes a directory with its parents, and removes again what it made unless
// it is told to keep them.
class DirectoryMaker {
 public:
  DirectoryMaker() = default;
  DirectoryMaker(const DirectoryMaker&) = delete;
  DirectoryMaker& operator=(const DirectoryMaker&) = delete;
  ~DirectoryMaker() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made) ::rmdir(made->c_str());
  }

  // Errors name `target`, which is to be in it.
  Result<void> Make(const std::string& directory, const std::string& target) {
    fs::path prefix;
    for (const fs::path& part : fs::path(directory)) {
      prefix /= part;
      if (part.empty()) continue;  // After a trailing slash.
      if (::mkdir(prefix.c_str(), 0777) == 0) {
        made_.push_back(prefix.string());
        continue;
      }
      const int error = errno;
      if (IsDirectory(prefix)) continue;
      return CannotMake(target,
                        error == EEXIST ? prefix.string() + " is a file" : WriteFailure(error));
    }
    return {};
  }

  // Each is a new name in its parent, which a power cut must not take back.
  void Keep() {
    for (const std::string& made : made_) SyncDirectory(ParentOf(made));
    made_.clear();
  }

 private:
  std::vector<std::string> made_;
};

// What a killed run has left in an existing folder.
Result<void> Recover(const std::string& directory) {
  const SignalHold hold;
  SweepStaged(directory, kSetStem);
  return FinishCommit(directory, /*owned=*/-1);
}

Result<void> WriteStaged(const Staged& folder, const std::string& directory,
                         const std::vector<OutputFile>& files, const SignalHold& hold) {
  for (const OutputFile& each : files) {
    const std::string target = Join(directory, each.name);
    FileDescriptor file =
        OpenFile(Join(folder.name(), each.name), O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (!file.valid() || !WriteAll(file.get(), each.bytes) || ::fsync(file.get()) != 0 ||
        !file.Close()) {
      return CannotWrite(target, WriteFailure(errno));
    }
    if (hold.IsWaiting()) return Interrupted(target);
  }
  ::fsync(folder.descriptor());
  return {};
}

Result<void> WriteIntoExisting(const std::string& directory, const std::vector<OutputFile>& files) {
  const SignalHold hold;
  if (auto recovered = Recover(directory); !recovered) return recovered;
  for (const OutputFile& file : files) {
    if (auto good = CheckTarget(Join(directory, file.name)); !good) return good;
  }
  Result<Staged> staged = Staged::MakeFolder(directory, kSetStem, directory);
  if (!staged) return tl::unexpected(staged.error());
  if (auto written = WriteStaged(*staged, directory, files, hold); !written) return written;
  // Another writer's set may be on its way; then it goes first.
  constexpr int kAttempts = 1000;
  int error = ENOTEMPTY;
  for (int attempt = 0; attempt < kAttempts && error != 0; ++attempt) {
    error = staged->RenameTo(Join(directory, kCommitName));
    if (error != 0 && error != ENOTEMPTY && error != EEXIST) break;
    const int owned = error == 0 ? staged->descriptor() : -1;
    if (auto finished = FinishCommit(directory, owned); !finished) return finished;
  }
  if (error != 0) return CannotWrite(directory, WriteFailure(error));
  SyncDirectory(directory);
  return {};
}

// False: meanwhile somebody else has made the directory.
Result<bool> WriteAsNew(const fs::path& directory, const std::vector<OutputFile>& files) {
  const SignalHold hold;
  const std::string parent = ParentOf(directory);
  const std::string stem = StemOf(directory.filename().string());
  DirectoryMaker maker;
  if (auto made = maker.Make(parent, directory.string()); !made) {
    return tl::unexpected(made.error());
  }
  SweepStaged(parent, stem);
  Result<Staged> staged = Staged::MakeFolder(parent, stem, directory.string());
  if (!staged) return tl::unexpected(staged.error());
  if (auto written = WriteStaged(*staged, directory.string(), files, hold); !written) {
    return tl::unexpected(written.error());
  }
  const int error = staged->RenameTo(directory.string());
  if (error == ENOTEMPTY || error == EEXIST) return false;
  if (error != 0) return CannotWrite(directory.string(), WriteFailure(error));
  maker.Keep();
  SyncDirectory(parent);
  return true;
}

}  // namespace

Result<void> WriteFileAtomically(const std::string& path, std::string_view bytes) {
  if (path.empty()) return InvalidInput("the name of the file to write is empty");
  if (auto good = CheckTarget(path); !good) return good;
  const SignalHold hold;
  const std::string folder = ParentOf(path);
  const std::string stem = StemOf(fs::path(path).filename().string());
  SweepStaged(folder, stem);
  Result<Staged> staged = Staged::MakeFile(folder, stem, path);
  if (!staged) return tl::unexpected(staged.error());
  if (!WriteAll(staged->descriptor(), bytes) || ::fsync(staged->descriptor()) != 0) {
    return CannotWrite(path, WriteFailure(errno));
  }
  if (hold.IsWaiting()) return Interrupted(path);
  if (const int error = staged->RenameTo(path); error != 0) {
    return CannotWrite(path, WriteFailure(error));
  }
  SyncDirectory(folder);
  return {};
}

Result<void> WriteFilesAtomically(const std::string& directory,
                                  const std::vector<OutputFile>& files) {
  if (directory.empty()) return InvalidInput("the name of the output directory is empty");
  const fs::path normal = Normal(directory);
  if (auto good = CheckDirectory(directory, normal); !good) return good;
  if (!Exists(normal)) {
    const Result<bool> written = WriteAsNew(normal, files);
    if (!written) return tl::unexpected(written.error());
    if (*written) return {};
  }
  if (auto good = CheckDirectory(directory, normal); !good) return good;
  return WriteIntoExisting(normal.string(), files);
}

Result<void> CheckWritable(const std::string& path) {
  if (path.empty()) return InvalidInput("the name of the file to write is empty");
  if (auto good = CheckTarget(path); !good) return good;
  const std::string folder = ParentOf(path);
  if (const int error = NoEntryReason(folder); error != 0) {
    return CannotWrite(path, WriteFailure(error));
  }
  if (!IsDirectory(folder)) return CannotWrite(path, WriteFailure(ENOTDIR));
  return {};
}

Result<void> CheckWritable(const std::string& directory, const std::vector<std::string>& names) {
  if (directory.empty()) return InvalidInput("the name of the output directory is empty");
  fs::path there = Normal(directory);
  if (IsDirectory(there)) {
    if (const int error = NoEntryReason(there.string()); error != 0) {
      return CannotWrite(directory, WriteFailure(error));
    }
    if (auto recovered = Recover(there.string()); !recovered) return recovered;
    if (auto good = CheckTargets(there.string(), names); !good) return good;
    return TryToMakeFolder(there.string(), kSetStem, directory);
  }
  if (auto good = CheckDirectory(directory, there); !good) return good;
  // The nearest part of the path that is there.
  while (!Exists(there) && there.has_parent_path() && there != there.root_path()) {
    there = there.parent_path();
  }
  if (!Exists(there)) there = ".";
  if (auto good = CheckDirectory(directory, there); !good) return good;
  if (const int error = NoEntryReason(there.string()); error != 0) {
    return CannotMake(directory, WriteFailure(error));
  }
  return TryToMakeFolder(there.string(), StemOf(Normal(directory).filename().string()), directory);
}

}  // namespace perseus
