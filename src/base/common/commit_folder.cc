// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Before any file of a set is moved, each file that it replaces gets a second
// name in the set's folder (a hard link), and each that replaces none an empty
// mark. So a set whose second rename fails can be taken back, also by a later
// run. Whoever is killed in between leaves a folder that the next run moves
// forward: taking back first returns a new file to the folder.

#include "common/commit_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "common/staging.h"

namespace perseus {
namespace {

constexpr std::string_view kOld = ".perseus-old-";    // The file that was there.
constexpr std::string_view kNone = ".perseus-none-";  // None was there.

std::string CommitPath(const std::string& directory) {
  return (std::filesystem::path(directory) / kCommitName).string();
}

// The folder of a set that counts, opened: a real one, and made by one who may.
// Not valid: there is none.
Result<FileDescriptor> OpenCommit(const std::string& directory) {
  const std::string commit = CommitPath(directory);
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
  // Whoever may replace what is in the directory anyway is trusted too.
  struct stat inner {};
  struct stat outer {};
  if (::fstat(folder.get(), &inner) != 0 || ::stat(directory.c_str(), &outer) != 0 ||
      (inner.st_uid != ::geteuid() && inner.st_uid != outer.st_uid)) {
    return CannotWrite(directory,
                       fmt::format("{} in it belongs to another user; remove it", kCommitName));
  }
  return folder;
}

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

}  // namespace

Result<void> FinishCommit(const std::string& directory, int owned) {
  const Result<FileDescriptor> folder = OpenCommit(directory);
  if (!folder) return tl::unexpected(folder.error());
  if (!folder->valid()) return {};
  // The writer has held the lock since it made the folder. Where the file system
  // knows no locks, nobody waits.
  while (owned < 0 && ::flock(folder->get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  const FileDescriptor target = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (!target.valid()) return CannotWrite(directory, WriteFailure(errno));
  const std::string path = CommitPath(directory);
  const int commit = owned < 0 ? folder->get() : owned;
  if (!IsStillThere(path, commit)) return {};  // Finished while we waited.
  const std::vector<std::string> there = NamesIn(path);
  std::vector<std::string> moved = MovedBefore(there);
  const Finisher finisher(commit, target.get(), there);
  finisher.KeepOld();
  for (const std::string& name : finisher.names()) {
    if (finisher.Move(name)) {
      moved.push_back(name);
    } else if (errno != ENOENT) {  // Else somebody else has moved it.
      const int error = errno;
      const std::string failed = (std::filesystem::path(directory) / name).string();
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

}  // namespace perseus
