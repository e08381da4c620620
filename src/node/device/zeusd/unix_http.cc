// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "device/zeusd/unix_http.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/file_descriptor.h"
#include "common/nearest_name.h"
#include "common/numbers.h"
#include "common/unix_socket.h"

namespace perseus::device {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 10;

using Clock = std::chrono::steady_clock;

class Exchange {
 public:
  Exchange(const std::string& path, double deadline_seconds)
      : path_(path),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(deadline_seconds))) {}

  Result<HttpAnswer> Run(std::string_view request) {
    Result<void> done = Connect();
    if (!done) return tl::unexpected(done.error());
    done = Send(request);
    if (!done) return tl::unexpected(done.error());
    const Result<std::string> bytes = ReceiveAll();
    if (!bytes) return tl::unexpected(bytes.error());
    return Parse(*bytes);
  }

 private:
  tl::unexpected<Error> Fail(int error) const {
    const bool denied = error == EACCES || error == EPERM;
    return MakeError(denied ? ErrorCode::kDenied : ErrorCode::kIo,
                     fmt::format("cannot reach {}: {}", Shown(path_), SystemMessage(error)));
  }
  tl::unexpected<Error> Refuse(std::string_view why) const {
    return MakeError(ErrorCode::kIo, fmt::format("{} {}", Shown(path_), why));
  }

  Result<void> Connect() {
    auto connected = ConnectUnixSocket(path_, deadline_ - Clock::now(), SocketMode::kNonBlocking);
    if (!connected) return Fail(connected.error());
    socket_ = *std::move(connected);
    return {};
  }

  // Waits for the socket until the deadline.
  Result<void> Wait(short events) {
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
      pollfd poll_socket = {socket_.get(), events, 0};
      const auto patience = std::clamp<std::int64_t>(left.count(), 0, 1'000'000);
      const int ready = poll(&poll_socket, 1, static_cast<int>(patience));
      if (ready > 0) return {};
      if (ready < 0 && errno != EINTR) return Fail(errno);
      if (Clock::now() >= deadline_) return Refuse("does not answer in time");
    }
  }

  Result<void> Send(std::string_view bytes) {
    while (!bytes.empty()) {
      Result<void> ready = Wait(POLLOUT);
      if (!ready) return ready;
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EINTR && errno != EAGAIN) return Fail(errno);
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return {};
  }

  Result<std::string> ReceiveAll() {
    std::string bytes;
    std::array<char, 4096> buffer;
    while (true) {
      const Result<void> ready = Wait(POLLIN);
      if (!ready) return tl::unexpected(ready.error());
      const ssize_t got = recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (got == 0) return bytes;
      if (got < 0 && errno != EINTR && errno != EAGAIN) return Fail(errno);
      if (got > 0) bytes.append(buffer.data(), static_cast<std::size_t>(got));
      if (bytes.size() > kMostBytes) return Refuse("answers more than 64 KiB");
    }
  }

  // "HTTP/1.x NNN ...", headers, an empty line, the body.
  Result<HttpAnswer> Parse(const std::string& bytes) const {
    constexpr std::string_view kEnd = "\r\n\r\n";
    const std::size_t end = bytes.find(kEnd);
    const std::string_view text = bytes;
    constexpr std::size_t kStatusAt = 9;
    if (end == std::string::npos || !text.starts_with("HTTP/1.") || end < kStatusAt + 3) {
      return Refuse("does not answer in HTTP");
    }
    const std::optional<int> status = ParseInteger<int>(text.substr(kStatusAt, 3));
    if (!status || *status < 100) return Refuse("does not answer in HTTP");
    return HttpAnswer{*status, bytes.substr(end + kEnd.size())};
  }

  const std::string& path_;
  Clock::time_point deadline_;
  FileDescriptor socket_;
};

}  // namespace

Result<HttpAnswer> AskUnixHttp(const std::string& socket_path, const std::string& method_and_target,
                               const std::string& bearer, double deadline_seconds) {
  std::string request = fmt::format("{} HTTP/1.0\r\nHost: localhost\r\n", method_and_target);
  if (!bearer.empty()) request += fmt::format("Authorization: Bearer {}\r\n", bearer);
  request += "Content-Length: 0\r\n\r\n";
  return Exchange(socket_path, deadline_seconds).Run(request);
}

}  // namespace perseus::device
