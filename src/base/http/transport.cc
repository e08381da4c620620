// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/transport.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/file_descriptor.h"

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

SteadyClock::duration ToDuration(double seconds) {
  return std::chrono::duration_cast<SteadyClock::duration>(
      std::chrono::duration<double>(seconds > 0 ? std::min(seconds, 1e6) : 0));
}

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

Result<std::string> ReadSecretFile(const std::string& path, const std::string& what,
                                   std::size_t max_bytes) {
  const auto cannot_read = [&](const std::string& reason) {
    return MakeError(ErrorCode::kIo, fmt::format("{} {} cannot be read: {}.", what, path, reason));
  };
  // Not to hang on a pipe.
  const FileDescriptor file = OpenFile(path, O_RDONLY | O_NONBLOCK);
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) {
    return cannot_read(SystemMessage(errno));
  }
  if (!S_ISREG(status.st_mode)) return cannot_read("it is no regular file");
  if ((status.st_mode & (S_IROTH | S_IWOTH | S_IWGRP)) != 0) {
    return InvalidInput(
        fmt::format("{} {} holds secrets, but its mode is {:04o}: others may read or change it; "
                    "run chmod 640 (or 600) on it.",
                    what, path, status.st_mode & 07777U));
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t count = ::read(file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(SystemMessage(errno));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    if (text.size() > max_bytes) {
      return InvalidInput(fmt::format("{} {} has more than {} bytes.", what, path, max_bytes));
    }
  }
}

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

constexpr std::size_t kMaxKeyFileBytes = 64 << 10;

// OpenSSL's first complaint: "bad base64 decode".
std::string OpenSslReason() {
  const unsigned long error = ERR_get_error();  // NOLINT(google-runtime-int): OpenSSL's.
  ERR_clear_error();
  const char* reason = ERR_reason_error_string(error);
  if (reason != nullptr) return reason;
  return ERR_SYSTEM_ERROR(error) ? SystemMessage(ERR_GET_REASON(error)) : "no reason is given";
}

Result<std::shared_ptr<SSL_CTX>> NewContext(const SSL_METHOD* method) {
  ERR_clear_error();
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(method), SSL_CTX_free);
  if (!context || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) {
    return MakeError(ErrorCode::kIo, fmt::format("OpenSSL cannot be set up: {}.", OpenSslReason()));
  }
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // Sessions are resumed by tickets, which the server need not remember.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  return context;
}

// "http/1.1" out of what a client offers (RFC 7301).
int SelectProtocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_size,
                   const unsigned char* offered, unsigned offered_size, void* /*unused*/) {
  static constexpr std::string_view kHttp = "\x08http/1.1";
  unsigned char* found = nullptr;
  const int outcome = SSL_select_next_proto(
      &found, chosen_size, reinterpret_cast<const unsigned char*>(kHttp.data()),
      static_cast<unsigned>(kHttp.size()), offered, offered_size);
  *chosen = found;
  return outcome == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

Result<void> UseCertificate(SSL_CTX* context, const std::string& path) {
  if (SSL_CTX_use_certificate_chain_file(context, path.c_str()) != 1) {
    return MakeError(
        ErrorCode::kIo,
        fmt::format("The TLS certificate {} cannot be read as PEM: {}.", path, OpenSslReason()));
  }
  const X509* certificate = SSL_CTX_get0_certificate(context);
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return InvalidInput(fmt::format(
        "The TLS certificate {} has expired; clients would refuse it. Renew it.", path));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return InvalidInput(fmt::format(
        "The TLS certificate {} is not valid yet; check it, and this machine's clock.", path));
  }
  return {};
}

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

PrivateKey ParseKey(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  // Without this function OpenSSL asks for a passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  return {PEM_read_bio_PrivateKey(memory.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free};
}

Result<void> UseKey(SSL_CTX* context, const std::string& path, const std::string& certificate) {
  Result<std::string> text = ReadSecretFile(path, "The TLS key", kMaxKeyFileBytes);
  if (!text) return tl::unexpected(text.error());
  std::string& pem = *text;
  const PrivateKey key = ParseKey(pem);
  OPENSSL_cleanse(pem.data(), pem.size());
  if (!key) {
    return InvalidInput(
        fmt::format("The TLS key {} cannot be read: {}. It has to be PEM, without a passphrase.",
                    path, OpenSslReason()));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    ERR_clear_error();
    return InvalidInput(
        fmt::format("The TLS key {} does not belong to the certificate {}.", path, certificate));
  }
  return {};
}

}  // namespace

double TlsContext::expires_at_seconds() const {
  std::tm end = {};
  ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context_.get())), &end);
  return static_cast<double>(timegm(&end));
}

Result<TlsContext> TlsContext::ForServer(const std::string& certificate_file,
                                         const std::string& key_file) {
  Result<std::shared_ptr<SSL_CTX>> context = NewContext(TLS_server_method());
  if (!context) return tl::unexpected(context.error());
  Result<void> done = UseCertificate(context->get(), certificate_file);
  if (done) done = UseKey(context->get(), key_file, certificate_file);
  if (!done) return tl::unexpected(done.error());
  SSL_CTX_set_alpn_select_cb(context->get(), SelectProtocol, nullptr);
  return TlsContext(*std::move(context));
}

Result<TlsContext> TlsContext::ForClient(const std::string& ca_file) {
  Result<std::shared_ptr<SSL_CTX>> context = NewContext(TLS_client_method());
  if (!context) return tl::unexpected(context.error());
  SSL_CTX_set_verify(context->get(), SSL_VERIFY_PEER, nullptr);
  const int loaded = ca_file.empty() ? SSL_CTX_set_default_verify_paths(context->get())
                                     : SSL_CTX_load_verify_file(context->get(), ca_file.c_str());
  if (loaded != 1) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("The CA certificates {} cannot be read as PEM: {}.",
                                 ca_file.empty() ? "of the system" : ca_file, OpenSslReason()));
  }
  ERR_clear_error();
  return TlsContext(*std::move(context));
}

std::unique_ptr<Transport> TlsContext::Accept(FileDescriptor socket) const {
  std::unique_ptr<TlsTransport> transport = TlsTransport::Make(context_.get(), std::move(socket));
  if (transport) SSL_set_accept_state(transport->ssl());
  return transport;
}

std::unique_ptr<Transport> TlsContext::Connect(FileDescriptor socket,
                                               const std::string& host) const {
  std::unique_ptr<TlsTransport> transport = TlsTransport::Make(context_.get(), std::move(socket));
  if (!transport) return nullptr;
  SSL* ssl = transport->ssl();
  X509_VERIFY_PARAM* checks = SSL_get0_param(ssl);
  bool set = true;
  if (X509_VERIFY_PARAM_set1_ip_asc(checks, host.c_str()) != 1) {
    X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    set = X509_VERIFY_PARAM_set1_host(checks, host.data(), host.size()) == 1 &&
          SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  }
  ERR_clear_error();
  if (!set) return nullptr;
  SSL_set_connect_state(ssl);
  return transport;
}

}  // namespace perseus::http
