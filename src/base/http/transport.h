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
    kDone,       // `bytes` were moved, at least one.
    kWantRead,   // Nothing now: try again once the socket can be read...
    kWantWrite,  // ...or written.
    kEnd,        // The other side closed in order.
    kBroken,     // See failure().
  };
  What what = What::kDone;
  std::size_t bytes = 0;
};

// A connected socket that never blocks, plain or under TLS. It keeps no buffers of its
// own, so that a connection that waits costs little. Raises no SIGPIPE. Not thread-safe.
class Transport {
 public:
  virtual ~Transport() = default;
  // kDone (with 0 bytes) once data can be moved.
  virtual IoResult Handshake() = 0;
  virtual IoResult Read(char* buffer, std::size_t size) = 0;
  // As much of `first`, then of `second`, as is taken now. Call it again with what is left.
  virtual IoResult Write(std::string_view first, std::string_view second) = 0;
  // Tells the other side that nothing more comes; it is not waited for.
  virtual void EndWrite() = 0;
  virtual int descriptor() const = 0;
  // Why it is broken: "Connection reset by peer".
  virtual std::string failure() const = 0;
};

// Whether the socket can be read (or accepted from) now.
bool HasInput(int socket);
// Whether the other side closed its sending side, or all, also behind bytes that nobody read.
bool IsClosedByPeer(int socket);

// `socket` has to be non-blocking, and is owned.
std::unique_ptr<Transport> PlainTransport(FileDescriptor socket);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TRANSPORT_H_
