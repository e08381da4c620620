// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/relay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/unix_socket.h"
#include "relay/relay_testing.h"
#include "support/mentions.h"
#include "support/unix_listener.h"

// What is not a plan: forwarding, tokens, who may connect, the end.
namespace perseus::relay {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using Json = nlohmann::json;

TEST_F(RelayTest, WhatTrainersSayAndTheAnswersPassUnchanged) {
  ScriptedServer server;
  StartRelay(server.url());
  struct Case {
    const char* method;
    const char* target;
    const char* body;
  };
  for (const Case& each : {Case{"POST", "/api/v1/jobs", R"({"client_key": "k"})"},
                           Case{"GET", "/api/v1/jobs/j%2D1%C3%A9", ""},
                           Case{"POST", "/api/v1/jobs/j/ranks", R"({"rank":  3})"},
                           Case{"POST", "/api/v1/jobs/j/measurements", R"({"rank":3,"rows":[]})"},
                           Case{"GET", "/api/v1/jobs/j/stragglers", ""},
                           Case{"POST", "/api/v1/jobs/j/stragglers", R"({"rank":3,"factor":1.2})"},
                           Case{"DELETE", "/api/v1/jobs/j/stragglers/4", ""},
                           Case{"DELETE", "/api/v1/jobs/j/stragglers", ""}}) {
    for (const int status : {200, 201, 409, 413, 500, 503}) {
      const std::string said = R"({"error": {"message":"as it is"},  "x": 1.0})";
      server.SetScript([&](const http::Request&) {
        http::Response response = http::JsonResponse(status, said);
        response.headers.emplace_back("Retry-After", "7");
        response.headers.emplace_back("X-Internal", "no");
        return response;
      });
      const Answer answer = Call(each.method, each.target, each.body);
      EXPECT_EQ(answer.status, status) << each.target;
      EXPECT_EQ(answer.body, said);
      ASSERT_NE(http::FindHeader(answer.headers, "Retry-After"), nullptr);
      EXPECT_EQ(*http::FindHeader(answer.headers, "Retry-After"), "7");
      EXPECT_EQ(http::FindHeader(answer.headers, "X-Internal"), nullptr);
      const ScriptedServer::Call heard = server.Calls(each.method, "").back();
      EXPECT_EQ(heard.body, each.body);
    }
  }
  EXPECT_EQ(server.Calls("GET", "").front().path, "/api/v1/jobs/j-1\u00e9");
}

TEST_F(RelayTest, WhatOperatorsMayIsNotRelayed) {
  ScriptedServer server;
  StartRelay(server.url());
  EXPECT_EQ(Call("DELETE", "/api/v1/jobs/j").status, 405);
  EXPECT_EQ(Call("PUT", "/api/v1/jobs/j/point", R"({"at":"1.1x"})").status, 404);
  EXPECT_EQ(Call("GET", "/api/v1/jobs").status, 405);
  EXPECT_EQ(Call("GET", "/metrics").status, 404);
  EXPECT_EQ(server.CountOf("DELETE", "") + server.CountOf("GET", ""), 0U);
}

TEST_F(RelayTest, BadQuestionsGetASentence) {
  ScriptedServer server;
  StartRelay(server.url());
  for (const char* const query : {"", "?rank=-1", "?rank=x", "?rank=3&after=x", "?rank=3&wait=-1",
                                  "?rank=3&wait=x", "?rank=99999999999"}) {
    const Answer answer = Call("GET", std::string("/api/v1/jobs/j/plan") + query);
    EXPECT_EQ(answer.status, 422) << query;
    EXPECT_THAT(answer.body, Mentions("\"code\":\"invalid\""));
  }
  EXPECT_EQ(server.CountOf("GET", ""), 0U);
}

// The server's, the relay's: none of a rank.
TEST_F(RelayTest, TheTokenIsTheRelaysAndNeverReachesARank) {
  const std::string first = "first-token-first-token";
  const std::string second = "second-token-second-token";
  ScriptedServer server;
  const std::string file = folder_.PutSecret("token", first + "\n");
  StartRelay(server.url(), [&](RelayOptions* options) { options->server.token_file = file; });
  http::ClientOptions options;
  options.url = RelayUrl();
  options.token = "a-token-that-a-rank-made-up";
  http::Client rank = *http::Client::Create(options);
  std::vector<Answer> answers;
  answers.push_back(Call(&rank, "POST", "/api/v1/jobs/j/ranks", "{}"));
  answers.push_back(Call(&rank, "GET", "/api/v1/jobs/j/plan?rank=0&after=-1&wait=0"));
  EXPECT_EQ(answers[0].status, 200);
  EXPECT_EQ(answers[1].status, 200);
  ASSERT_TRUE(http::Eventually([&] { return server.waiting() == 1; }));
  for (const auto& call : server.Calls("GET", "")) EXPECT_EQ(call.authorization, "Bearer " + first);
  for (const auto& call : server.Calls("POST", "")) {
    EXPECT_EQ(call.authorization, "Bearer " + first);
  }

  // The token changed. What concerns the relay alone is not a rank's 401, and the file is
  // read again.
  server.SetScript([&](const http::Request& request) -> std::optional<http::Response> {
    const std::string* token = http::FindHeader(request.headers, "Authorization");
    if (token != nullptr && *token == "Bearer " + second) return std::nullopt;
    return http::ErrorResponse(401, "denied", "unknown token");
  });
  answers.push_back(Call(&rank, "POST", "/api/v1/jobs/j/ranks", "{}"));
  EXPECT_EQ(answers.back().status, 503);
  EXPECT_THAT(answers.back().body, Mentions("--token-file"));
  folder_.PutSecret("token", second);
  EXPECT_TRUE(http::Eventually([&] {
    answers.push_back(Call(&rank, "POST", "/api/v1/jobs/j/ranks", "{}"));
    return answers.back().status == 200;
  }));
  for (const Answer& answer : answers) {
    EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("token-first")));
    EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("token-second")));
    for (const auto& [name, value] : answer.headers) {
      EXPECT_THAT(value, ::testing::Not(HasSubstr("Bearer")));
    }
  }
}

class ReportsTest : public RelayTest {
 protected:
  std::vector<Answer> Report(const std::vector<std::string>& bodies) const {
    std::vector<std::future<Answer>> calls;
    for (const std::string& body : bodies) {
      calls.push_back(std::async(std::launch::async, [this, &body] {
        return Call("POST", "/api/v1/jobs/j/iterations", body);
      }));
    }
    std::vector<Answer> answers;
    for (auto& call : calls) answers.push_back(call.get());
    return answers;
  }

  static std::string ReportOf(int rank) {
    return R"({"reports":[{"rank":)" + std::to_string(rank) + R"(,"time_s":5.310},{"rank":)" +
           std::to_string(rank) + R"(,"time_s":5.2}], "clients": [{"rank":)" +
           std::to_string(rank) + "}] }";
  }
};

// Each client finds its own by its name.
TEST_F(ReportsTest, WhatIsWrongWithAClientReachesIt) {
  const std::string troubles = R"("troubles":[{"client":"a","sentence":"no"}])";
  ScriptedServer server;
  server.SetScript([&](const http::Request& request) -> std::optional<http::Response> {
    if (!request.path.ends_with("/iterations")) return std::nullopt;
    return http::JsonResponse(202, R"({"reports":4,)" + troubles + "}");
  });
  StartRelay(server.url(), [](RelayOptions* options) { options->linger_seconds = 2; });
  const std::vector<Answer> answers = Report({ReportOf(0), ReportOf(1)});
  EXPECT_EQ(server.Calls("POST", "/iterations").size(), 1U);
  for (const Answer& answer : answers) EXPECT_EQ(answer.body, R"({"reports":2,)" + troubles + "}");
}

TEST_F(ReportsTest, ReportsOfSeveralRanksAreOneRequest) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) { options->linger_seconds = 2; });
  std::vector<std::string> bodies;
  for (int rank = 0; rank < 8; ++rank) bodies.push_back(ReportOf(rank));
  bodies.push_back(R"({"reports":[]})");
  bodies.push_back(R"({"clients":[{"rank":8}]})");
  const std::vector<Answer> answers = Report(bodies);
  EXPECT_THAT(answers, Each(Field(&Answer::status, 202)));
  EXPECT_EQ(answers[3].body, R"({"reports":2})");
  EXPECT_EQ(answers[8].body, R"({"reports":0})");
  const auto calls = server.Calls("POST", "/iterations");
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_THAT(calls[0].body, Mentions("5.310"));
  const Json sent = Json::parse(calls[0].body);
  EXPECT_EQ(sent["reports"].size(), 16U);
  EXPECT_EQ(sent["clients"].size(), 9U);
  EXPECT_EQ(sent.size(), 2U);
}

TEST_F(ReportsTest, NoRankPaysForTheReportOfAnother) {
  ScriptedServer server;
  server.SetScript([](const http::Request& request) -> std::optional<http::Response> {
    if (request.body.find("bad") == std::string::npos) return std::nullopt;
    return http::ErrorResponse(400, "invalid", "this is bad");
  });
  StartRelay(server.url(), [](RelayOptions* options) { options->linger_seconds = 1; });
  const auto answers = Report({ReportOf(0), R"({"reports":["bad"]})", ReportOf(2)});
  EXPECT_EQ(answers[0].status, 202);
  EXPECT_EQ(answers[1].status, 400);
  EXPECT_THAT(answers[1].body, HasSubstr("this is bad"));
  EXPECT_EQ(answers[2].status, 202);
  EXPECT_EQ(server.CountOf("POST", "/iterations"), 4U);
}

TEST_F(ReportsTest, WhatIsNoReportGoesAsItIs) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) { options->linger_seconds = 3600; });
  const std::vector<std::string> bodies = {"garbage",
                                           "",
                                           "[]",
                                           R"({"reports":{}})",
                                           R"({"reports":[],"reports":[]})",
                                           R"({"reports":[],"more":[]})"};
  EXPECT_THAT(Report(bodies), Each(Field(&Answer::status, 202)));
  std::vector<std::string> heard;
  for (const auto& call : server.Calls("POST", "/iterations")) heard.push_back(call.body);
  EXPECT_THAT(heard, ::testing::UnorderedElementsAreArray(bodies));
}

TEST_F(ReportsTest, ABatchThatIsFullDoesNotWait) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) { options->linger_seconds = 3600; });
  std::vector<std::string> bodies(64, ReportOf(1));
  EXPECT_THAT(Report(bodies), Each(Field(&Answer::status, 202)));
  EXPECT_EQ(server.CountOf("POST", "/iterations"), 1U);
}

// Also while no rank asks for anything.
TEST_F(RelayTest, TheLogSaysThatTheServerIsAwayAndThatItIsBack) {
  std::string url;
  { url = ScriptedServer().url(); }  // A port that was free a moment ago.
  std::mutex mutex;
  std::vector<std::string> events;
  StartRelay(url, [&](RelayOptions* options) {
    options->probe_seconds = 0.1;
    options->log = [&](bool, std::string_view event, const std::string&) {
      const std::lock_guard lock(mutex);
      events.emplace_back(event);
    };
  });
  const auto has = [&](std::size_t count) {
    const std::lock_guard lock(mutex);
    return events.size() >= count;
  };
  ASSERT_TRUE(http::Eventually([&] { return has(1); }));
  std::optional<ScriptedServer> server;
  server.emplace(url.substr(url.rfind('/') + 1));
  ASSERT_TRUE(http::Eventually([&] { return has(2); }));
  relay_.reset();
  EXPECT_EQ(events, (std::vector<std::string>{"server_away", "server_back"}));
}

TEST_F(RelayTest, ASlowServerIsAnAnswerInTime) {
  ScriptedServer server;
  server.SetSilent(true);
  StartRelay(server.url(), [](RelayOptions* options) {
    options->forwarder.deadline_seconds = 1;
    options->forwarder.max_waiting = 3;
  });
  std::vector<std::future<Answer>> calls;
  for (int i = 0; i < 12; ++i) {
    calls.push_back(
        std::async(std::launch::async, [&] { return Call("POST", "/api/v1/jobs/j/ranks", "{}"); }));
  }
  int full = 0;
  for (auto& call : calls) {
    const Answer answer = call.get();
    EXPECT_EQ(answer.status, 503);
    full += answer.body.find("too many requests") != std::string::npos ? 1 : 0;
  }
  // Two are asked, three wait at a time.
  EXPECT_GE(full, 1);
  EXPECT_EQ(Call("GET", "/healthz").status, 200);
}

TEST_F(RelayTest, AServerThatClosesMidAnswerIsNoAnswer) {
  // A listener that sends half of an answer, then closes.
  const std::string path = folder_.Path("upstream");
  const FileDescriptor listening = ListenAt(path, 64);
  std::atomic<bool> is_done = false;
  std::thread server([&] {
    while (!is_done) {
      const FileDescriptor socket(::accept(listening.get(), nullptr, nullptr));
      std::array<char, 4096> request{};
      if (::recv(socket.get(), request.data(), request.size(), 0) <= 0) continue;
      constexpr std::string_view kHalf =
          "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"version\":1,\"plans\":[";
      ::send(socket.get(), kHalf.data(), kHalf.size(), MSG_NOSIGNAL);
    }
  });
  StartRelay("unix:" + path);
  EXPECT_EQ(Plan(0, -1, 30).status, 503);
  EXPECT_EQ(Call("POST", "/api/v1/jobs/j/ranks", "{}").status, 503);
  EXPECT_EQ(Call("GET", "/healthz").status, 200);
  is_done = true;
  static_cast<void>(ConnectUnixSocket(path, std::chrono::seconds(1), SocketMode::kBlocking));
  relay_.reset();
  server.join();
}

TEST_F(RelayTest, ConnectionsThatAreNotNeededAreClosed) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) {
    options->forwarder.idle = std::chrono::milliseconds(50);
  });
  std::vector<std::future<Answer>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(
        std::async(std::launch::async, [&] { return Call("POST", "/api/v1/jobs/j/ranks", "{}"); }));
  }
  for (auto& call : calls) EXPECT_EQ(call.get().status, 200);
  EXPECT_TRUE(http::Eventually([&] { return server.server().counters().connections_now == 0; }));
  EXPECT_EQ(Call("POST", "/api/v1/jobs/j/ranks", "{}").status, 200);
}

TEST_F(RelayTest, WhoIsNotOnTheListIsRefused) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) {
    options->may_use = [](const UnixPeer& peer) { return peer.uid != ::geteuid(); };
  });
  const Answer answer = Call("GET", "/healthz");
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.body, AllOf(Mentions("--allow-user", std::to_string(::geteuid())),
                                 Mentions("--allow-group")));
}

// As the server would, which cannot tell who asks.
TEST(JobOwnersTest, AJobIsItsFirstUsersUntilHeHasTooMany) {
  JobOwners owners(2);
  EXPECT_TRUE(owners.MayUse("a", 1000));
  EXPECT_FALSE(owners.MayUse("a", 1001));
  EXPECT_TRUE(owners.MayUse("a", 0));  // Root may do anything, and it stays his.
  EXPECT_FALSE(owners.MayUse("a", 1001));
  EXPECT_FALSE(owners.MayUse("b", std::nullopt));
  EXPECT_TRUE(owners.MayUse("b", 1001));
  EXPECT_TRUE(owners.MayUse("c", 1001));
  EXPECT_TRUE(owners.MayUse("d", 1001));  // His oldest is forgotten, not that of another.
  EXPECT_FALSE(owners.MayUse("a", 1001));
  EXPECT_TRUE(owners.MayUse("b", 1002));
}

TEST_F(RelayTest, AJobOfAnotherUserIsNotThere) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  ScriptedServer server;
  ASSERT_EQ(::chmod(folder_.Path().c_str(), 0755), 0);
  StartRelay(server.url(), [&](RelayOptions* options) {
    options->may_use = [](const UnixPeer&) { return true; };
  });
  server.SetScript([](const http::Request& request) -> std::optional<http::Response> {
    if (request.method == "POST" && request.path == "/api/v1/jobs") {
      return http::JsonResponse(201, R"({"id":"j-1"})");
    }
    return http::JsonResponse(200, "{}");
  });
  const auto ask = [&](int user, const std::string& method, const std::string& path) {
    const std::string command = fmt::format(
        "setpriv --reuid={0} --regid={0} --clear-groups -- curl -s -o /dev/null -w "
        "'%{{http_code}}' -X {1} -d '{{}}' --unix-socket {2}/relay/server.sock "
        "http://localhost/api/v1/jobs{3}",
        user, method, folder_.Path(), path);
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::array<char, 16> code{};
    const std::size_t size = std::fread(code.data(), 1, code.size(), pipe);
    EXPECT_EQ(::pclose(pipe), 0) << "curl and setpriv are needed";
    return std::string(code.data(), size);
  };
  EXPECT_EQ(ask(65533, "POST", ""), "201");
  EXPECT_EQ(ask(65534, "POST", ""), "404");  // With the same client key.
  EXPECT_EQ(ask(65534, "POST", "/j-1/stragglers"), "404");
  EXPECT_EQ(ask(65534, "POST", "/j-1/iterations"), "404");
  EXPECT_EQ(ask(65534, "POST", "/j-1/measurements"), "404");
  EXPECT_EQ(ask(65534, "GET", "/j-1/plan?rank=0&after=-1"), "404");
  EXPECT_EQ(ask(65533, "POST", "/j-1/stragglers"), "200");
  EXPECT_EQ(server.CountOf("POST", "stragglers"), 1U);
}

TEST_F(RelayTest, AConditionGoesWithTheRequest) {
  ScriptedServer server;
  StartRelay(server.url());
  server.SetScript([](const http::Request& request) -> std::optional<http::Response> {
    const std::string* const condition = http::FindHeader(request.headers, "If-Match");
    http::Response response = http::JsonResponse(condition == nullptr ? 500 : 412, "{}");
    if (condition != nullptr) response.headers.emplace_back("ETag", *condition);
    return response;
  });
  http::Client rank = Rank();
  http::CallOptions options;
  options.headers = {{"If-Match", "\"17\""}};
  const auto answer = rank.Call("DELETE", "/api/v1/jobs/j/stragglers", "", options);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 412);
  ASSERT_NE(http::FindHeader(answer->headers, "ETag"), nullptr);
}

// As the kernel says it: a process of another user.
TEST_F(RelayTest, AnotherUserIsRefusedUnlessAllowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  ScriptedServer server;
  ASSERT_EQ(::chmod(folder_.Path().c_str(), 0755), 0);
  for (const bool is_allowed : {false, true}) {
    StartRelay(server.url(), [&](RelayOptions* options) {
      if (is_allowed) {
        options->may_use = [](const UnixPeer& peer) { return peer.uid == kNobody; };
      }
    });
    struct stat status {};
    ASSERT_EQ(::stat((folder_.Path("relay/server.sock")).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0666U);
    const std::string command = "curl -s -o /dev/null -w '%{http_code}' --unix-socket " +
                                folder_.Path("relay/server.sock http://localhost/healthz");
    const std::string as_nobody =
        "setpriv --reuid=65534 --regid=65534 --clear-groups -- sh -c \"" + command + "\"";
    std::FILE* const pipe = ::popen(as_nobody.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::array<char, 16> code{};
    const std::size_t size = std::fread(code.data(), 1, code.size(), pipe);
    ASSERT_EQ(::pclose(pipe), 0) << "curl and setpriv are needed";
    EXPECT_EQ(std::string(code.data(), size), is_allowed ? "200" : "403");
  }
}

TEST_F(RelayTest, StoppingAnswersWhoWaits) {
  ScriptedServer server;
  StartRelay(server.url(), [](RelayOptions* options) { options->linger_seconds = 3600; });
  EXPECT_EQ(Plan(0, -1, 0).status, 200);
  auto poll = std::async(std::launch::async, [&] { return Plan(0, 1, 60); });
  ASSERT_TRUE(http::Eventually([&] { return relay_->counts().plans.waiting == 1; }));
  auto report = std::async(std::launch::async, [&] {
    return Call("POST", "/api/v1/jobs/j/iterations", R"({"reports":[]})");
  });
  ASSERT_TRUE(http::Eventually([&] { return relay_->counts().http.connections_now >= 2; }));
  server.SetSilent(true);
  auto join =
      std::async(std::launch::async, [&] { return Call("POST", "/api/v1/jobs/j/ranks", "{}"); });
  ASSERT_TRUE(http::Eventually([&] { return server.CountOf("POST", "/ranks") == 1; }));
  relay_->Stop();
  EXPECT_EQ(poll.get().status, 204);
  EXPECT_EQ(join.get().status, 503);
  // Sent, or told to come again.
  EXPECT_THAT(report.get().status, ::testing::AnyOf(202, 503));
  EXPECT_NE(::access((folder_.Path("relay/server.sock")).c_str(), F_OK), 0);
  relay_.reset();
}

TEST_F(RelayTest, OptionsThatCannotBeAreRefused) {
  RelayOptions options;
  options.socket_path = folder_.Path("s");
  options.server.url = "nonsense";
  auto relay = Relay::Start(options);
  ASSERT_FALSE(relay);
  EXPECT_EQ(relay.error().code, ErrorCode::kInvalidInput);
  options.server.url = "http://127.0.0.1:1";
  options.server.token_file = folder_.Path("none");
  EXPECT_FALSE(Relay::Start(options));
  options.server.token_file = folder_.PutSecret("two", "two tokens");
  relay = Relay::Start(options);
  ASSERT_FALSE(relay);
  EXPECT_THAT(relay.error().message, Mentions("token"));
  options.server.token_file = "";
  options.socket_path = folder_.PutSecret("file", "x") + "/s";
  EXPECT_FALSE(Relay::Start(options));
}

}  // namespace
}  // namespace perseus::relay
