// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>

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
