// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "http/server.h"
#include "http/support.h"

// Long polls, clients that go away, and the end of a server.
namespace perseus::http {
namespace {

constexpr char kWait[] = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";

Response NoNews() {
  Response response;
  response.status = 204;
  return response;
}

// Parks every request for `seconds`, keeps its responder, and counts who went away.
class LongPoll {
 public:
  Route route(double seconds) {
    Route route = Get("/wait", [this, seconds](const Request&, const std::vector<std::string>&,
                                               const Responder& responder) {
      responder.AnswerAfter(seconds, NoNews());
      responder.OnGone([this] { ++gone; });
      waiting.Add(responder);
    });
    route.long_poll = true;
    return route;
  }

  // Before the responders: they call back until their server stopped.
  std::atomic<int> gone = 0;
  Kept<Responder> waiting;
};

TEST(LongPolls, AreAnsweredTogetherFromAnotherThread) {
  LongPoll poll;
  const std::unique_ptr<Server> server = StartServer({poll.route(1000)});
  std::vector<RawClient> clients;
  for (int i = 0; i < 40; ++i) clients.emplace_back(server->port()).Send(kWait);
  ASSERT_TRUE(poll.waiting.WaitFor(40));
  EXPECT_TRUE(Eventually([&] { return server->counters().parked_now == 40; }));
  const auto news = std::make_shared<const std::string>(20000, 'n');
  for (const Responder& responder : poll.waiting.Take()) {
    EXPECT_TRUE(responder.alive());
    Response response;
    response.body = news;
    EXPECT_TRUE(responder.Send(response));
  }
  for (RawClient& client : clients) EXPECT_EQ(BodyOf(client.ReadResponse()), *news);
  EXPECT_EQ(server->counters().parked_now, 0u);
  EXPECT_EQ(poll.gone, 0);
}

TEST(LongPolls, EndWithTheirOwnAnswer) {
  LongPoll poll;
  const std::unique_ptr<Server> server = StartServer({poll.route(0.2)});
  RawClient client(server->port());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(StatusOf(client.Send(kWait).ReadResponse()), 204);
  for (const Responder& responder : poll.waiting.Take()) EXPECT_FALSE(responder.Send(NoNews()));
}

TEST(LongPolls, LearnThatTheirClientIsGone) {
  LongPoll poll;
  const std::unique_ptr<Server> server = StartServer({poll.route(1000)});
  {
    RawClient closes(server->port());
    RawClient resets(server->port());
    RawClient half(server->port());
    closes.Send(kWait);
    resets.Send(kWait);
    half.Send(kWait).HalfClose();
    ASSERT_TRUE(poll.waiting.WaitFor(3));
    resets.Reset();
    EXPECT_TRUE(half.IsClosed());
  }
  EXPECT_TRUE(Eventually([&] { return poll.gone == 3; }));
  for (const Responder& responder : poll.waiting.Take()) {
    EXPECT_FALSE(responder.alive());
    std::atomic<bool> called = false;
    responder.OnGone([&] { called = true; });
    EXPECT_TRUE(Eventually([&] { return called.load(); }));
    EXPECT_FALSE(responder.Send(NoNews()));
  }
  EXPECT_EQ(server->counters().parked_now, 0u);
}

TEST(LongPolls, LeaveTheNextRequestsWithTheClient) {
  LongPoll poll;
  const std::unique_ptr<Server> server = StartServer({poll.route(1000), Get("/", Echo())});
  RawClient client(server->port());
  std::string flood = kWait;
  for (int i = 0; i < 20; ++i) flood += "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  client.Send(flood);
  ASSERT_TRUE(poll.waiting.WaitFor(1));
  // Up to the sockets' buffers; the server itself takes one head's size and no more.
  const std::string more(1 << 20, 'x');
  while (client.TrySend(more)) {
  }
  EXPECT_LT(server->counters().bytes_in, 128u << 10);
  poll.waiting.Take()[0].Send(NoNews());
  EXPECT_EQ(StatusOf(client.ReadResponse()), 204);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(StatusOf(client.ReadResponse()), 200);
}

TEST(Stopping, EndsWhatWaitsAndFinishesWhatRuns) {
  LongPoll poll;
  std::atomic<bool> runs = false;
  std::atomic<bool> may_end = false;
  const std::unique_ptr<Server> server = StartServer(
      {poll.route(1000), Get("/slow", [&](const auto&, const auto&, const Responder& responder) {
         runs = true;
         Eventually([&] { return may_end.load(); });
         responder.Send(JsonResponse(200, "done"));
       })});
  RawClient idle(server->port());
  RawClient waits(server->port());
  RawClient slow(server->port());
  waits.Send(kWait);
  slow.Send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(poll.waiting.WaitFor(1));
  ASSERT_TRUE(Eventually([&] { return runs.load(); }));
  std::thread stopping([&] { server->Stop(kPatience); });
  const std::string last = waits.ReadToEnd();
  EXPECT_EQ(StatusOf(last), 204);
  EXPECT_THAT(last, HasHeader("Connection", "close"));
  EXPECT_TRUE(idle.IsClosed());
  may_end = true;
  const std::string done = slow.ReadToEnd();
  EXPECT_EQ(BodyOf(done), "done");
  EXPECT_THAT(done, HasHeader("Connection", "close"));
  stopping.join();
  EXPECT_EQ(server->counters().connections_now, 0u);
  // Responders may outlive their server.
  for (const Responder& responder : poll.waiting.Take()) {
    EXPECT_FALSE(responder.Send(NoNews()));
    EXPECT_EQ(responder.StartEvents(), nullptr);
  }
}

TEST(Stopping, DoesNotWaitForStuckClientsBeyondTheGrace) {
  const auto big = std::make_shared<const std::string>(32 << 20, 'b');
  const std::unique_ptr<Server> server =
      StartServer({Get("/big", [&](const auto&, const auto&, const Responder& responder) {
        Response response;
        response.body = big;
        responder.Send(response);
      })});
  RawClient stuck(server->port(), 4096);
  stuck.Send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(Eventually([&] { return server->counters().bytes_out > 0; }));
  server->Stop(0.1);
  EXPECT_EQ(server->counters().connections_now, 0u);
}

TEST(Stopping, UnderLoadLosesNoAnswerThatItBegan) {
  std::atomic<int> answered = 0;
  for (int round = 0; round < 10; ++round) {
    LongPoll poll;
    std::unique_ptr<Server> server = StartServer({poll.route(0.05), Get("/", Echo())});
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        while (!stop) {
          Client client = ClientOf(*server);
          for (int k = 0; k < 20 && !stop; ++k) {
            const Result<Response> response = client.Call("GET", i % 2 == 0 ? "/" : "/wait");
            if (!response) break;
            EXPECT_THAT(response->status, ::testing::AnyOf(200, 204));
            ++answered;
          }
        }
      });
    }
    const int before = answered;
    Eventually([&] { return answered > before + 10; });
    server->Stop(kPatience);
    stop = true;
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_GT(answered, 100);
}

TEST(Stopping, WithoutServing) {
  ServerOptions options;
  options.listen = "127.0.0.1:0";
  const Result<std::unique_ptr<Server>> server = Server::Open(options, {});
  ASSERT_TRUE(server);
  (*server)->Stop(1);
}

TEST(Workers, RunWhatIsPostedAndTimed) {
  const std::unique_ptr<Server> server = StartServer({});
  std::atomic<int> ran = 0;
  server->Post([&] { ++ran; });
  server->After(0.01, [&] { ++ran; });
  server->After(-1, [&] { ++ran; });
  server->After(1000, [&] { ran += 100; });
  EXPECT_TRUE(Eventually([&] { return ran == 3; }));
  server->Stop(0);
  server->Post([&] { ++ran; });
  server->After(0, [&] { ++ran; });
  EXPECT_EQ(ran, 3);
}

TEST(Workers, DoNotDelayInstantRoutes) {
  std::atomic<bool> may_end = false;
  Route health = Get("/healthz", Echo());
  health.is_instant = true;
  ServerOptions options;
  options.worker_threads = 1;
  const std::unique_ptr<Server> server = StartServer({health}, options);
  server->Post([&] { Eventually([&] { return may_end.load(); }); });
  Client client = ClientOf(*server);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.Call("GET", "/healthz")->status, 200);
  may_end = true;
}

TEST(Stopping, StopsAcceptingFirst) {
  const std::unique_ptr<Server> server = StartServer({Get("/", Echo())});
  Client client = ClientOf(*server);
  ASSERT_TRUE(client.Call("GET", "/"));
  server->StopAccepting();
  EXPECT_TRUE(Eventually([&] {
    Client other = ClientOf(*server);
    return !other.Call("GET", "/");
  }));
  EXPECT_EQ(client.Call("GET", "/")->status, 200);
}

}  // namespace
}  // namespace perseus::http
