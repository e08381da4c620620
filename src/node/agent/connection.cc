// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/connection.h"

#include <sys/socket.h>

#include <cerrno>

#include "agent/protocol.h"

namespace perseus::agent {

bool Connection::Receive() {
  constexpr std::size_t kChunk = std::size_t{16} << 10;
  buffer_.erase(0, read_);
  read_ = 0;
  if (IsTooLong() || buffer_.size() > kMaxRequestBytes) return true;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kChunk);
  const ssize_t count = ::recv(socket_.get(), buffer_.data() + before, kChunk, 0);
  buffer_.resize(before + (count > 0 ? static_cast<std::size_t>(count) : 0));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

std::optional<std::string_view> Connection::NextLine() {
  const std::size_t end = buffer_.find('\n', read_);
  if (end == std::string::npos) return std::nullopt;
  const std::string_view line = std::string_view(buffer_).substr(read_, end - read_);
  read_ = end + 1;
  return line;
}

bool Connection::IsTooLong() const {
  return !HasLine() && buffer_.size() - read_ >= kMaxRequestBytes;
}

bool Connection::Send(std::string_view line) {
  if (unsent_.size() + line.size() > kMaxUnread) return false;
  unsent_ += line;
  return Flush();
}

bool Connection::Flush() {
  std::size_t sent = 0;
  while (sent < unsent_.size()) {
    const ssize_t count =
        ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno != EAGAIN) return false;
    if (count < 0) break;
    sent += static_cast<std::size_t>(count);
  }
  unsent_.erase(0, sent);
  return true;
}

}  // namespace perseus::agent
