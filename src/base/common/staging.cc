// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/staging.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace perseus {
namespace {

namespace fs = std::filesystem;

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

}  // namespace

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

std::string StemOf(const std::string& name) {
  constexpr std::size_t kLongestStem = 200;  // Of 255 bytes, nearly everywhere.
  return "." + name.substr(0, kLongestStem);
}

Result<Staged> Staged::MakeFile(const std::string& folder, const std::string& stem,
                                const std::string& target) {
  return Make(folder, stem, target, /*is_folder=*/false);
}

Result<Staged> Staged::MakeFolder(const std::string& folder, const std::string& stem,
                                  const std::string& target) {
  return Make(folder, stem, target, /*is_folder=*/true);
}

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
    if (MayBeOurs(descriptor.get()) && IsStillThere(name, descriptor.get())) {
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

bool IsStillThere(const std::string& name, int descriptor) {
  struct stat by_name {};
  struct stat by_descriptor {};
  return ::lstat(name.c_str(), &by_name) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_name.st_ino == by_descriptor.st_ino && by_name.st_dev == by_descriptor.st_dev;
}

void SweepStaged(const std::string& folder, const std::string& stem) {
  for (const std::string& name : NamesIn(folder)) {
    if (!IsStaged(name, stem)) continue;
    const std::string path = (fs::path(folder) / name).string();
    const FileDescriptor left = OpenFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!left.valid() || ::flock(left.get(), LOCK_EX | LOCK_NB) != 0) continue;
    // Its writer may have renamed it and let go of it, and the name may by now be another's.
    struct stat status {};
    if (!IsStillThere(path, left.get()) || ::fstat(left.get(), &status) != 0) continue;
    if (S_ISDIR(status.st_mode)) {
      RemoveFolder(path);
    } else if (S_ISREG(status.st_mode)) {
      ::unlink(path.c_str());
    }
  }
}

void RemoveFolder(const std::string& folder) {
  for (const std::string& name : NamesIn(folder)) {
    ::unlink((fs::path(folder) / name).c_str());
  }
  ::rmdir(folder.c_str());
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace perseus
