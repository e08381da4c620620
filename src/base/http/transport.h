// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TRANSPORT_H_
#define PERSEUS_HTTP_TRANSPORT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "common/file_descriptor.h"

namespace perseus::http {

struct IoResult {
  enum class What : std::uint8_t {
    kDone,       // `bytes` (at least one) were read or written.
    kWantRead,   // Nothing was possible. Try again when the socket is readable.
    kWantWrite,  // Nothing was possible. Try again when the socket is writable.
    kEnd,        // The other side closed the connection properly.
    kBroken,     // See failure().
  };
  What what = What::kDone;
  std::size_t bytes = 0;
};

// A connected non-blocking socket, with or without TLS. It has no buffers of its own, so that a
// waiting connection needs little memory. Raises no SIGPIPE. Not thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // kDone (with 0 bytes): the handshake is complete.
  virtual IoResult Handshake() = 0;
  virtual IoResult Read(char* buffer, std::size_t size) = 0;
  // Writes as much of `first`, then of `second`, as possible now. Call it again with the rest.
  virtual IoResult Write(std::string_view first, std::string_view second) = 0;
  // Tells the other side that no more data will come. Does not wait.
  virtual void EndWrite() = 0;
  virtual int descriptor() const = 0;
  // Why it is broken: "Connection reset by peer".
  virtual std::string failure() const = 0;
};

// Whether the socket can be read (or accepted from) now.
bool HasInput(int socket);
// Whether the other side has closed its sending side or the connection, even if unread bytes wait.
bool IsClosedByPeer(int socket);

// `socket` must be non-blocking.
std::unique_ptr<Transport> PlainTransport(FileDescriptor socket);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TRANSPORT_H_
