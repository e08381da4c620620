// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TLS_TRANSPORT_H_
#define PERSEUS_HTTP_TLS_TRANSPORT_H_

#include <openssl/ssl.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "common/file_descriptor.h"
#include "http/transport.h"

namespace perseus::http {

// A socket with TLS. OpenSSL reads and writes the socket directly, so that data is buffered only
// once.
class TlsTransport final : public Transport {
 public:
  // Null: out of memory.
  static std::unique_ptr<TlsTransport> Make(SSL_CTX* context, FileDescriptor socket);
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;
  ~TlsTransport() override;

  SSL* ssl() const { return ssl_; }

  IoResult Handshake() override;
  IoResult Read(char* buffer, std::size_t size) override;
  IoResult Write(std::string_view first, std::string_view second) override;
  void EndWrite() override;
  int descriptor() const override { return socket_.get(); }
  std::string failure() const override { return failure_; }

 private:
  TlsTransport(SSL* ssl, FileDescriptor socket);
  // Converts the return value `result` of a call of OpenSSL.
  IoResult Outcome(int result, std::size_t bytes);

  FileDescriptor socket_;
  SSL* ssl_;
  bool broken_ = false;
  std::string failure_;
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TLS_TRANSPORT_H_
