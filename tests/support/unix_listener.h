// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SUPPORT_UNIX_LISTENER_H_
#define PERSEUS_TESTS_SUPPORT_UNIX_LISTENER_H_

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <vector>

#include "common/file_descriptor.h"
#include "common/unix_socket.h"

namespace perseus {

inline FileDescriptor ListenAt(const std::string& path, int backlog) {
  const sockaddr_un address = UnixAddressOf(path).value();
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(socket.get(), AsAddress(address), sizeof(address)), 0);
  EXPECT_EQ(::listen(socket.get(), backlog), 0);
  return socket;
}

// Connects as often as the backlog of a listener lets it that accepts nobody.
inline std::vector<FileDescriptor> FillBacklog(const std::string& path) {
  const sockaddr_un address = UnixAddressOf(path).value();
  std::vector<FileDescriptor> waiting;
  do {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  } while (::connect(waiting.back().get(), AsAddress(address), sizeof(address)) == 0 &&
           waiting.size() < 100);
  EXPECT_EQ(errno, EAGAIN);
  return waiting;
}

}  // namespace perseus

#endif  // PERSEUS_TESTS_SUPPORT_UNIX_LISTENER_H_
