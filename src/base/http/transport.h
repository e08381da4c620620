// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TRANSPORT_H_
#define PERSEUS_HTTP_TRANSPORT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/file_descriptor.h"
#include "perseus/result.h"

namespace perseus::http {

using SteadyClock = std::chrono::steady_clock;
using Deadline = SteadyClock::time_point;

// Beyond 1e6 s nothing is waited for anyway, and what is no number becomes 0.
SteadyClock::duration ToDuration(double seconds);
// `seconds` from now.
inline Deadline DeadlineIn(double seconds) { return SteadyClock::now() + ToDuration(seconds); }

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

// Reads a file that holds a secret. Refuses a file that users other than its owner and group may
// read, or that users other than its owner may write. (Group access is needed for systemd's
// credentials and for files of root:perseus with mode 0640.) Messages begin with `what`: "The token
// file".
Result<std::string> ReadSecretFile(const std::string& path, const std::string& what,
                                   std::size_t max_bytes);

}  // namespace perseus::http

struct ssl_ctx_st;

namespace perseus::http {

// The TLS settings that connections of a server or client share: TLS 1.2 or later, by OpenSSL.
// Immutable, so thread-safe. Connections may outlive it.
class TlsContext {
 public:
  // Loads PEM files: the certificate with its chain, and its key, which only owner and group may
  // read. Refuses a key that does not fit the certificate or needs a passphrase, and a certificate
  // that is not valid today.
  static Result<TlsContext> ForServer(const std::string& certificate_file,
                                      const std::string& key_file);
  // "": the system's certificates.
  static Result<TlsContext> ForClient(const std::string& ca_file);

  // When the server's certificate expires, in seconds since 1970. Only of ForServer().
  double expires_at_seconds() const;
  // Null: out of memory.
  std::unique_ptr<Transport> Accept(FileDescriptor socket) const;
  // The handshake fails unless the server's certificate is for `host`, a name or an IP address.
  std::unique_ptr<Transport> Connect(FileDescriptor socket, const std::string& host) const;

 private:
  explicit TlsContext(std::shared_ptr<ssl_ctx_st> context) : context_(std::move(context)) {}
  std::shared_ptr<ssl_ctx_st> context_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TRANSPORT_H_
