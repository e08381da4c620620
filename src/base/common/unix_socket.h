// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_UNIX_SOCKET_H_
#define PERSEUS_COMMON_UNIX_SOCKET_H_

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "common/file_descriptor.h"

// Unix stream sockets: connecting to one, and finding out which process has connected. Errors are
// errno values, because each caller has its own message.
namespace perseus {

enum class SocketMode : std::uint8_t { kBlocking, kNonBlocking };

// The address of a path. ENAMETOOLONG, EINVAL: it is too long for a socket, or empty.
tl::expected<sockaddr_un, int> UnixAddressOf(std::string_view path);
inline const sockaddr* AsAddress(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Connects. If the listener's queue is full, tries again for `patience` and then returns EAGAIN; a
// blocking connect() would wait for ever. ENAMETOOLONG, EINVAL: as above.
tl::expected<FileDescriptor, int> ConnectUnixSocket(const std::string& path,
                                                    std::chrono::nanoseconds patience,
                                                    SocketMode mode);

// The process that connected, as the kernel reports it, even if a child process that inherited the
// socket uses it now.
struct UnixPeer {
  pid_t pid = 0;  // 0: the process is in another PID namespace.
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // Supplementary groups.
};
tl::expected<UnixPeer, int> PeerOfUnixSocket(int socket);

}  // namespace perseus

#endif  // PERSEUS_COMMON_UNIX_SOCKET_H_
