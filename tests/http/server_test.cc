// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

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
