// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/unix_socket.h"
#include "http/client.h"
#include "http/server.h"
#include "http/support.h"
#include "support/mentions.h"

// Clients that want more than their share, by malice or mistake.
namespace perseus::http {
namespace {

using ::testing::HasSubstr;

constexpr char kGet[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

ServerOptions Impatient() {
  ServerOptions options;
  options.idle_seconds = 0.2;
  options.header_seconds = 0.2;
  options.body_seconds = 0.2;
  options.write_seconds = 0.2;
  options.min_write_bytes_per_second = 1 << 30;
  return options;
}

TEST(Limits, IdleConnectionsAreClosed) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, Impatient());
  RawClient fresh(server->port());
  RawClient used(server->port());
  EXPECT_EQ(StatusOf(used.Send(kGet).ReadResponse()), 200);
  EXPECT_EQ(used.ReadToEnd(), "");
  EXPECT_EQ(fresh.ReadToEnd(), "");
  EXPECT_EQ(server->counters().timed_out, 0u);
}

TEST(Limits, AConnectionThatSaysNothingIsNotIdleButSlow) {
  ServerOptions options;
  options.idle_seconds = 1000;
  options.header_seconds = 0.2;
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, options);
  RawClient silent(server->port());
  RawClient used(server->port());
  EXPECT_EQ(StatusOf(used.Send(kGet).ReadResponse()), 200);
  EXPECT_EQ(silent.ReadToEnd(), "");
  EXPECT_TRUE(silent.IsClosed());
  // One that asked may pause.
  EXPECT_EQ(StatusOf(used.Send(kGet).ReadResponse()), 200);
}

// A byte now and then keeps nothing open.
TEST(Limits, SlowHeadersAndBodiesAreCutOff) {
  const std::unique_ptr<Server> server = StartServer({Post("/", Echo())}, Impatient());
  for (const std::string& begin :
       {std::string("POST / HTTP/1.1\r\nX-A: "),
        std::string("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")}) {
    RawClient client(server->port());
    client.Send(begin);
    for (int i = 0; i < 1000 && client.TrySend("a"); ++i) {
      pollfd readable{client.descriptor(), POLLIN, 0};
      if (::poll(&readable, 1, 30) == 1) break;
    }
    const std::string last = client.ReadResponse();
    EXPECT_EQ(StatusOf(last), 408);
    EXPECT_THAT(last, HasHeader("Connection", "close"));
  }
  EXPECT_EQ(server->counters().timed_out, 2u);
}

TEST(Limits, BodiesAreBoundedByRoute) {
  Route small = Post("/small", Echo());
  small.max_body_bytes = 10;
  ServerOptions options;
  options.max_body_bytes = 1000;
  const std::unique_ptr<Server> server = StartServer({Post("/", Echo()), small}, options);
  const auto status_of = [&](const std::string& path, const std::string& framing,
                             const std::string& body) {
    RawClient client(server->port());
    client.TrySend("POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + framing + "\r\n\r\n");
    client.TrySend(body);
    const std::string response = client.ReadResponse();
    if (StatusOf(response) == 413) {
      EXPECT_TRUE(client.IsClosed());
      EXPECT_EQ(nlohmann::json::parse(BodyOf(response))["error"]["code"], "too_large");
    }
    return StatusOf(response);
  };
  EXPECT_EQ(status_of("/small", "Content-Length: 10", "0123456789"), 200);
  EXPECT_EQ(status_of("/small", "Content-Length: 11", "0123456789a"), 413);
  EXPECT_EQ(status_of("/", "Content-Length: 11", "0123456789a"), 200);
  EXPECT_EQ(status_of("/small", "Transfer-Encoding: chunked", "b\r\n0123456789a\r\n0\r\n\r\n"),
            413);
  // Refused by its announcement, whether or not it comes.
  EXPECT_EQ(status_of("/", "Content-Length: 10000000", ""), 413);
  EXPECT_EQ(status_of("/", "Content-Length: 10000000", std::string(10000000, 'x')), 413);
  EXPECT_EQ(server->counters().body_bytes_now, 0u);
}

TEST(Limits, HeadsAreBounded) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())});
  for (const std::string& head : {"X: " + std::string(17000, 'a') + "\r\n", [] {
                                    std::string many;
                                    for (int i = 0; i < 200; ++i)
                                      many += "X-" + std::to_string(i) + ": 1\r\n";
                                    return many;
                                  }()}) {
    RawClient client(server->port());
    client.TrySend("GET / HTTP/1.1\r\nHost: localhost\r\n" + head + "\r\n");
    EXPECT_EQ(StatusOf(client.ReadResponse()), 431);
    EXPECT_TRUE(client.IsClosed());
  }
}

TEST(Limits, AllBodiesTogetherAreBounded) {
  ServerOptions options;
  options.max_bodies_bytes = 300000;
  options.max_body_bytes = 1 << 20;
  const std::unique_ptr<Server> server =
      StartServer({Post("/", Echo()), Get("/", Echo())}, options);
  std::vector<RawClient> clients;
  const std::string half = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n" +
                           std::string(100000, 'x');
  int refused = 0;
  for (int i = 0; i < 8; ++i) clients.emplace_back(server->port()).TrySend(half);
  EXPECT_TRUE(Eventually([&] { return server->counters().status_5xx >= 5; }));
  // Also while the others have not read yet that they are refused.
  EXPECT_TRUE(Eventually([&] { return server->counters().body_bytes_now <= 300000; }));
  for (RawClient& client : clients) {
    client.TrySend(std::string(100000, 'x'));
    refused += StatusOf(client.ReadResponse()) == 503 ? 1 : 0;
  }
  EXPECT_GE(refused, 5);
  EXPECT_LT(refused, 8);
  EXPECT_TRUE(Eventually([&] { return server->counters().body_bytes_now == 0; }));
}

TEST(Limits, ConnectionsBeyondTheLimitAreToldSo) {
  ServerOptions options;
  options.max_connections = 5;
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, options);
  {
    std::vector<RawClient> clients;
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(StatusOf(clients.emplace_back(server->port()).Send(kGet).ReadResponse()), 200);
    }
    RawClient sixth(server->port());
    const std::string response = sixth.Send(kGet).ReadResponse();
    EXPECT_EQ(StatusOf(response), 503);
    EXPECT_THAT(response, Mentions("Retry-After:"));
    EXPECT_TRUE(sixth.IsClosed());
    for (RawClient& client : clients) EXPECT_EQ(StatusOf(client.Send(kGet).ReadResponse()), 200);
    EXPECT_EQ(server->counters().refused_connections, 1u);
    // Beyond those that are told, they are closed.
    std::vector<RawClient> crowd;
    for (int i = 0; i < 100; ++i) crowd.emplace_back(server->port());
    EXPECT_TRUE(Eventually([&] { return server->counters().refused_connections == 101; }));
    EXPECT_LE(server->counters().connections_now, 5u + 64u);
  }
  EXPECT_TRUE(Eventually([&] { return server->counters().connections_now == 0; }));
  RawClient later(server->port());
  EXPECT_EQ(StatusOf(later.Send(kGet).ReadResponse()), 200);
}

TEST(Limits, ClientsThatNeverReadAreDropped) {
  const auto answer = std::make_shared<const std::string>(3 << 20, 'b');
  const std::unique_ptr<Server> server =
      StartServer({Get("/",
                       [&](const auto&, const auto&, const Responder& responder) {
                         Response response;
                         response.body = answer;
                         responder.Send(response);
                       })},
                  Impatient());
  // At most one answer waits for a client, however much it asks for, and all wait for
  // the same bytes.
  std::vector<RawClient> clients;
  for (int i = 0; i < 5; ++i) {
    RawClient& client = clients.emplace_back(server->port(), 4096);
    for (int k = 0; k < 50; ++k) client.TrySend(kGet);
  }
  EXPECT_TRUE(Eventually([&] { return server->counters().timed_out == 5; }));
  EXPECT_TRUE(Eventually([&] { return server->counters().connections_now == 0; }));
  EXPECT_TRUE(Eventually([&] { return answer.use_count() == 1; }));
}

TEST(Limits, ResetsLeaveNothingBehind) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo()), Post("/", Echo())});
  for (int i = 0; i < 200; ++i) {
    RawClient client(server->port());
    switch (i % 4) {
      case 0:
        break;
      case 1:
        client.TrySend("GET / HT");
        break;
      case 2:
        client.TrySend(std::string(kGet) + kGet + kGet);
        break;
      default:
        client.TrySend("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc");
    }
    client.Reset();
  }
  EXPECT_TRUE(Eventually([&] {
    return server->counters().accepted == 200 && server->counters().connections_now == 0;
  }));
  EXPECT_EQ(server->counters().body_bytes_now, 0u);
  RawClient client(server->port());
  EXPECT_EQ(StatusOf(client.Send(kGet).ReadResponse()), 200);
}

TEST(Limits, EventStreamsHaveTheirOwnQueue) {
  // What a listener sends is thrown away.
  Kept<std::shared_ptr<EventStream>> streams;
  const std::unique_ptr<Server> server =
      StartServer({Get("/events", [&](const auto&, const auto&, const Responder& responder) {
        streams.Add(responder.StartEvents());
      })});
  RawClient client(server->port());
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(streams.WaitFor(1));
  for (int i = 0; i < 64; ++i) client.Send(std::string(64 << 10, 'x'));
  const std::shared_ptr<EventStream> stream = streams.Take()[0];
  EXPECT_TRUE(stream->Send("e", "still here"));
  EXPECT_THAT(client.ReadUntil("still here"), HasSubstr("event: e"));
}

// Holds `count` connections to a port that comes through a pipe, until the pipe is closed.
[[noreturn]] void HoldConnections(int count, int from_test, int to_test) {
  int port = 0;
  if (::read(from_test, &port, sizeof(port)) != sizeof(port)) ::_exit(1);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int connected = 0;
  for (int i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) ++connected;
  }
  if (::write(to_test, &connected, sizeof(connected)) != sizeof(connected)) ::_exit(1);
  while (::read(from_test, &port, sizeof(port)) > 0) {
  }
  ::_exit(0);
}

TEST(Limits, TenThousandIdleConnections) {
  constexpr int kIdle = 10000;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  if (limit.rlim_max < kIdle + 500) {
    GTEST_SKIP() << "The limit of open files is " << limit.rlim_max << "; this needs "
                 << kIdle + 500 << " (ulimit -Hn).";
  }
  const rlimit before = limit;
  limit.rlim_cur = std::max<rlim_t>(limit.rlim_cur, kIdle + 500);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::array<int, 2> down{};
  std::array<int, 2> up{};
  ASSERT_EQ(::pipe2(down.data(), O_CLOEXEC) | ::pipe2(up.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();  // Before there are threads.
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(down[1]);
    HoldConnections(kIdle, down[0], up[1]);
  }
  ::close(down[0]);
  ::close(up[1]);
  {
    ServerOptions options;
    options.max_connections = kIdle + 100;
    options.idle_seconds = 1000;
    const std::unique_ptr<Server> server = StartServer({Get("/", Echo())}, options);
    const int port = server->port();
    int connected = 0;
    ASSERT_EQ(::write(down[1], &port, sizeof(port)), static_cast<ssize_t>(sizeof(port)));
    ASSERT_EQ(::read(up[0], &connected, sizeof(connected)),
              static_cast<ssize_t>(sizeof(connected)));
    EXPECT_EQ(connected, kIdle);
    EXPECT_TRUE(Eventually([&] { return server->counters().connections_now >= kIdle; }));
    RawClient client(server->port());
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(StatusOf(client.Send(kGet).ReadResponse()), 200);
    }
    ::close(down[1]);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(Eventually([&] { return server->counters().connections_now == 1; }));
  }
  ::close(up[0]);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace perseus::http

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
  const TemporaryDirectory folder;
  const Certificate certificate = MakeCertificate(folder);
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0"}) {
    ServerOptions options = Listening(address);
    EXPECT_THAT(FaultOf(options), Mentions("--tls-cert", "--tls-key", "--token-file"));
    options.token_file = folder.PutSecret("tokens", kTokens);
    EXPECT_THAT(FaultOf(options), Mentions("--tls-cert", "--tls-key", "127"));
    options.token_file = "";
    options.tls_certificate_file = certificate.certificate_file;
    options.tls_key_file = certificate.key_file;
    EXPECT_THAT(FaultOf(options), Mentions("--token-file"));
  }
  ServerOptions options = Listening("0.0.0.0:0");
  options.token_file = folder.PutSecret("tokens", kTokens);
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
  const TemporaryDirectory folder;
  const std::string path = folder.Path("s");
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
  folder.PutSecret("s", "a file");
  EXPECT_NE(FaultOf(options), "");
}

TEST(Safety, AnOpenUnixSocketNeedsAListOfWhoMayConnect) {
  const TemporaryDirectory folder;
  ServerOptions options = Listening("unix:" + folder.Path("open.sock"));
  options.unix_mode = 0666;
  EXPECT_THAT(FaultOf(options), Mentions("tokens"));
  options.admit_peer = [](int) -> Result<std::shared_ptr<void>> { return nullptr; };
  EXPECT_EQ(FaultOf(options), "");
}

TEST(Safety, WhoMayNotConnectIsToldSoAndTakesNobodysPlace) {
  const TemporaryDirectory folder;
  ServerOptions options = Listening("unix:" + folder.Path("open.sock"));
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
  ASSERT_EQ(::stat((folder.Path("open.sock")).c_str(), &status), 0);
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
    options.token_file = folder_.PutSecret("tokens", kTokens);
    return options;
  }

  TemporaryDirectory folder_;
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
  folder_.PutSecret("tokens", "operate another-another-another bob\n");
  EXPECT_TRUE(server_->Reload());
  EXPECT_EQ(StatusWith("/read", "reader-reader-reader"), 401);
  EXPECT_EQ(StatusWith("/operate", "another-another-another"), 200);
  folder_.PutSecret("tokens", "nonsense\n");
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

  TemporaryDirectory folder_;
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
  EXPECT_FALSE(CallWith(folder_.Path("none"), server->url()));
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
  const std::string old_ca = folder_.PutSecret("old.pem", "");
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
