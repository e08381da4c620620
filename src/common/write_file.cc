// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

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
#include <utility>
#include <vector>

#include "common/file_descriptor.h"
#include "perseus/file.h"

namespace perseus {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> CannotWrite(const std::string& path, const std::string& reason) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: cannot write: {}", path, reason));
}

std::string WriteFailure(int error) {
  switch (error) {
    case ENOENT:
      return "its directory does not exist; make it, or choose another place";
    case ENOTDIR:
      return "a part of its path is a file, not a directory; choose another place";
    case EACCES:
    case EPERM:
      return "permission denied; choose a place that this user may write to";
    case EROFS:
      return "the file system is read-only; choose another place";
    case ENOSPC:
    case EDQUOT:
      return "the disk is full; free some space, or choose another place";
    case EFBIG:
      return "the file would be larger than this process may write (see ulimit -f)";
    default:
      return SystemMessage(error);
  }
}

// Flushes a directory, so that its renames outlive a power cut. Best effort:
// some file systems refuse it.
void SyncDirectory(const std::string& directory) {
  const FileDescriptor file = OpenFile(directory, O_RDONLY | O_DIRECTORY);
  if (file.valid()) ::fsync(file.get());
}

std::string DirectoryOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// A complete file under a temporary name; removed unless it is renamed.
class TemporaryFile {
 public:
  static Result<TemporaryFile> Create(const std::string& target, std::string_view bytes);

  TemporaryFile(TemporaryFile&& other) noexcept
      : target_(std::move(other.target_)), name_(std::exchange(other.name_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!name_.empty()) ::unlink(name_.c_str());
  }

  Result<void> Rename() {
    if (std::rename(name_.c_str(), target_.c_str()) != 0) {
      return CannotWrite(target_, WriteFailure(errno));
    }
    name_.clear();
    return {};
  }

 private:
  TemporaryFile(std::string target, std::string name)
      : target_(std::move(target)), name_(std::move(name)) {}

  std::string target_;
  std::string name_;  // Empty once renamed.
};

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

Result<TemporaryFile> TemporaryFile::Create(const std::string& target, std::string_view bytes) {
  if (target.empty()) return InvalidInput("the name of the file to write is empty");
  struct stat status {};
  if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return CannotWrite(target, S_ISDIR(status.st_mode)
                                   ? "it is a directory; choose another name, or remove it"
                                   : "it exists and is not a regular file; choose another name");
  }
  // Other runs may write here too; O_EXCL tells whose a name is.
  constexpr int kAttempts = 1000;
  const fs::path path(target);
  FileDescriptor file;
  std::string name;
  for (int attempt = 0; attempt < kAttempts && !file.valid(); ++attempt) {
    name = (path.parent_path() /
            fmt::format(".{}.{}-{}.tmp", path.filename().string(), ::getpid(), attempt))
               .string();
    file = OpenFile(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (!file.valid() && errno != EEXIST) return CannotWrite(target, WriteFailure(errno));
  }
  if (!file.valid()) return CannotWrite(target, "too many temporary files beside it");
  TemporaryFile temporary(target, name);
  if (!WriteAll(file.get(), bytes) || ::fsync(file.get()) != 0 || !file.Close()) {
    return CannotWrite(target, WriteFailure(errno));
  }
  return temporary;
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

  Result<void> Make(const std::string& directory) {
    fs::path prefix;
    for (const fs::path& part : fs::path(directory)) {
      prefix /= part;
      if (part.empty()) continue;  // After a trailing slash.
      if (::mkdir(prefix.c_str(), 0777) == 0) {
        made_.push_back(prefix.string());
        continue;
      }
      const int error = errno;
      std::error_code ignored;
      if (fs::is_directory(prefix, ignored)) continue;
      return MakeError(ErrorCode::kIo, fmt::format("{}: cannot make the directory: {}", directory,
                                                   error == EEXIST ? prefix.string() + " is a file"
                                                                   : WriteFailure(error)));
    }
    return {};
  }

  void Keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;
};

}  // namespace

Result<void> WriteFileAtomically(const std::string& path, std::string_view bytes) {
  Result<TemporaryFile> temporary = TemporaryFile::Create(path, bytes);
  if (!temporary) return tl::unexpected(temporary.error());
  if (Result<void> renamed = temporary->Rename(); !renamed) return renamed;
  SyncDirectory(DirectoryOf(path));
  return {};
}

Result<void> WriteFilesAtomically(const std::string& directory,
                                  const std::vector<OutputFile>& files) {
  if (directory.empty()) return InvalidInput("the name of the output directory is empty");
  // Declared first: directories are removed after the files in them.
  DirectoryMaker maker;
  if (Result<void> made = maker.Make(directory); !made) return made;
  std::vector<TemporaryFile> temporaries;
  temporaries.reserve(files.size());
  for (const OutputFile& file : files) {
    Result<TemporaryFile> temporary =
        TemporaryFile::Create((fs::path(directory) / file.name).string(), file.bytes);
    if (!temporary) return tl::unexpected(temporary.error());
    temporaries.push_back(*std::move(temporary));
  }
  for (TemporaryFile& temporary : temporaries) {
    if (Result<void> renamed = temporary.Rename(); !renamed) return renamed;
  }
  maker.Keep();
  SyncDirectory(directory);
  return {};
}

}  // namespace perseus
