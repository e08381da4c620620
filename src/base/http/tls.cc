// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>
#include <ctime>
#include <string_view>
#include <utility>

#include "http/secret_file.h"
#include "http/tls_transport.h"

namespace perseus::http {
namespace {

constexpr std::size_t kMaxKeyFileBytes = 64 << 10;

// What OpenSSL complained of first: "bad base64 decode".
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
