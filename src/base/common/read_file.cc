// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "common/file.h"
#include "common/file_descriptor.h"

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
