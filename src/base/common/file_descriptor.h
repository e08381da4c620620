// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_FILE_DESCRIPTOR_H_
#define PERSEUS_COMMON_FILE_DESCRIPTOR_H_

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

namespace perseus {

// Owns an open file. Movable, not thread-safe.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Closes early, to learn of errors. False: see errno.
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_ = -1;
};

// open(2), repeated if a signal interrupts it.
inline FileDescriptor OpenFile(const std::string& path, int flags, int mode = 0) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

// Whether `path` still leads to the open file. Another process may have removed or renamed it
// before it was locked.
inline bool LeadsTo(const std::string& path, int descriptor) {
  struct stat by_path {};
  struct stat by_descriptor {};
  return ::lstat(path.c_str(), &by_path) == 0 && ::fstat(descriptor, &by_descriptor) == 0 &&
         by_path.st_ino == by_descriptor.st_ino && by_path.st_dev == by_descriptor.st_dev;
}

// "Permission denied"; thread-safe, unlike strerror.
inline std::string SystemMessage(int error) { return std::generic_category().message(error); }

}  // namespace perseus

#endif  // PERSEUS_COMMON_FILE_DESCRIPTOR_H_
