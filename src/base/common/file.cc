// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/file.h"
#include "common/file_descriptor.h"
#include "common/signal_hold.h"

namespace perseus {
namespace {

tl::unexpected<Error> CannotRead(const std::string& path, const std::string& reason) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: cannot read: {}", path, reason));
}

std::string OpenFailure(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "there is no such file; check the path";
    case EACCES:
    case EPERM:
      return "permission denied; make the file readable for this user";
    case ELOOP:
      return "its symbolic links lead in a circle";
    case ENXIO:
      return "it is a socket or a device without a driver; expected a regular file";
    default:
      return SystemMessage(error);
  }
}

// The kind of a path that is no regular file.
std::string KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory; name a file in it";
  if (S_ISFIFO(mode)) return "it is a pipe; save its contents to a file first";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device; expected a regular file";
  return "it is not a regular file";
}

constexpr int kWriterMilliseconds = 2'000;

enum class Pipes { kRefused, kRead };

// Waits until a pipe that was opened without waiting can be read: for as long
// as its writer takes, but for the writer itself only a while. False: nobody
// opened it for writing, or poll(2) failed (then errno is not 0).
bool WaitForPipe(int fd, bool has_writer) {
  pollfd waiting = {.fd = fd, .events = POLLIN, .revents = 0};
  int ready = -1;
  do {
    errno = 0;
    ready = ::poll(&waiting, 1, has_writer ? -1 : kWriterMilliseconds);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

std::string Size(std::size_t bytes) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  if (bytes % kMebibyte == 0) return fmt::format("{} MiB", bytes / kMebibyte);
  return fmt::format("{} bytes", bytes);
}

Result<std::string> Read(const std::string& path, std::size_t max_bytes, Pipes pipes) {
  if (path.empty()) return InvalidInput("the name of the file to read is empty");
  // Without O_NONBLOCK the opening of a pipe would wait for its writer.
  const FileDescriptor file = OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.valid()) return CannotRead(path, OpenFailure(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return CannotRead(path, SystemMessage(errno));
  const bool is_pipe = S_ISFIFO(status.st_mode) && pipes == Pipes::kRead;
  if (!S_ISREG(status.st_mode) && !is_pipe) return CannotRead(path, KindOf(status.st_mode));

  const auto too_large = [&] {
    return InvalidInput(
        fmt::format("{}: is larger than the {} that such a file may have; is it the right file?",
                    path, Size(max_bytes)));
  };
  const auto stated_size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  if (stated_size > max_bytes) return too_large();

  // The stated size is a hint only: the file may grow, and /proc states 0.
  constexpr std::size_t kChunk = std::size_t{64} << 10;
  std::string bytes;
  std::size_t used = 0;
  bool had_writer = !is_pipe;
  while (true) {
    if (used == bytes.size()) {
      bytes.resize(std::min(std::max({used + used / 2, stated_size + 1, kChunk}), max_bytes + 1));
    }
    const ssize_t count = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno == EINTR) continue;
    // Without a writer a pipe ends at once; with one that has nothing to say
    // yet, it would block.
    const bool would_block = count < 0 && errno == EAGAIN && is_pipe;
    if (would_block || (count == 0 && !had_writer)) {
      if (!WaitForPipe(file.get(), would_block)) {
        return CannotRead(path, errno != 0 ? SystemMessage(errno)
                                           : "it is a pipe into which nobody writes; does the "
                                             "program that should start, and without an error?");
      }
      had_writer = true;
      continue;
    }
    had_writer = true;
    if (count < 0) return CannotRead(path, SystemMessage(errno));
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
    if (used > max_bytes) return too_large();
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace

Result<std::string> ReadWholeFile(const std::string& path, std::size_t max_bytes) {
  return Read(path, max_bytes, Pipes::kRefused);
}

Result<std::string> ReadWholeFileOrPipe(const std::string& path, std::size_t max_bytes) {
  return Read(path, max_bytes, Pipes::kRead);
}

}  // namespace perseus

// How a set of files appears whole. All of them are written and flushed into a
// staging folder. Where the target folder is new, the staging folder gets its
// name, in one rename. Where it exists, the staging folder is moved into it
// under the name kCommitName, also in one rename: from then on the new set counts,
// and whoever comes by (the writer itself, or, if it was killed, the next run)
// moves the files from there to their places. Before that rename nothing has
// changed, so that a reader after the next run sees the old set or the new one. Files and folders
// under temporary names (".plan.json.perseus-123-0.new") are locked by their writer. If one is not
// locked, its writer was killed, and the next writer removes it.

namespace perseus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSetStem = ".set";
// In an output directory: the folder that holds a complete set of new files.
constexpr const char* kCommitName = ".perseus-commit";

tl::unexpected<Error> CannotWrite(const std::string& path, const std::string& reason) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: cannot write: {}", path, reason));
}

std::string WriteFailure(int error) {
  switch (error) {
    case ENOENT:
      return "its directory does not exist; make it, or choose another place";
    case ENOTDIR:
      return "a part of its path is a file, not a directory; choose another place";
    case EISDIR:
      return "it is a directory; choose another name, or remove it";
    case EACCES:
    case EPERM:
      return "permission denied; choose a place that this user may write to";
    case EROFS:
      return "the file system is read-only; choose another place";
    case ENOSPC:
    case EDQUOT:
      return "the disk is full; free some space, or choose another place";
    case ENAMETOOLONG:
      return "its name, or a part of its path, is longer than the file system takes; choose a "
             "shorter one";
    case EFBIG:
      return "the file would be larger than this process may write (see ulimit -f)";
    default:
      return SystemMessage(error);
  }
}

constexpr std::string_view kMark = ".perseus-";
constexpr std::string_view kEnd = ".new";

// Whether a name is one that Staged gives for this stem.
bool IsStaged(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(stem.size());
  if (!name.starts_with(kMark) || name.size() <= kMark.size() + kEnd.size()) return false;
  name.remove_prefix(kMark.size());
  name.remove_suffix(kEnd.size());
  return name.find_first_not_of("0123456789-") == std::string_view::npos;
}

// Some file systems know no locks; nothing is swept there.
bool MayBeOurs(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

std::string Join(const std::string& directory, const std::string& name) {
  return (fs::path(directory) / name).string();
}

// The beginning of temporary names for `name`: "." and `name`, shortened if necessary.
std::string StemOf(const std::string& name) {
  constexpr std::size_t kLongestStem = 200;  // Of 255 bytes, nearly everywhere.
  return "." + name.substr(0, kLongestStem);
}

// The names in a folder, sorted; empty if it cannot be read.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Removes a folder of files. Best effort.
void RemoveFolder(const std::string& folder) {
  for (const std::string& name : NamesIn(folder)) {
    ::unlink((fs::path(folder) / name).c_str());
  }
  ::rmdir(folder.c_str());
}

// A file or folder under a temporary name; removed unless it is renamed.
class Staged {
 public:
  // `stem` begins the name: ".plan.json". Errors name `target`, which it is for.
  static Result<Staged> Make(const std::string& folder, const std::string& stem,
                             const std::string& target, bool is_folder);

  Staged(Staged&& other) noexcept
      : name_(std::exchange(other.name_, {})),
        descriptor_(std::move(other.descriptor_)),
        is_folder_(other.is_folder_) {}
  Staged& operator=(Staged&&) = delete;
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  ~Staged();

  const std::string& name() const { return name_; }
  int descriptor() const { return descriptor_.get(); }

  // Returns errno; 0: success.
  int RenameTo(const std::string& target);

 private:
  Staged(std::string name, FileDescriptor descriptor, bool is_folder)
      : name_(std::move(name)), descriptor_(std::move(descriptor)), is_folder_(is_folder) {}

  std::string name_;  // Empty once renamed.
  FileDescriptor descriptor_;
  bool is_folder_ = false;
};

Result<Staged> Staged::Make(const std::string& folder, const std::string& stem,
                            const std::string& target, bool is_folder) {
  constexpr int kAttempts = 1000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    // Other runs may write here too; creating it tells whose a name is.
    const std::string name =
        (fs::path(folder) / fmt::format("{}{}{}-{}{}", stem, kMark, ::getpid(), attempt, kEnd))
            .string();
    if (is_folder && ::mkdir(name.c_str(), 0777) != 0) {
      if (errno != EEXIST) return CannotWrite(target, WriteFailure(errno));
      continue;
    }
    FileDescriptor descriptor = is_folder ? OpenFile(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
                                          : OpenFile(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    const int error = errno;
    if (!descriptor.valid()) {
      if (is_folder ? error != ENOENT : error != EEXIST) {
        if (is_folder) ::rmdir(name.c_str());
        return CannotWrite(target, WriteFailure(error));
      }
      continue;
    }
    if (MayBeOurs(descriptor.get()) && LeadsTo(name, descriptor.get())) {
      return Staged(name, std::move(descriptor), is_folder);
    }
  }
  return CannotWrite(target, "too many temporary files beside it");
}

Staged::~Staged() {
  if (name_.empty()) return;
  if (is_folder_) {
    RemoveFolder(name_);
  } else {
    ::unlink(name_.c_str());
  }
}

int Staged::RenameTo(const std::string& target) {
  if (std::rename(name_.c_str(), target.c_str()) != 0) return errno;
  name_.clear();
  return 0;
}

// Removes files of killed writers in `folder` whose names begin with `stem`.
void SweepStaged(const std::string& folder, const std::string& stem) {
  for (const std::string& name : NamesIn(folder)) {
    if (!IsStaged(name, stem)) continue;
    const std::string path = (fs::path(folder) / name).string();
    const FileDescriptor left = OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!left.valid() || ::flock(left.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // Its writer may have renamed it and let go of it, and the name may by now be another's.
    struct stat status {};
    if (!LeadsTo(path, left.get()) || ::fstat(left.get(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      RemoveFolder(path);
    } else if (S_ISREG(status.st_mode)) {
      ::unlink(path.c_str());
    }
  }
}

// The folder of a set that counts, opened: a real one, and made by one who may.
// Not valid: there is none.
Result<FileDescriptor> OpenCommit(const std::string& directory) {
  const std::string commit = Join(directory, kCommitName);
  FileDescriptor folder = OpenFile(commit, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!folder.valid()) {
    const int error = errno;
    if (error == ENOENT) return folder;
    const bool is_other = error == ELOOP || error == ENOTDIR;
    return CannotWrite(directory,
                       is_other ? fmt::format("{} in it is not a folder that Perseus "
                                              "made; remove it",
                                              kCommitName)
                                : fmt::format("{} in it: {}", kCommitName, WriteFailure(error)));
  }
  // Trust the owner of the directory too, who may replace its files anyway.
  struct stat inner {};
  struct stat outer {};
  if (::fstat(folder.get(), &inner) != 0 || ::stat(directory.c_str(), &outer) != 0 ||
      (inner.st_uid != ::geteuid() && inner.st_uid != outer.st_uid)) {
    return CannotWrite(directory,
                       fmt::format("{} in it belongs to another user; remove it", kCommitName));
  }
  return folder;
}

constexpr std::string_view kOld = ".perseus-old-";    // The file that was there.
constexpr std::string_view kNone = ".perseus-none-";  // None was there.

// The two directories, and the names of the set's files in them.
class Finisher {
 public:
  Finisher(int commit, int directory, const std::vector<std::string>& names)
      : commit_(commit), directory_(directory) {
    for (const std::string& name : names) {
      if (!name.starts_with(kOld) && !name.starts_with(kNone)) names_.push_back(name);
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  void KeepOld() const {
    for (const std::string& name : names_) {
      const std::string old = std::string(kOld) + name;
      if (::linkat(directory_, name.c_str(), commit_, old.c_str(), 0) == 0 || errno != ENOENT) {
        continue;
      }
      const std::string none = std::string(kNone) + name;
      const FileDescriptor mark(
          ::openat(commit_, none.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
  }

  bool Move(const std::string& name) const {
    return ::renameat(commit_, name.c_str(), directory_, name.c_str()) == 0;
  }

  // False: not everything could be taken back.
  bool TakeBack(const std::vector<std::string>& moved) const {
    const auto is_kept = [this](const std::string& name) {
      return Has(std::string(kOld) + name) || Has(std::string(kNone) + name);
    };
    if (!std::all_of(moved.begin(), moved.end(), is_kept)) return false;
    for (const std::string& name : moved) {
      const std::string old = std::string(kOld) + name;
      if (!Has(old)) {
        if (::renameat(directory_, name.c_str(), commit_, name.c_str()) != 0) return false;
        continue;
      }
      // The new file goes back to the folder by a second name, and the old one
      // replaces it: at no time is there none.
      if (::linkat(directory_, name.c_str(), commit_, name.c_str(), 0) != 0 && errno != EEXIST) {
        return false;
      }
      if (::renameat(commit_, old.c_str(), directory_, name.c_str()) != 0) return false;
    }
    return true;
  }

 private:
  bool Has(const std::string& name) const {
    return ::faccessat(commit_, name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  }

  int commit_;
  int directory_;
  std::vector<std::string> names_;
};

// The files of this set that are at their places by their kept old ones.
std::vector<std::string> MovedBefore(const std::vector<std::string>& names) {
  std::vector<std::string> moved;
  for (const std::string& name : names) {
    for (const std::string_view prefix : {kOld, kNone}) {
      if (!name.starts_with(prefix)) continue;
      std::string target = name.substr(prefix.size());
      if (!std::binary_search(names.begin(), names.end(), target) &&
          std::find(moved.begin(), moved.end(), target) == moved.end()) {
        moved.push_back(std::move(target));
      }
    }
  }
  return moved;
}

// Moves the files of a set that counts to their places; nothing to do where there is none.
// `owned`: the descriptor with which the caller has locked the folder; -1: another writer, perhaps
// a killed one, made it. On an error the folder stays, and the next call tries again.
Result<void> FinishCommit(const std::string& directory, int owned) {
  const Result<FileDescriptor> folder = OpenCommit(directory);
  if (!folder) return tl::unexpected(folder.error());
  if (!folder->valid()) return {};
  // The writer has held the lock since it made the folder. Where the file system knows no locks,
  // there is no waiting.
  while (owned < 0 && ::flock(folder->get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  const FileDescriptor target = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (!target.valid()) return CannotWrite(directory, WriteFailure(errno));
  const std::string path = Join(directory, kCommitName);
  const int commit = owned < 0 ? folder->get() : owned;
  if (!LeadsTo(path, commit)) return {};  // Finished meanwhile.
  const std::vector<std::string> there = NamesIn(path);
  std::vector<std::string> moved = MovedBefore(there);
  const Finisher finisher(commit, target.get(), there);
  finisher.KeepOld();
  for (const std::string& name : finisher.names()) {
    if (finisher.Move(name)) {
      moved.push_back(name);
    } else if (errno != ENOENT) {  // Otherwise another writer has moved it.
      const int error = errno;
      const std::string failed = Join(directory, name);
      if (finisher.TakeBack(moved)) {
        RemoveFolder(path);
        return CannotWrite(failed, WriteFailure(error));
      }
      return CannotWrite(
          failed, fmt::format("{}; other files of the set are new already, the rest is in {}",
                              WriteFailure(error), path));
    }
  }
  RemoveFolder(path);
  return {};
}

// Flushes a directory, so that its renames outlive a power cut. Best effort:
// some file systems refuse it.
void SyncDirectory(const std::string& directory) {
  const FileDescriptor file = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (file.valid()) ::fsync(file.get());
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
  const Result<Staged> tried = Staged::Make(directory, stem, target, /*is_folder=*/true);
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

// Removes or completes the remains of a killed run in an existing folder.
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
  Result<Staged> staged = Staged::Make(directory, kSetStem, directory, /*is_folder=*/true);
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
  Result<Staged> staged = Staged::Make(parent, stem, directory.string(), /*is_folder=*/true);
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
  Result<Staged> staged = Staged::Make(folder, stem, path, /*is_folder=*/false);
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
