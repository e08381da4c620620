// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "http/client.h"
#include "http/server.h"
#include "http/support.h"
#include "support/mentions.h"

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
