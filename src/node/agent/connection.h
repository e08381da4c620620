// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_CONNECTION_H_
#define PERSEUS_AGENT_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/peer.h"
#include "common/file_descriptor.h"

namespace perseus::agent {

// Reads and writes lines on one non-blocking socket. Its memory is limited: it fails if a line is
// longer than kMaxRequestBytes, or if the other side leaves kMaxUnread bytes unread. Not
// thread-safe.
class Connection {
 public:
  static constexpr std::size_t kMaxUnread = std::size_t{1} << 20;

  Connection(FileDescriptor socket, Peer peer)
      : socket_(std::move(socket)), peer_(std::move(peer)) {}

  int descriptor() const { return socket_.get(); }
  const Peer& peer() const { return peer_; }

  // Reads some bytes. False: the other side has closed the connection.
  bool Receive();
  // The next whole line, without its end; valid until the next call.
  std::optional<std::string_view> NextLine();
  bool HasLine() const { return buffer_.find('\n', read_) != std::string::npos; }
  // Whether the received bytes have no line end although they are longer than any request.
  bool IsTooLong() const;

  // Queues a line and sends as much as the socket takes. False: the other side reads too slowly or
  // has disconnected.
  bool Send(std::string_view line);
  bool Flush();
  bool HasUnsent() const { return !unsent_.empty(); }

 private:
  FileDescriptor socket_;
  Peer peer_;
  std::string buffer_;
  std::size_t read_ = 0;  // How many bytes of buffer_ NextLine() has returned.
  std::string unsent_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_CONNECTION_H_
