// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agent/peer.h"
#include "common/temporary_directory.h"
#include "support/mentions.h"

namespace perseus::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Protocol, ReadsTheRequestsOfItsDocumentation) {
  const auto hello = ParseRequest(R"({"id":1,"op":"hello","version":1,"client":"trainer"})");
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->operation, Operation::kHello);
  EXPECT_EQ(hello->client, "trainer");
  const auto set = ParseRequest("{\"id\":3,\"op\":\"set\",\"gpu\":\"GPU-1\",\"mhz\":1200}\r\n");
  ASSERT_TRUE(set);
  EXPECT_EQ(set->id, 3);
  EXPECT_EQ(set->operation, Operation::kSet);
  EXPECT_EQ(set->gpu, "GPU-1");
  EXPECT_EQ(set->mhz, 1200);
  EXPECT_TRUE(ParseRequest(R"({"id":6,"op":"renew"})"));
  EXPECT_EQ(ParseRequest(R"({"id":6,"op":"release_all"})")->gpu, "");
  EXPECT_EQ(ParseRequest(R"({"id":6,"op":"release_all","gpu":"GPU-1"})")->gpu, "GPU-1");
}

TEST(Protocol, SaysWhatIsWrongWithARequest) {
  struct Case {
    const char* line;
    const char* says;
    bool has_id;
  };
  const Case cases[] = {
      {"", "empty", false},
      {"garbage", "not valid JSON", false},
      {"[1,2]", "expected an object", false},
      {R"({"op":"status"})", "'id' is missing", false},
      {R"({"id":0,"op":"status"})", "id: expected a number from 1", false},
      {R"({"id":1.5,"op":"status"})", "id: expected a whole number", false},
      {R"({"id":1e300,"op":"status"})", "id: expected a number from 1", false},
      {R"({"id":7,"op":"explode"})", "op: expected one of hello, lease", true},
      {R"({"id":7,"op":"lease"})", "'gpu' is missing", true},
      {R"({"id":7,"op":"lease","gpu":""})", "gpu: expected the name of a GPU", true},
      {R"({"id":7,"op":"set","gpu":"G","mhz":0})", "mhz: expected a whole number from 1", true},
      {R"({"id":7,"op":"set","gpu":"G","mhz":"fast"})", "mhz: expected a whole number", true},
      {R"({"id":7,"op":"status","gpu":"G"})", "unknown key 'gpu'", true},
      {R"({"id":7,"op":"status","op":"set"})", "given twice", false},
  };
  for (const Case& each : cases) {
    const auto request = ParseRequest(each.line);
    ASSERT_FALSE(request) << each.line;
    EXPECT_THAT(request.error().message, HasSubstr(each.says)) << each.line;
    EXPECT_EQ(request.error().id.has_value(), each.has_id) << each.line;
  }
}

TEST(Protocol, BoundsNamesAndLines) {
  const std::string name(kMaxNameBytes + 1, 'x');
  EXPECT_FALSE(ParseRequest(R"({"id":1,"op":"lease","gpu":")" + name + "\"}"));
  const std::string line(kMaxRequestBytes + 1, ' ');
  const auto request = ParseRequest(line);
  ASSERT_FALSE(request);
  EXPECT_THAT(request.error().message, Mentions("65536"));
  EXPECT_FALSE(ParseRequest(std::string(kMaxRequestBytes, '[')));
}

RC_GTEST_PROP(Protocol, WhatIsWrittenIsRead, ()) {
  Request request;
  request.id = *rc::gen::inRange<std::int64_t>(1, kMaxRequestId);
  request.operation = static_cast<Operation>(*rc::gen::inRange(0, 10));
  const auto again = ParseRequest([&] {
    request.gpu = "GPU-" + std::to_string(*rc::gen::inRange(0, 9));
    request.mhz = *rc::gen::inRange(1, kMaxClockMhz);
    return FormatRequest(request);
  }());
  RC_ASSERT(again.has_value());
  RC_ASSERT(again->id == request.id);
  RC_ASSERT(again->operation == request.operation);
  RC_ASSERT(FormatRequest(*again) == FormatRequest(request));
}

RC_GTEST_PROP(Protocol, TakesAnyBytes, (const std::string& bytes)) {
  const auto request = ParseRequest(bytes);
  RC_ASSERT(request || !request.error().message.empty());
  const auto answer = ParseAnswer(bytes);
  RC_ASSERT(answer || !answer.error().message.empty());
}

// An answer read back and written again is the same text, for every kind.
TEST(Protocol, AnswersAreReadAsTheyWereWritten) {
  HelloAnswer hello;
  hello.program_version = "0.1.0";
  hello.max_silence_seconds = 5;
  hello.gpus = {{"GPU-1", "A100", 0, {210, 1410}, std::nullopt}, {"GPU-2", "A100", 1, {1410}, 77}};
  ConditionsAnswer conditions;
  conditions.conditions.power_limit_watts = 300;
  conditions.conditions.throttle_reasons = 0x24;
  conditions.conditions.power_profiles = {"MAX_Q"};
  conditions.conflicts = {"slow"};
  StatusAnswer status;
  status.pid = 12;
  status.driver = "nvml";
  GpuStatus gpu;
  gpu.uuid = "GPU-1";
  gpu.owner = OwnerStatus{4, 1000, "alice (uid 1000)", "trainer", 1.5, 0.25};
  gpu.locked_mhz = 900;
  gpu.sets = 3;
  status.leases = 5;
  status.refused = {.held = 2, .device = 1};
  status.gpus = {gpu, {}};
  const Answer answers[] = {
      {1, Operation::kHello, hello},
      {2, Operation::kLease, Done{}},
      {3, Operation::kSet, SetAnswer{1200, 14000, false}},
      {3, Operation::kSet, SetAnswer{0, 0, true}},
      {4, Operation::kEnergy, EnergyAnswer{12.5, 9'100'000'000'000'000}},
      {4, Operation::kClock, ClockAnswer{1410}},
      {5, Operation::kConditions, conditions},
      {6, Operation::kStatus, status},
      {7, Operation::kReleaseAll, ReleaseAllAnswer{8, {"GPU-3: no"}}},
      {8, Operation::kSet, Refused{Refusal::kNotLeased, "no lease"}},
      {std::nullopt, std::nullopt, Refused{Refusal::kBadRequest, "what?"}},
  };
  for (const Answer& answer : answers) {
    const std::string line = FormatAnswer(answer);
    const auto again = ParseAnswer(line);
    ASSERT_TRUE(again) << line << again.error().message;
    EXPECT_EQ(again->body.index(), answer.body.index()) << line;
    EXPECT_EQ(FormatAnswer(*again), line);
  }
}

TEST(Protocol, AnswersAreOneLineOfTheDocumentedKeys) {
  EXPECT_EQ(FormatAnswer({3, Operation::kSet, SetAnswer{1200, 14000, false}}),
            "{\"id\":3,\"op\":\"set\",\"ok\":true,\"mhz\":1200,\"took_us\":14000}\n");
  EXPECT_EQ(FormatAnswer({3, Operation::kSet, SetAnswer{.superseded = true}}),
            "{\"id\":3,\"op\":\"set\",\"ok\":true,\"superseded\":true}\n");
  EXPECT_EQ(FormatAnswer({std::nullopt, std::nullopt, Refused{Refusal::kHeld, "line\nend"}}),
            "{\"id\":null,\"ok\":false,\"code\":\"held\",\"message\":\"line\\nend\"}\n");
}

TEST(Protocol, AgentsMaySayMoreThanClientsKnow) {
  const auto answer =
      ParseAnswer(R"({"id":2,"op":"energy","ok":true,"joules":1.5,"at_ns":7,"new":[1]})");
  ASSERT_TRUE(answer);
  EXPECT_EQ(std::get<EnergyAnswer>(answer->body).at_ns, 7);
  EXPECT_FALSE(ParseAnswer(R"({"id":2,"op":"energy","ok":true,"joules":"many","at_ns":7})"));
  EXPECT_FALSE(ParseAnswer(R"({"id":2,"ok":true})"));
}

using ::testing::HasSubstr;

TEST(Peer, IsWhoConnected) {
  const TemporaryDirectory folder;
  const auto listening = ListeningSocket::Listen(folder.Path("socket"));
  ASSERT_TRUE(listening) << listening.error().message;
  const auto client = ConnectUnix(folder.Path("socket"), std::chrono::seconds(20));
  ASSERT_TRUE(client) << client.error().message;
  const FileDescriptor accepted(::accept(listening->descriptor(), nullptr, nullptr));
  const auto peer = PeerOf(accepted.get());
  ASSERT_TRUE(peer) << peer.error().message;
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_EQ(peer->gid, ::getegid());
  EXPECT_TRUE(peer->pidfd.valid());
}

// A socket that was handed on by a process that has ended is nobody's.
TEST(Peer, MustBeAlive) {
  const TemporaryDirectory folder;
  const auto listening = ListeningSocket::Listen(folder.Path("socket"));
  ASSERT_TRUE(listening) << listening.error().message;
  int pipe_ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe_ends), 0);
  const FileDescriptor ours(pipe_ends[0]);
  const FileDescriptor theirs(pipe_ends[1]);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Connects and ends; its own child holds the socket open until we have looked.
    const auto socket = ConnectUnix(folder.Path("socket"), std::chrono::seconds(20));
    if (::fork() == 0) {
      char byte = 0;
      [[maybe_unused]] const ssize_t count = ::read(theirs.get(), &byte, 1);
      ::_exit(0);
    }
    ::_exit(socket ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const FileDescriptor accepted(::accept(listening->descriptor(), nullptr, nullptr));
  const auto peer = PeerOf(accepted.get());
  ASSERT_FALSE(peer);
  EXPECT_THAT(peer.error().message, Mentions("ended"));
  ASSERT_EQ(::write(ours.get(), "x", 1), 1);
}

TEST(AccessList, AllowsWhoIsNamed) {
  const uid_t other = ::geteuid() + 4242;
  AccessList access;
  access.users = {other};
  access.groups = {7000};
  access.operators = {other + 1};
  const auto peer = [](uid_t uid, gid_t gid, std::vector<gid_t> groups) {
    Peer who;
    who.uid = uid;
    who.gid = gid;
    who.groups = std::move(groups);
    return who;
  };
  EXPECT_TRUE(access.MayUse(peer(0, 0, {})));
  EXPECT_TRUE(access.MayUse(peer(::geteuid(), 1, {})));
  EXPECT_TRUE(access.MayUse(peer(other, 1, {})));
  EXPECT_TRUE(access.MayUse(peer(other + 1, 1, {})));
  EXPECT_TRUE(access.MayUse(peer(other + 2, 7000, {})));
  EXPECT_TRUE(access.MayUse(peer(other + 2, 1, {3, 7000})));
  EXPECT_FALSE(access.MayUse(peer(other + 2, 1, {3})));
  EXPECT_TRUE(access.MayOperate(peer(0, 0, {})));
  EXPECT_TRUE(access.MayOperate(peer(other + 1, 1, {})));
  EXPECT_FALSE(access.MayOperate(peer(other, 1, {})));
}

TEST(AccessList, TakesNamesAndNumbers) {
  EXPECT_EQ(UserId("root").value(), 0U);
  EXPECT_EQ(UserId("1234").value(), 1234U);
  EXPECT_EQ(GroupId("root").value(), 0U);
  ASSERT_FALSE(UserId("no such user"));
  EXPECT_THAT(UserId("no such user").error().message, HasSubstr("'no such user'"));
  EXPECT_FALSE(GroupId("-1"));
  EXPECT_EQ(DescribeUser(0), "root (uid 0)");
  EXPECT_EQ(DescribeUser(3999999999), "uid 3999999999");
}

TEST(Socket, SaysWhatIsInTheWay) {
  const TemporaryDirectory folder;
  folder.Put("file", "x");
  const auto on_file = ListeningSocket::Listen(folder.Path("file"));
  ASSERT_FALSE(on_file);
  EXPECT_THAT(on_file.error().message, Mentions("socket;"));
  EXPECT_EQ(folder.Get("file"), "x");
  const auto too_long = ListeningSocket::Listen("/tmp/" + std::string(200, 'x'));
  ASSERT_FALSE(too_long);
  EXPECT_THAT(too_long.error().message, Mentions("--socket"));
}

TEST(Socket, ReplacesOneThatNobodyListensAt) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("socket");
  {
    // As a killed agent leaves it: the file without a listener.
    const auto listening = ListeningSocket::Listen(path);
    ASSERT_TRUE(listening);
    std::filesystem::rename(path, path + ".kept");
  }
  std::filesystem::rename(path + ".kept", path);
  EXPECT_FALSE(ConnectUnix(path, std::chrono::seconds(20)));
  const auto again = ListeningSocket::Listen(path);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_TRUE(ConnectUnix(path, std::chrono::seconds(20)));
}

}  // namespace
}  // namespace perseus::agent
