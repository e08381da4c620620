// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/tls_transport.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace perseus::http {
namespace {

// OpenSSL's own socket BIO writes with write(2), which raises SIGPIPE.
int SendQuietly(BIO* bio, const char* data, int size) {
  const auto* socket = static_cast<const FileDescriptor*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::send(socket->get(), data, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(count);
}

int ReceiveQuietly(BIO* bio, char* data, int size) {
  const auto* socket = static_cast<const FileDescriptor*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t count = ::recv(socket->get(), data, static_cast<std::size_t>(size), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  if (count == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(count);
}

// NOLINTNEXTLINE(google-runtime-int): OpenSSL's signature.
long ControlSocket(BIO* bio, int command, long /*number*/, void* /*pointer*/) {
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
  return 0;
}

using BioMethod = std::unique_ptr<BIO_METHOD, decltype(&BIO_meth_free)>;

BioMethod MakeSocketMethod() {
  BioMethod method(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "perseus socket"),
                   BIO_meth_free);
  if (method) {
    BIO_meth_set_write(method.get(), SendQuietly);
    BIO_meth_set_read(method.get(), ReceiveQuietly);
    BIO_meth_set_ctrl(method.get(), ControlSocket);
  }
  return method;
}

// Immutable; OpenSSL has a limited number of them.
const BIO_METHOD* SocketMethod() {
  static const BioMethod kMethod = MakeSocketMethod();
  return kMethod.get();
}

}  // namespace

std::unique_ptr<TlsTransport> TlsTransport::Make(SSL_CTX* context, FileDescriptor socket) {
  SSL* ssl = SSL_new(context);
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsTransport> transport(new TlsTransport(ssl, std::move(socket)));
  BIO* bio = SocketMethod() == nullptr ? nullptr : BIO_new(SocketMethod());
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &transport->socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);  // Owns it from here on.
  return transport;
}

TlsTransport::TlsTransport(SSL* ssl, FileDescriptor socket)
    : socket_(std::move(socket)), ssl_(ssl) {}

TlsTransport::~TlsTransport() { SSL_free(ssl_); }

IoResult TlsTransport::Outcome(int result, std::size_t bytes) {
  if (result > 0) return {IoResult::What::kDone, bytes};
  const int system_error = errno;
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {IoResult::What::kWantRead, 0};
    case SSL_ERROR_WANT_WRITE:
      return {IoResult::What::kWantWrite, 0};
    case SSL_ERROR_ZERO_RETURN:
      return {IoResult::What::kEnd, 0};
    case SSL_ERROR_SYSCALL:
      failure_ = system_error == 0 ? "it was closed" : SystemMessage(system_error);
      break;
    default: {
      const auto verdict = SSL_get_verify_result(ssl_);
      const char* reason = ERR_reason_error_string(ERR_peek_error());
      // Of a server that speaks HTTP without TLS.
      const bool is_plain = ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER;
      failure_ = is_plain ? "it does not speak TLS; name it with http:// (or start it with "
                            "--tls-cert and --tls-key)"
                 : verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                 : reason != nullptr    ? reason
                                        : "TLS failed";
    }
  }
  ERR_clear_error();
  broken_ = true;
  return {IoResult::What::kBroken, 0};
}

IoResult TlsTransport::Handshake() {
  ERR_clear_error();
  errno = 0;
  return Outcome(SSL_do_handshake(ssl_), 0);
}

IoResult TlsTransport::Read(char* buffer, std::size_t size) {
  ERR_clear_error();
  errno = 0;
  std::size_t count = 0;
  const int result = SSL_read_ex(ssl_, buffer, size, &count);
  return Outcome(result, count);
}

IoResult TlsTransport::Write(std::string_view first, std::string_view second) {
  const std::string_view piece = first.empty() ? second : first;
  ERR_clear_error();
  errno = 0;
  std::size_t count = 0;
  const int result = SSL_write_ex(ssl_, piece.data(), piece.size(), &count);
  return Outcome(result, count);
}

void TlsTransport::EndWrite() {
  if (!broken_ && SSL_is_init_finished(ssl_) == 1) {
    SSL_shutdown(ssl_);
    ERR_clear_error();
  }
  ::shutdown(socket_.get(), SHUT_WR);
}

}  // namespace perseus::http
