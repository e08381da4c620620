// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/transport.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <utility>

namespace perseus::http {
namespace {

iovec Vector(std::string_view text) {
  return {const_cast<char*>(text.data()), text.size()};  // sendmsg() does not write to it.
}

class Plain final : public Transport {
 public:
  explicit Plain(FileDescriptor socket) : socket_(std::move(socket)) {}

  IoResult Handshake() override { return {}; }

  IoResult Read(char* buffer, std::size_t size) override {
    ssize_t count = 0;
    do {
      count = ::recv(socket_.get(), buffer, size, 0);
    } while (count < 0 && errno == EINTR);
    if (count == 0) return {IoResult::What::kEnd, 0};
    return Moved(count, IoResult::What::kWantRead);
  }

  IoResult Write(std::string_view first, std::string_view second) override {
    std::array<iovec, 2> pieces = {Vector(first), Vector(second)};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    ssize_t count = 0;
    do {
      count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    } while (count < 0 && errno == EINTR);
    return Moved(count, IoResult::What::kWantWrite);
  }

  void EndWrite() override { ::shutdown(socket_.get(), SHUT_WR); }
  int descriptor() const override { return socket_.get(); }
  std::string failure() const override { return SystemMessage(error_); }

 private:
  IoResult Moved(ssize_t count, IoResult::What would_block) {
    if (count >= 0) return {IoResult::What::kDone, static_cast<std::size_t>(count)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {would_block, 0};
    error_ = errno;
    return {IoResult::What::kBroken, 0};
  }

  FileDescriptor socket_;
  int error_ = 0;
};

}  // namespace

bool HasInput(int socket) {
  pollfd poll = {socket, POLLIN, 0};
  return ::poll(&poll, 1, 0) != 0;
}

bool IsClosedByPeer(int socket) {
  pollfd poll = {socket, POLLRDHUP, 0};
  return ::poll(&poll, 1, 0) == 1;
}

std::unique_ptr<Transport> PlainTransport(FileDescriptor socket) {
  return std::make_unique<Plain>(std::move(socket));
}

}  // namespace perseus::http
