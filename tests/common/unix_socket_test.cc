// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/unix_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "common/temporary_directory.h"
#include "support/unix_listener.h"

namespace perseus {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(UnixSocket, ConnectsInTheModeThatIsAskedFor) {
  const TemporaryDirectory folder;
  const FileDescriptor listening = ListenAt(folder.Path("socket"), 8);
  for (const SocketMode mode : {SocketMode::kBlocking, SocketMode::kNonBlocking}) {
    const auto socket = ConnectUnixSocket(folder.Path("socket"), seconds(20), mode);
    ASSERT_TRUE(socket) << SystemMessage(socket.error());
    const bool is_blocking = (::fcntl(socket->get(), F_GETFL) & O_NONBLOCK) == 0;
    EXPECT_EQ(is_blocking, mode == SocketMode::kBlocking);
    EXPECT_NE(::fcntl(socket->get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST(UnixSocket, SaysWhoConnected) {
  const TemporaryDirectory folder;
  const FileDescriptor listening = ListenAt(folder.Path("socket"), 8);
  const auto socket = ConnectUnixSocket(folder.Path("socket"), seconds(20), SocketMode::kBlocking);
  ASSERT_TRUE(socket);
  const FileDescriptor accepted(::accept(listening.get(), nullptr, nullptr));
  const auto peer = PeerOfUnixSocket(accepted.get());
  ASSERT_TRUE(peer) << SystemMessage(peer.error());
  EXPECT_EQ(peer->pid, ::getpid());
  EXPECT_EQ(peer->uid, ::geteuid());
  EXPECT_EQ(peer->gid, ::getegid());
  EXPECT_FALSE(PeerOfUnixSocket(-1));
}

TEST(UnixSocket, NobodyThereNoPathAndAFullQueueAreErrors) {
  const TemporaryDirectory folder;
  const auto connect = [](const std::string& path) {
    const auto socket = ConnectUnixSocket(path, milliseconds(20), SocketMode::kBlocking);
    return socket ? 0 : socket.error();
  };
  EXPECT_EQ(connect(folder.Path("none")), ENOENT);
  EXPECT_EQ(connect(""), EINVAL);
  EXPECT_EQ(connect("/tmp/" + std::string(200, 'x')), ENAMETOOLONG);
  const FileDescriptor listening = ListenAt(folder.Path("socket"), 0);
  std::vector<FileDescriptor> waiting;
  int error = 0;
  while (error == 0 && waiting.size() < 100) {
    auto socket =
        ConnectUnixSocket(folder.Path("socket"), milliseconds(20), SocketMode::kNonBlocking);
    if (!socket) error = socket.error();
    if (socket) waiting.push_back(*std::move(socket));
  }
  EXPECT_EQ(error, EAGAIN);
}

}  // namespace
}  // namespace perseus
