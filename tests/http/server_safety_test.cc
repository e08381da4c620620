// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <ctime>
#include <memory>
#include <vector>

#include "common/unix_socket.h"
#include "http/client.h"
#include "http/server.h"
#include "http/support.h"
#include "support/mentions.h"

// Who may ask what: addresses, tokens, TLS.
namespace perseus::http {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kTokens[] =
    "read reader-reader-reader dash\n"
    "train trainer-trainer-trainer node-1\n"
    "operate operator-operator-op alice\n";

std::string FaultOf(ServerOptions options) {
  const Result<std::unique_ptr<Server>> server = Server::Open(std::move(options), {});
  return server ? "" : server.error().message;
}

ServerOptions Listening(std::string address) {
  ServerOptions options;
  options.listen = std::move(address);
  return options;
}

TEST(Safety, OthersReachTheServerOnlyWithTlsAndTokens) {
  const TemporaryFolder folder;
  const Certificate certificate = MakeCertificate(folder);
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0"}) {
    ServerOptions options = Listening(address);
    EXPECT_THAT(FaultOf(options), Mentions("--tls-cert", "--tls-key", "--token-file"));
    options.token_file = folder.Write("tokens", kTokens);
    EXPECT_THAT(FaultOf(options), Mentions("--tls-cert", "--tls-key", "127"));
    options.token_file = "";
    options.tls_certificate_file = certificate.certificate_file;
    options.tls_key_file = certificate.key_file;
    EXPECT_THAT(FaultOf(options), Mentions("--token-file"));
  }
  ServerOptions options = Listening("0.0.0.0:0");
  options.token_file = folder.Write("tokens", kTokens);
  options.tls_certificate_file = certificate.certificate_file;
  options.tls_key_file = certificate.key_file;
  EXPECT_EQ(FaultOf(options), "");
  for (const char* address : {"127.0.0.1:0", "127.1.2.3:0", "[::1]:0", "localhost:0"}) {
    EXPECT_EQ(FaultOf(Listening(address)), "") << address;
  }
}

TEST(Safety, AddressesAreChecked) {
  for (const char* address : {"", "7787", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "::1:80",
                              "example.org:80", ":80", "*:80", "unix:", "127.0.0.1:-1"}) {
    EXPECT_NE(FaultOf(Listening(address)), "") << address;
  }
  EXPECT_THAT(FaultOf(Listening("unix:" + std::string(200, 'a'))), Mentions("1", "107"));
  const std::unique_ptr<Server> first = StartServer({});
  EXPECT_THAT(FaultOf(Listening("127.0.0.1:" + std::to_string(first->port()))),
              AllOf(Mentions("127.0.0.1:"), Mentions("program")));
  ServerOptions options = Listening("127.0.0.1:0");
  options.worker_threads = 0;
  EXPECT_THAT(FaultOf(options), Mentions("worker_threads", "0", "1", "256"));
}

TEST(Safety, UnixSocketsAreTheOwnersAlone) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/s";
  ServerOptions options = Listening("unix:" + path);
  {
    const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, options);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_EQ(server->url(), "unix:" + path);
    Client client = ClientOf(*server);
    EXPECT_EQ(client.Call("GET", "/")->status, 200);
    EXPECT_THAT(FaultOf(options), Mentions("listens"));
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  // One that a killed server left behind is no obstacle; what is no socket is one.
  {
    ASSERT_EQ(std::system(("python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); "
                           "s.bind(\"" +
                           path + "\")'")
                              .c_str()),
              0);
  }
  EXPECT_EQ(FaultOf(options), "");
  folder.Write("s", "a file");
  EXPECT_NE(FaultOf(options), "");
}

TEST(Safety, AnOpenUnixSocketNeedsAListOfWhoMayConnect) {
  const TemporaryFolder folder;
  ServerOptions options = Listening("unix:" + folder.path() + "/open.sock");
  options.unix_mode = 0666;
  EXPECT_THAT(FaultOf(options), Mentions("tokens"));
  options.admit_peer = [](int) -> Result<std::shared_ptr<void>> { return nullptr; };
  EXPECT_EQ(FaultOf(options), "");
}

TEST(Safety, WhoMayNotConnectIsToldSoAndTakesNobodysPlace) {
  const TemporaryFolder folder;
  ServerOptions options = Listening("unix:" + folder.path() + "/open.sock");
  options.unix_mode = 0666;
  options.max_connections = 2;
  std::atomic<bool> is_denied = true;
  std::atomic<int> held = 0;
  options.admit_peer = [&](int socket) -> Result<std::shared_ptr<void>> {
    const auto peer = PeerOfUnixSocket(socket);
    EXPECT_TRUE(peer && peer->pid == ::getpid());
    if (is_denied) return MakeError(ErrorCode::kDenied, "You are not on the list.");
    if (held >= 1) return MakeError(ErrorCode::kIo, "You have enough connections.");
    ++held;
    return std::shared_ptr<void>(&held,
                                 [](void* count) { --*static_cast<std::atomic<int>*>(count); });
  };
  const auto server = StartServer({Get("/echo", Echo())}, options);
  struct stat status {};
  ASSERT_EQ(::stat((folder.path() + "/open.sock").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666U);

  std::vector<Client> refused;
  for (int i = 0; i < 8; ++i) {
    refused.push_back(ClientOf(*server));
    const auto response = refused.back().Call("GET", "/echo");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 403);
    EXPECT_THAT(*response->body, HasSubstr("You are not on the list."));
  }
  is_denied = false;
  {
    Client welcome = ClientOf(*server);
    const auto response = welcome.Call("GET", "/echo");
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 200);
    EXPECT_EQ(held, 1);
    Client second = ClientOf(*server);
    const auto too_many = second.Call("GET", "/echo");
    ASSERT_TRUE(too_many) << too_many.error().message;
    EXPECT_EQ(too_many->status, 503);
    EXPECT_NE(FindHeader(too_many->headers, "Retry-After"), nullptr);
  }
  // Its place is free once it has gone.
  EXPECT_TRUE(Eventually([&] { return held == 0; }));
  EXPECT_EQ(ClientOf(*server).Call("GET", "/echo")->status, 200);
}

class RolesTest : public ::testing::Test {
 protected:
  int StatusWith(const std::string& path, const std::string& token) {
    ClientOptions options;
    options.url = server_->url();
    options.token = token;
    return Client::Create(options)->Call("GET", path)->status;
  }
  static Route For(Role role, std::string path) {
    Route route =
        Get(std::move(path), [](const Request& request, const auto&, const Responder& responder) {
          responder.Send(
              JsonResponse(200, request.token_name + " " + std::string(RoleName(request.role))));
        });
    route.at_least = role;
    return route;
  }
  ServerOptions WithTokens() {
    ServerOptions options;
    options.token_file = folder_.Write("tokens", kTokens);
    return options;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Server> server_ =
      StartServer({For(Role::kNone, "/none"), For(Role::kRead, "/read"),
                   For(Role::kTrain, "/train"), For(Role::kOperate, "/operate")},
                  WithTokens());
};

TEST_F(RolesTest, EachMayDoWhatThoseBelowMay) {
  const std::vector<std::string> tokens = {"", "reader-reader-reader", "trainer-trainer-trainer",
                                           "operator-operator-op"};
  const std::vector<std::string> paths = {"/none", "/read", "/train", "/operate"};
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    for (std::size_t path = 0; path < paths.size(); ++path) {
      const int expected = path <= token ? 200 : token == 0 ? 401 : 403;
      EXPECT_EQ(StatusWith(paths[path], tokens[token]), expected) << token << paths[path];
    }
  }
  EXPECT_EQ(StatusWith("/none", "nobodys-token-at-all"), 200);
  EXPECT_EQ(StatusWith("/read", "nobodys-token-at-all"), 401);
}

TEST_F(RolesTest, SaysWhatIsMissingButNotTheToken) {
  RawClient client(server_->port());
  const auto ask = [&](const std::string& authorization) {
    client.Send("GET /operate HTTP/1.1\r\nHost: anything\r\n" + authorization + "\r\n");
    return client.ReadResponse();
  };
  EXPECT_THAT(ask(""), AllOf(Mentions("WWW-Authenticate:", "Bearer"), Mentions("operate")));
  EXPECT_EQ(StatusOf(ask("Authorization: Basic b3BlcmF0b3I6eA==\r\n")), 401);
  EXPECT_EQ(StatusOf(ask("Authorization: Bearer\r\n")), 401);
  EXPECT_EQ(StatusOf(ask("Authorization: operator-operator-op\r\n")), 401);
  const std::string wrong = ask("Authorization: Bearer reader-reader-reader\r\n");
  EXPECT_THAT(wrong,
              AllOf(Mentions("operate", "'dash'"), ::testing::Not(HasSubstr("reader-reader"))));
  EXPECT_THAT(ask("authorization: bearer  operator-operator-op\r\n"),
              ::testing::EndsWith("alice operate"));
}

TEST_F(RolesTest, ReloadsTokensOrKeepsThem) {
  folder_.Write("tokens", "operate another-another-another bob\n");
  EXPECT_TRUE(server_->Reload());
  EXPECT_EQ(StatusWith("/read", "reader-reader-reader"), 401);
  EXPECT_EQ(StatusWith("/operate", "another-another-another"), 200);
  folder_.Write("tokens", "nonsense\n");
  EXPECT_FALSE(server_->Reload());
  EXPECT_EQ(StatusWith("/operate", "another-another-another"), 200);
}

// A page in a browser of this machine must not act on a server without tokens.
TEST(Safety, WithoutTokensOnlyLocalNamesAreAnswered) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())});
  RawClient client(server->port());
  const auto status = [&](const std::string& headers) {
    return StatusOf(client.Send("GET / HTTP/1.1\r\n" + headers + "\r\n").ReadResponse());
  };
  for (const char* host :
       {"localhost", "LOCALHOST:80", "127.0.0.1:7787", "127.9.9.9", "[::1]:80"}) {
    EXPECT_EQ(status(std::string("Host: ") + host + "\r\n"), 200) << host;
  }
  for (const char* host : {"evil.example", "127.evil.example", "localhost.evil.example", "[::2]"}) {
    EXPECT_EQ(status(std::string("Host: ") + host + "\r\n"), 403) << host;
  }
  EXPECT_EQ(status("Host: localhost:80\r\nOrigin: http://localhost:80\r\n"), 200);
  EXPECT_EQ(status("Host: localhost:80\r\nOrigin: http://evil.example\r\n"), 403);
  EXPECT_EQ(status("Host: localhost:80\r\nOrigin: null\r\n"), 403);
}

class TlsTest : public ::testing::Test {
 protected:
  ServerOptions WithTls() {
    ServerOptions options;
    options.tls_certificate_file = certificate_.certificate_file;
    options.tls_key_file = certificate_.key_file;
    options.header_seconds = 0.5;
    return options;
  }
  Result<Response> CallWith(const std::string& ca_file, const std::string& url,
                            const std::string& target = "/") {
    ClientOptions options;
    options.url = url;
    options.ca_file = ca_file;
    Result<Client> client = Client::Create(options);
    if (!client) return tl::unexpected(client.error());
    return client->Call("GET", target);
  }

  TemporaryFolder folder_;
  Certificate certificate_ = MakeCertificate(folder_);
};

TEST_F(TlsTest, TalksToClientsThatTrustIt) {
  const auto big = std::make_shared<const std::string>(3000000, 'b');
  const std::unique_ptr<Server> server =
      StartServer({Get("/", Echo()), Post("/", Echo()),
                   Get("/big",
                       [&](const auto&, const auto&, const Responder& responder) {
                         Response response;
                         response.body = big;
                         responder.Send(response);
                       })},
                  WithTls());
  ClientOptions options;
  options.url = server->url();
  EXPECT_THAT(options.url, ::testing::StartsWith("https://127.0.0.1:"));
  options.ca_file = certificate_.certificate_file;
  Client client = *Client::Create(options);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(*client.Call("GET", "/big")->body, *big);
    const std::string body(500000, 'q');
    EXPECT_EQ(*client.Call("POST", "/", body)->body, "POST /\n" + body);
  }
  EXPECT_EQ(server->counters().accepted, 1u);
  EXPECT_TRUE(CallWith(options.ca_file, "https://localhost:" + std::to_string(server->port())));
}

TEST_F(TlsTest, TellsWhenItsCertificateExpires) {
  constexpr double kDay = 86400;
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, WithTls());
  const double expires = server->certificate_expires_at_seconds().value_or(0);
  EXPECT_NEAR(expires, static_cast<double>(std::time(nullptr)) + 30 * kDay, 3600);
  MakeCertificate(folder_, "server", 90);
  EXPECT_TRUE(server->Reload());
  EXPECT_NEAR(server->certificate_expires_at_seconds().value_or(0), expires + 60 * kDay, 3600);
  EXPECT_FALSE(StartServer({Get("/", Echo())})->certificate_expires_at_seconds());
}

TEST_F(TlsTest, ClientsRefuseOtherCertificatesAndNames) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, WithTls());
  const Certificate other = MakeCertificate(folder_, "other");
  EXPECT_THAT(CallWith(other.certificate_file, server->url()).error().message,
              Mentions("self-signed"));
  EXPECT_THAT(CallWith("", server->url()).error().message, Mentions("certificate"));
  // The certificate is for 127.0.0.1 and localhost.
  ServerOptions elsewhere = WithTls();
  elsewhere.listen = "127.0.0.2:0";
  const std::unique_ptr<Server> stranger = StartServer({Get("/", Echo())}, elsewhere);
  EXPECT_THAT(CallWith(certificate_.certificate_file, stranger->url()).error().message,
              Mentions("mismatch"));
  EXPECT_FALSE(CallWith(folder_.path() + "/none", server->url()));
  EXPECT_TRUE(Eventually([&] { return server->counters().failed_handshakes >= 2; }));
}

TEST_F(TlsTest, SurvivesGarbageAndStrangers) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, WithTls());
  std::vector<RawClient> silent;
  for (int i = 0; i < 3; ++i) silent.emplace_back(server->port());
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), std::string(100000, '\x16'),
        std::string("\x16\x03\x01\x40\x00\x01", 6), std::string("\x16\x03\x03\x00\x05hello")}) {
    RawClient client(server->port());
    client.TrySend(text);
    EXPECT_TRUE(client.IsClosed());
  }
  for (RawClient& client : silent) EXPECT_TRUE(client.IsClosed());
  EXPECT_TRUE(CallWith(certificate_.certificate_file, server->url()));
  EXPECT_TRUE(Eventually([&] { return server->counters().connections_now == 0; }));
}

TEST_F(TlsTest, ChecksItsFilesAtTheStart) {
  const auto fault = [&](const std::string& certificate, const std::string& key) {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.tls_certificate_file = certificate;
    options.tls_key_file = key;
    return FaultOf(options);
  };
  const Certificate other = MakeCertificate(folder_, "other");
  const Certificate old = MakeCertificate(folder_, "old", -1);
  EXPECT_THAT(fault(certificate_.certificate_file, ""), Mentions("--tls-key"));
  EXPECT_THAT(fault("", certificate_.key_file), Mentions("--tls-cert"));
  EXPECT_THAT(fault("/none", certificate_.key_file), Mentions("/none"));
  EXPECT_THAT(fault(certificate_.certificate_file, "/none"), Mentions("/none"));
  EXPECT_THAT(fault(certificate_.key_file, certificate_.key_file), Mentions("PEM:"));
  EXPECT_THAT(fault(certificate_.certificate_file, other.key_file), Mentions("belong"));
  EXPECT_THAT(fault(old.certificate_file, old.key_file), Mentions("expired;"));
  ::chmod(certificate_.key_file.c_str(), 0644);
  EXPECT_THAT(fault(certificate_.certificate_file, certificate_.key_file), Mentions("640"));
}

TEST_F(TlsTest, ReloadsItsCertificate) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, WithTls());
  const std::string old_ca = folder_.Write("old.pem", "");
  ASSERT_EQ(std::rename(certificate_.certificate_file.c_str(), old_ca.c_str()), 0);
  EXPECT_FALSE(server->Reload());
  EXPECT_TRUE(CallWith(old_ca, server->url()));
  MakeCertificate(folder_);
  EXPECT_TRUE(server->Reload());
  EXPECT_TRUE(CallWith(certificate_.certificate_file, server->url()));
  EXPECT_FALSE(CallWith(old_ca, server->url()));
}

}  // namespace
}  // namespace perseus::http
