// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "http/server.h"
#include "http/support.h"
#include "support/mentions.h"

namespace perseus::http {
namespace {

using ::testing::HasSubstr;

// Says to each connection in turn what the test wants, whatever it is asked.
class Impostor {
 public:
  enum class Then { kClose, kKeep, kCloseOnNextRequest };
  explicit Impostor(std::vector<std::string> answers, Then then = Then::kClose)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answers_(std::move(answers)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket_.get(), 8), 0);
    ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, then] { Run(then); });
  }
  ~Impostor() {
    ::shutdown(socket_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  int requests() const { return requests_; }

 private:
  void Read(const FileDescriptor& client) {
    char buffer[4096];
    if (::recv(client.get(), buffer, sizeof(buffer), 0) > 0) ++requests_;
  }
  void Run(Then then) {
    std::vector<FileDescriptor> open;
    for (const std::string& answer : answers_) {
      FileDescriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!client.valid()) return;
      Read(client);
      ::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
      if (then == Then::kCloseOnNextRequest) Read(client);
      if (then == Then::kKeep) open.push_back(std::move(client));
    }
    // Until the test is over.
    ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  }

  FileDescriptor socket_;
  std::vector<std::string> answers_;
  int port_ = 0;
  std::atomic<int> requests_ = 0;
  std::thread thread_;
};

Client ClientTo(const std::string& url, std::size_t max_response_bytes = 1 << 20) {
  ClientOptions options;
  options.url = url;
  options.max_response_bytes = max_response_bytes;
  return *Client::Create(options);
}

CallOptions Within(double seconds) {
  CallOptions options;
  options.deadline_seconds = seconds;
  return options;
}

const char kOk[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(Client, CallsAndKeepsTheConnection) {
  const std::unique_ptr<Server> server = StartServer({Get("/a", Echo()), Post("/a", Echo())});
  Client client = ClientOf(*server);
  for (int i = 0; i < 3; ++i) {
    const Result<Response> response = client.Call("GET", "/a?x=1");
    ASSERT_TRUE(response);
    EXPECT_EQ(response->content_type, "application/json");
    EXPECT_EQ(*response->body, "GET /a x=1\n");
    EXPECT_EQ(*client.Call("POST", "/a", "b")->body, "POST /a\nb");
    EXPECT_EQ(client.Call("HEAD", "/a")->status, 200);
    EXPECT_EQ(client.Call("GET", "/none")->status, 404);
  }
  EXPECT_EQ(server->counters().accepted, 1u);
  // Bodies that are larger than sockets' buffers, both ways.
  const std::string big(900000, 'x');
  EXPECT_EQ(client.Call("POST", "/a", big)->body->size(), big.size() + 8);
  // An answer before the body was read.
  EXPECT_EQ(client.Call("POST", "/a", std::string(20 << 20, 'x'))->status, 413);
  EXPECT_EQ(client.Call("GET", "/a")->status, 200);
}

// What many answers share follows what each has of its own, at all sizes.
TEST(Client, ReadsBodiesWithASharedTail) {
  for (const std::size_t own : {0, 10, 100'000}) {
    for (const std::size_t shared : {0, 1, 900'000}) {
      const auto tail = std::make_shared<const std::string>(shared, 't');
      const auto answer = [own, tail](const Request&, const std::vector<std::string>&,
                                      const Responder& responder) {
        responder.Send(JsonResponse(200, std::string(own, 'o'), tail));
      };
      const std::unique_ptr<Server> server = StartServer({Get("/a", answer)});
      Client client = ClientOf(*server);
      for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(*client.Call("GET", "/a")->body, std::string(own, 'o') + *tail);
        EXPECT_EQ(client.Call("HEAD", "/a")->status, 200);
      }
    }
  }
}

// In the clear it goes nowhere but to this machine.
TEST(Client, KeepsItsTokenFromTheNetwork) {
  for (const char* const url : {"http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1",
                                "https://db.example", "unix:/run/x.sock"}) {
    ClientOptions options;
    options.url = url;
    options.token = "a-token-of-many-letters";
    EXPECT_TRUE(Client::Create(options).has_value()) << url;
  }
  for (const char* const url : {"http://192.0.2.2:1", "http://db.example", "http://[2001:db8::1]:1",
                                "http://127.0.0.1.example"}) {
    ClientOptions options;
    options.url = url;
    EXPECT_TRUE(Client::Create(options).has_value()) << url;
    options.token = "a-token-of-many-letters";
    const auto client = Client::Create(options);
    ASSERT_FALSE(client.has_value()) << url;
    EXPECT_NE(client.error().message.find("https://"), std::string::npos);
  }
}

TEST(Client, PutsItsPrefixBeforeTargets) {
  const std::unique_ptr<Server> server = StartServer({Get("/p/q/a", Echo())});
  Client client = ClientTo(server->url() + "/p/q/");
  EXPECT_EQ(client.Call("GET", "/a")->status, 200);
}

TEST(Client, NoticesThatAKeptConnectionWasClosed) {
  ServerOptions options;
  options.idle_seconds = 0.05;
  const std::unique_ptr<Server> server = StartServer({Post("/", Echo())}, options);
  Client client = ClientOf(*server);
  ASSERT_TRUE(client.Call("POST", "/", "1"));
  ASSERT_TRUE(Eventually([&] { return server->counters().connections_now == 0; }));
  EXPECT_EQ(client.Call("POST", "/", "2")->status, 200);
  EXPECT_EQ(server->counters().accepted, 2u);
}

// The server closes a kept connection just as the next request comes.
TEST(Client, RepeatsOnlyWhatIsHarmless) {
  for (const bool is_get : {true, false}) {
    Impostor server({kOk, kOk}, Impostor::Then::kCloseOnNextRequest);
    Client client = ClientTo(server.url());
    ASSERT_TRUE(client.Call("GET", "/"));
    const Result<Response> response = client.Call(is_get ? "GET" : "POST", "/");
    EXPECT_EQ(response.has_value(), is_get);
    EXPECT_EQ(server.requests(), is_get ? 3 : 2);
    client.Cancel();
  }
}

TEST(Client, ReadsAnswersThatEndWithTheConnection) {
  Impostor server({"HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.0 200 OK\r\n\r\n", kOk,
                   "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\n"});
  Client client = ClientTo(server.url());
  EXPECT_EQ(*client.Call("GET", "/")->body, "hello");
  EXPECT_EQ(*client.Call("GET", "/")->body, "");
  EXPECT_EQ(*client.Call("GET", "/")->body, "ok");
  EXPECT_EQ(client.Call("GET", "/")->status, 204);
}

TEST(Client, RefusesWhatIsNoAnswer) {
  const std::vector<std::string> answers = {
      "",
      "garbage\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
      "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
      "HTTP/1.1 200 OK\r\nX: " + std::string(100000, 'x'),
      "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + std::string(2000, 'x'),
      "HTTP/1.1 200 OK\r\n\r\n" + std::string(2000, 'x'),
  };
  Impostor server(answers);
  Client client = ClientTo(server.url(), /*max_response_bytes=*/1000);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Result<Response> response = client.Call("POST", "/");
    ASSERT_FALSE(response) << i;
    EXPECT_EQ(response.error().code, ErrorCode::kIo);
    EXPECT_THAT(response.error().message, HasSubstr(server.url()));
  }
}

TEST(Client, KeepsToItsDeadline) {
  // One that says nothing, and one that never ends.
  const std::unique_ptr<Server> server =
      StartServer({Get("/", [](const auto&, const auto&, const Responder& responder) {
        responder.AnswerAfter(1000, Response());
        static Kept<Responder> waiting;
        waiting.Add(responder);
      })});
  Client client = ClientOf(*server);
  EXPECT_THAT(client.Call("GET", "/", "", Within(0.1)).error().message, Mentions("deadline."));
  Impostor half({"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"}, Impostor::Then::kKeep);
  Client other = ClientTo(half.url());
  EXPECT_FALSE(other.Call("GET", "/", "", Within(0.1)));
}

TEST(Client, IsCancelledFromAnotherThread) {
  Impostor silent({""}, Impostor::Then::kKeep);
  Client client = ClientTo(silent.url());
  std::thread cancels([&] {
    Eventually([&] { return silent.requests() == 1; });
    client.Cancel();
  });
  const Result<Response> response = client.Call("GET", "/", "", Within(kPatience * 10));
  cancels.join();
  EXPECT_EQ(response.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(client.Call("GET", "/").error().code, ErrorCode::kCancelled);
}

TEST(Client, TriesAgainAsItIsTold) {
  std::atomic<int> calls = 0;
  const std::unique_ptr<Server> server =
      StartServer({Post("/", [&](const auto&, const auto&, const Responder& responder) {
        responder.Send(++calls < 3 ? ErrorResponse(503, "unavailable", "Not now.")
                                   : JsonResponse(200, "{}"));
      })});
  Client client = ClientOf(*server);
  EXPECT_EQ(client.Call("POST", "/")->status, 503);
  EXPECT_EQ(calls, 1);
  CallOptions options;
  options.retry.attempts = 5;
  options.retry.pause_seconds = 0.01;
  EXPECT_EQ(client.Call("POST", "/", "", options)->status, 200);
  EXPECT_EQ(calls, 3);

  Impostor flaky({"", "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", kOk});
  Client other = ClientTo(flaky.url());
  EXPECT_EQ(*other.Call("POST", "/", "", options)->body, "ok");
  EXPECT_EQ(flaky.requests(), 3);
  // A pause that does not fit the deadline is not begun.
  Impostor busy({"HTTP/1.1 503 No\r\nRetry-After: 1000\r\nContent-Length: 0\r\n\r\n"});
  Client patient = ClientTo(busy.url());
  EXPECT_EQ(patient.Call("POST", "/", "", options)->status, 503);
}

TEST(Client, SaysWhyNobodyIsThere) {
  int port = 0;
  {
    const std::unique_ptr<Server> server = StartServer({});
    port = server->port();
  }
  const std::string url = "http://127.0.0.1:" + std::to_string(port);
  EXPECT_EQ(ClientTo(url).Call("GET", "/").error().message,
            "Cannot reach " + url +
                ": Connection refused; nobody listens there: start the server, or correct the "
                "address.");
  EXPECT_THAT(ClientTo("unix:/no/such/socket").Call("GET", "/").error().message,
              Mentions("unix:/no/such/socket:", "file"));
  EXPECT_THAT(ClientTo("http://no-such-name.invalid").Call("GET", "/").error().message,
              Mentions("http://no-such-name.invalid:"));
}

TEST(Client, SaysThatAServerSpeaksNoTls) {
  const std::unique_ptr<Server> server = StartServer({});
  const std::string url = "https://127.0.0.1:" + std::to_string(server->port());
  EXPECT_THAT(ClientTo(url).Call("GET", "/").error().message, Mentions("TLS;", "http://"));
}

TEST(Client, ChecksUrlsAndCalls) {
  for (const char* url :
       {"", "127.0.0.1:80", "ftp://h", "http://", "http://h:x", "http://h:0", "http://h:70000",
        "http://u@h", "http://h?x", "http://h/#a", "http://h /", "unix:", "http://h\r\n"}) {
    ClientOptions options;
    options.url = url;
    EXPECT_FALSE(Client::Create(options)) << url;
  }
  ClientOptions options;
  options.url = "http://[::1]:80/p";
  options.token = "two words";
  EXPECT_FALSE(Client::Create(options));
  options.token = "";
  Client client = *Client::Create(options);
  for (const char* target : {"", "a", "/a b", "/a\r\nX: y", "http://h/"}) {
    EXPECT_EQ(client.Call("GET", target).error().code, ErrorCode::kInvalidInput) << target;
  }
  EXPECT_EQ(client.Call("GET /", "/").error().code, ErrorCode::kInvalidInput);
  CallOptions call;
  call.headers = {{"X", "a\r\nY: b"}};
  EXPECT_EQ(client.Call("GET", "/", "", call).error().code, ErrorCode::kInvalidInput);
}

}  // namespace
}  // namespace perseus::http
