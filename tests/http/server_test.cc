// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "http/client.h"
#include "http/server_core.h"
#include "http/support.h"
#include "support/mentions.h"

// What a client sees of requests, answers and connections; over real sockets.
namespace perseus::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHost[] = "Host: localhost\r\n";

std::string Ask(std::string_view start, std::string_view headers = "", std::string_view body = "") {
  std::string text = std::string(start) + " HTTP/1.1\r\n" + kHost + std::string(headers);
  return text + "\r\n" + std::string(body);
}

class ServerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Server> server_ = StartServer(
      {Get("/", Echo()), Get("/jobs/{id}", Echo()), Post("/jobs", Echo()),
       Get("/empty",
           [](const auto&, const auto&, const Responder& responder) {
             Response response;
             response.status = 204;
             responder.Send(response);
           }),
       Get("/throws", [](const auto&, const auto&,
                         const Responder&) { throw std::runtime_error("a detail for the log"); }),
       Get("/drops", [](const auto&, const auto&, const Responder&) {}),
       Get("/splits",
           [](const auto&, const auto&, const Responder& responder) {
             Response response = JsonResponse(200, "{}");
             response.headers.emplace_back("X-Name", "a\r\nX-Evil: b");
             responder.Send(response);
           }),
       Get("/twice", [](const auto&, const auto&, const Responder& responder) {
         EXPECT_TRUE(responder.Send(JsonResponse(200, "first")));
         EXPECT_FALSE(responder.Send(JsonResponse(200, "second")));
       })});
};

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  RawClient client(server_->port());
  for (int i = 0; i < 3; ++i) {
    const std::string response = client.Send(Ask("GET /jobs/a%20b?x=1")).ReadResponse();
    EXPECT_EQ(StatusOf(response), 200);
    EXPECT_EQ(BodyOf(response), "GET /jobs/a b {a b} x=1\n");
    EXPECT_THAT(response, Mentions("Date:"));
    EXPECT_THAT(response, HasHeader("X-Content-Type-Options", "nosniff"));
    EXPECT_THAT(response, Not(HasSubstr("Connection: ")));
  }
  EXPECT_EQ(server_->counters().accepted, 1u);
}

TEST_F(ServerTest, AnswersHeadWithoutABody) {
  RawClient client(server_->port());
  const std::string head = client.Send(Ask("HEAD /jobs/x")).ReadResponse(/*has_body=*/false);
  EXPECT_THAT(head, HasHeader("Content-Length", "16"));
  EXPECT_THAT(client.Send(Ask("GET /jobs/x")).ReadResponse(), EndsWith("GET /jobs/x {x}\n"));
}

TEST_F(ServerTest, ErrorsAreJson) {
  const struct {
    const char* start;
    int status;
    const char* code;
  } cases[] = {
      {"GET /none", 404, "not_found"},
      {"GET /jobs/a/", 404, "not_found"},
      {"GET //jobs/a", 404, "not_found"},
      {"GET /JOBS/a", 404, "not_found"},
      {"GET /jobs/%2e%2e", 400, "invalid"},
      {"GET /jobs/../jobs/a", 400, "invalid"},
      {"GET /jobs/..%2f..%2fetc%2fpasswd", 400, "invalid"},
      {"GET /jobs/a%00", 400, "invalid"},
      {"GET /jobs/%ff", 400, "invalid"},
      {"GET /jobs/a?x=1&x=2", 400, "invalid"},
      {"GET /jobs/a?x=%", 400, "invalid"},
      {"PUT /jobs", 405, "method_not_allowed"},
      {"GET /jobs", 405, "method_not_allowed"},
      {"BREW /jobs", 405, "method_not_allowed"},
      {"CONNECT example.org:443", 400, "invalid"},
      {"OPTIONS *", 400, "invalid"},
      {"GET /throws", 500, "internal"},
      {"GET /drops", 500, "internal"},
  };
  RawClient client(server_->port());
  for (const auto& [start, status, code] : cases) {
    const std::string response = client.Send(Ask(start)).ReadResponse();
    EXPECT_EQ(StatusOf(response), status) << start;
    const nlohmann::json body = nlohmann::json::parse(BodyOf(response));
    EXPECT_EQ(body["error"]["code"], code) << start;
    EXPECT_THAT(body["error"]["message"].get<std::string>(), EndsWith(".")) << start;
    EXPECT_THAT(response, Not(HasSubstr("detail"))) << start;
  }
  EXPECT_THAT(client.Send(Ask("PUT /jobs")).ReadResponse(), HasHeader("Allow", "POST"));
  const std::string longest = "GET /" + std::string(5000, 'a');
  EXPECT_EQ(StatusOf(client.Send(Ask(longest)).ReadResponse()), 414);
}

TEST_F(ServerTest, HandlersCannotSplitAnAnswer) {
  RawClient client(server_->port());
  EXPECT_THAT(client.Send(Ask("GET /splits")).ReadResponse(),
              HasSubstr("\r\nX-Name: a  X-Evil: b\r\n"));
  EXPECT_THAT(client.Send(Ask("GET /twice")).ReadResponse(), EndsWith("\r\n\r\nfirst"));
  const std::string empty = client.Send(Ask("GET /empty")).ReadResponse();
  EXPECT_EQ(StatusOf(empty), 204);
  EXPECT_THAT(empty, Not(HasSubstr("\r\nContent-")));
}

TEST_F(ServerTest, ReadsBodiesOfBothFramings) {
  RawClient client(server_->port());
  EXPECT_EQ(BodyOf(client.Send(Ask("POST /jobs", "Content-Length: 5\r\n", "hello")).ReadResponse()),
            "POST /jobs\nhello");
  EXPECT_EQ(BodyOf(client
                       .Send(Ask("POST /jobs", "Transfer-Encoding: chunked\r\n",
                                 "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"))
                       .ReadResponse()),
            "POST /jobs\nhello");
  EXPECT_EQ(BodyOf(client.Send(Ask("POST /jobs", "Content-Length: 0\r\n")).ReadResponse()),
            "POST /jobs\n");
  EXPECT_EQ(BodyOf(client.Send(Ask("POST /jobs")).ReadResponse()), "POST /jobs\n");
  // A byte at a time.
  for (const char c : Ask("POST /jobs", "Content-Length: 2\r\n", "ab")) client.Send({&c, 1});
  EXPECT_EQ(BodyOf(client.ReadResponse()), "POST /jobs\nab");
}

TEST_F(ServerTest, AnswersPipelinedRequestsInOrder) {
  RawClient client(server_->port());
  std::string text;
  for (int i = 0; i < 200; ++i) {
    // Errors are answered by another thread than handlers.
    text += i % 3 == 0 ? Ask("GET /none") : Ask("GET /jobs/" + std::to_string(i));
  }
  client.Send(text);
  for (int i = 0; i < 200; ++i) {
    const std::string response = client.ReadResponse();
    if (i % 3 == 0) {
      EXPECT_EQ(StatusOf(response), 404);
    } else {
      EXPECT_THAT(response, HasSubstr("GET /jobs/" + std::to_string(i) + " "));
    }
  }
}

TEST_F(ServerTest, SaysContinueToThoseThatWaitForIt) {
  RawClient client(server_->port());
  client.Send(Ask("POST /jobs", "Content-Length: 2\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(BodyOf(client.Send("hi").ReadResponse()), "POST /jobs\nhi");
  // Nobody waits who has sent the body already.
  client.Send(Ask("POST /jobs", "Content-Length: 2\r\nExpect: 100-continue\r\n", "hi"));
  EXPECT_EQ(StatusOf(client.ReadResponse()), 200);
  // What would be refused anyway is refused before the body.
  client.Send(Ask("POST /none", "Content-Length: 2\r\nExpect: 100-continue\r\n"));
  EXPECT_EQ(StatusOf(client.ReadResponse()), 404);
  EXPECT_TRUE(client.IsClosed());
  RawClient other(server_->port());
  EXPECT_EQ(StatusOf(other.Send(Ask("POST /jobs", "Expect: more\r\n")).ReadResponse()), 417);
}

TEST_F(ServerTest, ClosesWhenAskedTo) {
  RawClient client(server_->port());
  const std::string all = client.Send(Ask("GET /", "Connection: close\r\n")).ReadToEnd();
  EXPECT_EQ(StatusOf(all), 200);
  EXPECT_THAT(all, HasHeader("Connection", "close"));
}

TEST_F(ServerTest, SpeaksHttp10) {
  RawClient client(server_->port());
  EXPECT_THAT(client.Send("GET / HTTP/1.0\r\n\r\n").ReadToEnd(), HasHeader("Connection", "close"));
  RawClient kept(server_->port());
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(kept.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").ReadResponse(),
                HasHeader("Connection", "keep-alive"));
  }
}

TEST_F(ServerTest, AnswersWhoClosedTheSendingSide) {
  RawClient client(server_->port());
  client.Send(Ask("GET /jobs/1") + Ask("GET /jobs/2")).HalfClose();
  const std::string all = client.ReadToEnd();
  EXPECT_THAT(all, Mentions("GET", "/jobs/1"));
  EXPECT_THAT(all, EndsWith("GET /jobs/2 {2}\n"));
}

TEST_F(ServerTest, ClosesAfterWhatIsNoHttp) {
  for (const char* text : {"\x16\x03\x01\x02\x00\x01\x00\x01", "GARBAGE\r\n\r\n",
                           "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/9.9\r\nHost: a\r\n\r\n"}) {
    RawClient client(server_->port());
    const std::string all = client.Send(text).ReadToEnd();
    EXPECT_THAT(StatusOf(all), ::testing::AnyOf(400, 505)) << text;
    EXPECT_THAT(all, HasHeader("Connection", "close"));
    EXPECT_TRUE(nlohmann::json::parse(BodyOf(all)).contains("error"));
  }
}

TEST_F(ServerTest, AnswersManyAtOnce) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 50; ++i) clients.emplace_back(server_->port());
  for (int round = 0; round < 5; ++round) {
    for (RawClient& client : clients) client.Send(Ask("GET /jobs/1"));
    for (RawClient& client : clients) EXPECT_EQ(StatusOf(client.ReadResponse()), 200);
  }
  EXPECT_TRUE(Eventually([&] { return server_->counters().requests == 250; }));
  EXPECT_EQ(server_->counters().status_2xx, 250u);
}

TEST(ServerLog, SaysWhatWasAnswered) {
  std::mutex mutex;
  std::vector<std::string> log;
  std::vector<std::string> problems;
  ServerOptions options;
  options.on_access = [&](const AccessRecord& record) {
    const std::lock_guard lock(mutex);
    log.push_back(std::string(record.method) + " " + std::string(record.path) + " " +
                  std::string(record.pattern) + " " + std::to_string(record.status) + " " +
                  std::to_string(record.request_bytes));
    EXPECT_GT(record.response_bytes, 20u);
    EXPECT_THAT(std::string(record.peer), ::testing::StartsWith("127.0.0.1:"));
    EXPECT_GE(record.seconds, 0);
  };
  options.on_problem = [&](const std::string& sentence) {
    const std::lock_guard lock(mutex);
    problems.push_back(sentence);
  };
  const std::unique_ptr<Server> server = StartServer(
      {Post("/jobs/{id}", Echo()),
       Get("/throws",
           [](const auto&, const auto&, const Responder&) { throw std::runtime_error("why"); })},
      options);
  RawClient client(server->port());
  client.Send(Ask("POST /jobs/a%20b?secret=1", "Content-Length: 3\r\n", "abc")).ReadResponse();
  client.Send(Ask("GET /none?x")).ReadResponse();
  client.Send(Ask("GET /throws")).ReadResponse();
  EXPECT_TRUE(Eventually([&] {
    const std::lock_guard lock(mutex);
    return log.size() == 3 && problems.size() == 1;
  }));
  EXPECT_THAT(log, ::testing::ElementsAre("POST /jobs/a%20b /jobs/{id} 200 3", "GET /none  404 0",
                                          "GET /throws /throws 500 0"));
  EXPECT_THAT(problems[0], EndsWith("GET /throws threw: why."));
}

}  // namespace
}  // namespace perseus::http

// Server-sent events, from the server's handler to the client's reader.
namespace perseus::http {
namespace {

using StreamPointer = std::shared_ptr<EventStream>;

Route Events(Kept<StreamPointer>* streams) {
  return Get("/events", [streams](const auto&, const auto&, const Responder& responder) {
    if (StreamPointer stream = responder.StartEvents()) streams->Add(stream);
  });
}

TEST(Events, ReachTheirReader) {
  Kept<StreamPointer> streams;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)});
  Client client = ClientOf(*server);
  Result<EventReader> reader = client.OpenEvents("/events", kPatience);
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_TRUE(streams.WaitFor(1));
  EXPECT_EQ(server->counters().streams_now, 1u);
  const StreamPointer stream = streams.Take()[0];
  EXPECT_EQ(reader->Next(0.05)->has_value(), false);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(stream->Send("plan", "{\n" + std::to_string(i), "7"));
  for (int i = 0; i < 1000; ++i) {
    const Result<std::optional<Event>> event = reader->Next(kPatience);
    ASSERT_TRUE(event && *event);
    EXPECT_EQ((*event)->name, "plan");
    EXPECT_EQ((*event)->data, "{\n" + std::to_string(i));
    EXPECT_EQ((*event)->id, "7");
  }
  stream->Close();
  EXPECT_FALSE(stream->Send("plan", "late"));
  EXPECT_THAT(reader->Next(kPatience).error().message, Mentions("ended"));
  EXPECT_TRUE(Eventually([&] { return server->counters().streams_now == 0; }));
}

TEST(Events, KeepQuietStreamsAlive) {
  Kept<StreamPointer> streams;
  ServerOptions options;
  options.heartbeat_seconds = 0.05;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)}, options);
  RawClient client(server->port());
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasHeader("Content-Type", "text/event-stream"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.ReadUntil(":\n\n\r\n"), "3\r\n:\n\n\r\n");
}

TEST(Events, EndInOrderForOldAndNewClients) {
  Kept<StreamPointer> streams;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)});
  for (const std::string version : {"1.0", "1.1"}) {
    RawClient client(server->port());
    client.Send("GET /events HTTP/" + version + "\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(streams.WaitFor(1));
    streams.Take()[0]->Send("", "x");  // And drops it.
    const std::string all = client.ReadToEnd();
    EXPECT_THAT(all, ::testing::EndsWith(version == "1.0" ? "\r\n\r\ndata: x\n\n"
                                                          : "9\r\ndata: x\n\n\r\n0\r\n\r\n"));
  }
}

TEST(Events, DropListenersThatDoNotRead) {
  Kept<StreamPointer> streams;
  ServerOptions options;
  options.max_stream_bytes = 64 << 10;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)}, options);
  RawClient client(server->port(), 4096);
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(streams.WaitFor(1));
  const StreamPointer stream = streams.Take()[0];
  std::atomic<bool> gone = false;
  stream->OnGone([&] { gone = true; });
  const auto event =
      std::make_shared<const std::string>(EventStream::Format("e", std::string(9000, 'x')));
  // Sockets' buffers take some megabytes before the queue fills.
  EXPECT_TRUE(Eventually([&] { return !stream->Send(event); }));
  EXPECT_FALSE(stream->alive());
  EXPECT_TRUE(Eventually([&] { return gone && server->counters().connections_now == 0; }));
  EXPECT_EQ(server->counters().dropped_streams, 1u);
}

TEST(Events, MayBeginWithMoreThanMayWait) {
  Kept<StreamPointer> streams;
  ServerOptions options;
  options.max_stream_bytes = 64 << 10;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)}, options);
  RawClient client(server->port(), 4096);
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(streams.WaitFor(1));
  const StreamPointer stream = streams.Take()[0];
  // Far more than sockets' buffers take, to a client that reads nothing yet.
  const std::string state(1 << 20, 'x');
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(stream->SendFirst("state", state)) << i;
  EXPECT_TRUE(stream->Send("e", "later"));
  stream->Close();
  const std::string all = client.ReadToEnd();
  EXPECT_GT(all.size(), 32u << 20);
  EXPECT_THAT(all, Mentions("later"));
}

TEST(Events, LearnThatTheirListenerIsGone) {
  Kept<StreamPointer> streams;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)});
  {
    RawClient client(server->port());
    client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_TRUE(streams.WaitFor(1));
  }
  const StreamPointer stream = streams.Take()[0];
  std::atomic<int> gone = 0;
  EXPECT_TRUE(Eventually([&] { return !stream->alive(); }));
  stream->OnGone([&] { ++gone; });
  EXPECT_TRUE(Eventually([&] { return gone == 1; }));
  EXPECT_FALSE(stream->Send("e", "x"));
}

TEST(Events, EndWhenTheServerStops) {
  Kept<StreamPointer> streams;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)});
  RawClient client(server->port());
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(streams.WaitFor(1));
  // The handler may have the stream before the reply is begun, which a stop would refuse.
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), Mentions("text/event-stream"));
  server->Stop(kPatience);
  EXPECT_THAT(client.ReadToEnd(), ::testing::EndsWith("0\r\n\r\n"));
  EXPECT_FALSE(streams.Take()[0]->Send("e", "x"));
}

TEST(Events, CanBeCancelled) {
  Kept<StreamPointer> streams;
  const std::unique_ptr<Server> server = StartServer({Events(&streams)});
  Client client = ClientOf(*server);
  Result<EventReader> reader = client.OpenEvents("/events", kPatience);
  ASSERT_TRUE(reader);
  std::thread cancels([&] { reader->Cancel(); });
  EXPECT_EQ(reader->Next(kPatience).error().code, ErrorCode::kCancelled);
  EXPECT_EQ(reader->Next(kPatience).error().code, ErrorCode::kCancelled);
  cancels.join();
}

TEST(Events, SayWhyThereAreNone) {
  const std::unique_ptr<Server> server = StartServer({});
  Client client = ClientOf(*server);
  EXPECT_THAT(client.OpenEvents("/events", kPatience).error().message,
              ::testing::AllOf(Mentions("404"), Mentions("'/events'")));
}

}  // namespace
}  // namespace perseus::http

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

// Requests whose clients gave up, and servers that are not ready yet.
namespace perseus::http {
namespace {

constexpr char kChange[] =
    "POST /change HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";

class Wanted : public ::testing::Test {
 protected:
  Wanted()
      : server_(StartServer({Post("/change", [this](const auto&, const auto&, Responder r) {
          responders_.Add(std::move(r));
        })})) {}

  // The one request at work.
  Responder Take() {
    EXPECT_TRUE(responders_.WaitFor(1));
    return responders_.Take().at(0);
  }

  Kept<Responder> responders_;
  std::unique_ptr<Server> server_;
};

TEST_F(Wanted, AsLongAsItsClientWaits) {
  RawClient client(server_->port());
  client.Send(kChange);
  const Responder responder = Take();
  EXPECT_TRUE(responder.wanted());
  EXPECT_TRUE(responder.Send(JsonResponse(200, "{}")));
  EXPECT_EQ(StatusOf(client.ReadResponse()), 200);
  EXPECT_FALSE(responder.wanted());
}

TEST_F(Wanted, NotOnceTheClientIsGone) {
  using GiveUp = std::function<void(RawClient&)>;
  for (const GiveUp& give_up : {GiveUp([](RawClient& client) { client.HalfClose(); }),
                                GiveUp([](RawClient& client) { client.Reset(); }),
                                // The end stands behind bytes that the server does not read.
                                GiveUp([this](RawClient& client) {
                                  constexpr std::size_t kReadAhead = 20 << 10;
                                  const std::uint64_t before = server_->counters().bytes_in;
                                  client.Send(std::string(kReadAhead, 'x'));
                                  EXPECT_TRUE(Eventually([&] {
                                    return server_->counters().bytes_in >= before + kReadAhead;
                                  }));
                                  client.Send(std::string(kReadAhead, 'x'));
                                  client.HalfClose();
                                })}) {
    RawClient client(server_->port());
    client.Send(kChange);
    const Responder responder = Take();
    EXPECT_TRUE(responder.wanted());
    give_up(client);
    EXPECT_TRUE(Eventually([&] { return !responder.wanted(); }));
    responder.Send(JsonResponse(200, "{}"));
  }
}

TEST_F(Wanted, NotOnceTheServerIsGone) {
  RawClient client(server_->port());
  client.Send(kChange);
  const Responder responder = Take();
  server_.reset();
  EXPECT_FALSE(responder.wanted());
}

TEST(Starting, SaysSoUntilItHasItsRoutes) {
  ServerOptions options;
  options.starting = [] { return TryAgainResponse("The server is starting."); };
  const std::unique_ptr<Server> server = StartServer({Get("/healthz", Echo())}, options);
  Client client = ClientOf(*server);
  EXPECT_EQ(client.Call("GET", "/healthz")->status, 200);
  const auto early = client.Call("GET", "/jobs");
  EXPECT_EQ(early->status, 503);
  EXPECT_THAT(*early->body, Mentions("starting."));
  EXPECT_NE(FindHeader(early->headers, "Retry-After"), nullptr);

  EXPECT_FALSE(server->SetRoutes({Get("malformed", Echo())}));
  EXPECT_EQ(client.Call("GET", "/jobs")->status, 503);
  ASSERT_TRUE(server->SetRoutes({Get("/jobs", Echo())}));
  EXPECT_EQ(client.Call("GET", "/jobs")->status, 200);
  EXPECT_EQ(client.Call("GET", "/healthz")->status, 404);
}

constexpr std::int64_t kMs = 1'000'000;

TEST(StopDetector, CountsGapsBetweenBeatsOnceEach) {
  std::int64_t now = 5 * kMs;
  StopDetector detector([&now] { return now; });
  for (int i = 0; i < 100; ++i) {
    now += 300 * kMs;
    detector.Beat();
    EXPECT_EQ(detector.Count(), 0u);
  }
  now += 7'000 * kMs;
  // Seen by who looks first, before the next beat.
  EXPECT_EQ(detector.Count(), 1u);
  EXPECT_DOUBLE_EQ(detector.last_seconds(), 7);
  detector.Beat();
  EXPECT_EQ(detector.Count(), 1u);
  now += 2'500 * kMs;
  detector.Beat();
  EXPECT_EQ(detector.Count(), 2u);
}

// Stopped between reading the clock and noting it.
TEST(StopDetector, ABeatThatIsInterruptedHidesNoStop) {
  std::int64_t now = 0;
  bool stop_inside = false;
  StopDetector detector([&] {
    const std::int64_t read = now;
    if (stop_inside) now += 9'000 * kMs;
    stop_inside = false;
    return read;
  });
  now += 200 * kMs;
  stop_inside = true;
  detector.Beat();
  EXPECT_EQ(detector.Count(), 1u);
}

TEST(StopDetector, SeesNoneInAProcessThatRuns) {
  StopDetector detector;
  detector.Start();
  EXPECT_EQ(detector.Count(), 0u);
  detector.Stop();
}

}  // namespace
}  // namespace perseus::http
