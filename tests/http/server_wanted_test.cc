// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "http/server.h"
#include "http/support.h"
#include "support/mentions.h"

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
  options.starting = "The server is starting.";
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

}  // namespace
}  // namespace perseus::http
