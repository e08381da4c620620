// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/secret_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "common/file_descriptor.h"

namespace perseus::http {

Result<std::string> ReadSecretFile(const std::string& path, const std::string& what,
                                   std::size_t max_bytes) {
  const auto cannot_read = [&](const std::string& reason) {
    return MakeError(ErrorCode::kIo, fmt::format("{} {} cannot be read: {}.", what, path, reason));
  };
  // Not to hang on a pipe.
  const FileDescriptor file = OpenFile(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return cannot_read(SystemMessage(errno));
  }
  if (!S_ISREG(status.st_mode)) return cannot_read("it is no regular file");
  if ((status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) {
    return InvalidInput(
        fmt::format("{} {} holds secrets, but its mode is {:04o}: others may read or change it; "
                    "run chmod 640 (or 600) on it.",
                    what, path, status.st_mode & 07777U));
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(SystemMessage(errno));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      return InvalidInput(fmt::format("{} {} has more than {} bytes.", what, path, max_bytes));
    }
  }
}

}  // namespace perseus::http
