// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/support.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "common/numbers.h"

namespace perseus::http {

Certificate MakeCertificate(const TemporaryDirectory& folder, const std::string& name,
                            int valid_days) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * 86400);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_days * 86400L);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("perseus"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), subject);
  X509_EXTENSION* names =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1,DNS:localhost");
  X509_add_ext(certificate.get(), names, -1);
  X509_EXTENSION_free(names);
  X509_sign(certificate.get(), key.get(), EVP_sha256());

  const auto text_of = [](auto write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
    write(memory.get());
    char* data = nullptr;
    const auto size = BIO_get_mem_data(memory.get(), &data);
    return std::string(data, static_cast<std::size_t>(size));
  };
  return {folder.PutSecret(name + ".crt",
                           text_of([&](BIO* out) { PEM_write_bio_X509(out, certificate.get()); })),
          folder.PutSecret(name + ".key", text_of([&](BIO* out) {
                             PEM_write_bio_PrivateKey(out, key.get(), nullptr, nullptr, 0, nullptr,
                                                      nullptr);
                           }))};
}

RawClient::RawClient(int port, int receive_buffer_bytes)
    : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (receive_buffer_bytes > 0) {
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                 sizeof(receive_buffer_bytes));
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

bool RawClient::TrySend(std::string_view bytes) {
  while (!bytes.empty()) {
    pollfd writable{socket_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, 200) != 1) return false;
    const ssize_t count =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

RawClient& RawClient::Send(std::string_view bytes) {
  EXPECT_TRUE(TrySend(bytes));
  return *this;
}

void RawClient::HalfClose() { ::shutdown(socket_.get(), SHUT_WR); }

void RawClient::Reset() {
  const linger now{1, 0};
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket_ = FileDescriptor();
}

bool RawClient::ReadMore() {
  pollfd readable{socket_.get(), POLLIN, 0};
  if (::poll(&readable, 1, static_cast<int>(kPatience * 1000)) != 1) {
    ADD_FAILURE() << "The server said nothing for " << kPatience << " s.";
    return false;
  }
  std::array<char, 4096> buffer{};
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count <= 0) return false;
  unread_.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

std::string RawClient::ReadUntil(std::string_view mark) {
  std::size_t place = 0;
  while ((place = unread_.find(mark)) == std::string::npos) {
    if (!ReadMore()) return std::exchange(unread_, {});
  }
  const std::string text = unread_.substr(0, place + mark.size());
  unread_.erase(0, text.size());
  return text;
}

std::string RawClient::ReadResponse(bool has_body) {
  std::string response = ReadUntil("\r\n\r\n");
  const std::string_view name = "Content-Length: ";
  const std::size_t place = response.find(name);
  if (!has_body || place == std::string::npos) return response;
  const std::string_view rest = std::string_view(response).substr(place + name.size());
  const auto size = ParseInteger<std::size_t>(rest.substr(0, rest.find('\r'))).value_or(0);
  while (unread_.size() < size && ReadMore()) {
  }
  response += unread_.substr(0, size);
  unread_.erase(0, size);
  return response;
}

std::string RawClient::ReadToEnd() {
  while (ReadMore()) {
  }
  return std::exchange(unread_, {});
}

bool RawClient::IsClosed() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
  while (std::chrono::steady_clock::now() < end) {
    if (!ReadMore()) return !::testing::Test::HasFailure();
    unread_.clear();
  }
  return false;
}

int StatusOf(std::string_view response) {
  if (!response.starts_with("HTTP/1.1 ")) return 0;
  return ParseInteger<int>(response.substr(9, 3)).value_or(0);
}

std::string BodyOf(std::string_view response) {
  const std::size_t end = response.find("\r\n\r\n");
  return end == std::string_view::npos ? "" : std::string(response.substr(end + 4));
}

std::unique_ptr<Server> StartServer(std::vector<Route> routes, ServerOptions options) {
  if (options.listen == ServerOptions().listen) options.listen = "127.0.0.1:0";
  Result<std::unique_ptr<Server>> server = Server::Open(std::move(options), std::move(routes));
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    std::abort();
  }
  (*server)->Serve();
  return *std::move(server);
}

Client ClientOf(const Server& server) {
  ClientOptions options;
  options.url = server.url();
  return *Client::Create(options);
}

Route Get(std::string pattern, Handler handle) {
  return {"GET", std::move(pattern), Role::kNone, {}, false, std::move(handle)};
}

Route Post(std::string pattern, Handler handle) {
  return {"POST", std::move(pattern), Role::kNone, {}, false, std::move(handle)};
}

Handler Echo() {
  return [](const Request& request, const std::vector<std::string>& parameters,
            const Responder& responder) {
    std::string text = request.method + " " + request.path;
    for (const std::string& parameter : parameters) text += " {" + parameter + "}";
    for (const auto& [name, value] : request.query) text += " " + name + "=" + value;
    responder.Send(JsonResponse(200, text + "\n" + request.body));
  };
}

bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace perseus::http
