// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TLS_H_
#define PERSEUS_HTTP_TLS_H_

#include <memory>
#include <string>
#include <utility>

#include "common/file_descriptor.h"
#include "http/transport.h"
#include "perseus/result.h"

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

#endif  // PERSEUS_HTTP_TLS_H_
