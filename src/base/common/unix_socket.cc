// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/unix_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace perseus {
namespace {

std::vector<gid_t> GroupsOfPeer(int socket) {
  std::vector<gid_t> groups(64);
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
      groups.resize(size / sizeof(gid_t));
      return groups;
    }
    if (errno != ERANGE) break;
    groups.resize(size / sizeof(gid_t));
  }
  return {};
}

}  // namespace

tl::expected<sockaddr_un, int> UnixAddressOf(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) return tl::unexpected(EINVAL);
  if (path.size() >= sizeof(address.sun_path)) return tl::unexpected(ENAMETOOLONG);
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

tl::expected<FileDescriptor, int> ConnectUnixSocket(const std::string& path,
                                                    std::chrono::nanoseconds patience,
                                                    SocketMode mode) {
  using Clock = std::chrono::steady_clock;
  constexpr int kPauseMilliseconds = 5;
  const Clock::time_point deadline = Clock::now() + patience;
  const auto address = UnixAddressOf(path);
  if (!address) return tl::unexpected(address.error());
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return tl::unexpected(errno);
  // A Unix socket connects at once, or the queue is full (EAGAIN), and nothing tells
  // when it no longer is.
  while (::connect(socket.get(), AsAddress(*address), sizeof(*address)) != 0) {
    if (errno == EINTR) continue;
    if (errno != EAGAIN || Clock::now() >= deadline) return tl::unexpected(errno);
    ::poll(nullptr, 0, kPauseMilliseconds);
  }
  if (mode == SocketMode::kBlocking) {
    const int flags = ::fcntl(socket.get(), F_GETFL);
    if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) {
      return tl::unexpected(errno);
    }
  }
  return socket;
}

tl::expected<UnixPeer, int> PeerOfUnixSocket(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return tl::unexpected(errno);
  }
  return UnixPeer{credentials.pid, credentials.uid, credentials.gid, GroupsOfPeer(socket)};
}

}  // namespace perseus
