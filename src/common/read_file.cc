// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "common/file_descriptor.h"
#include "perseus/file.h"

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

// What a path is, where it is no regular file.
std::string KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "it is a directory; name a file in it";
  if (S_ISFIFO(mode)) return "it is a pipe; save its contents to a file first";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device; expected a regular file";
  return "it is not a regular file";
}

std::string Size(std::size_t bytes) {
  constexpr std::size_t kMebibyte = std::size_t{1} << 20;
  if (bytes % kMebibyte == 0) return fmt::format("{} MiB", bytes / kMebibyte);
  return fmt::format("{} bytes", bytes);
}

}  // namespace

Result<std::string> ReadWholeFile(const std::string& path, std::size_t max_bytes) {
  if (path.empty()) return InvalidInput("the name of the file to read is empty");
  // Without O_NONBLOCK the opening of a pipe would wait for its writer.
  const FileDescriptor file = OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.valid()) return CannotRead(path, OpenFailure(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return CannotRead(path, SystemMessage(errno));
  if (!S_ISREG(status.st_mode)) return CannotRead(path, KindOf(status.st_mode));

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
  while (true) {
    if (used == bytes.size()) {
      bytes.resize(std::min(std::max({used + used / 2, stated_size + 1, kChunk}), max_bytes + 1));
    }
    const ssize_t count = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return CannotRead(path, SystemMessage(errno));
    if (count == 0) break;
    used += static_cast<std::size_t>(count);
    if (used > max_bytes) return too_large();
  }
  bytes.resize(used);
  return bytes;
}

}  // namespace perseus
