// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/peer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "agent/protocol.h"
#include "common/temporary_directory.h"
#include "support/mentions.h"

namespace perseus::agent {
namespace {

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
