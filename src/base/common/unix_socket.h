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

// Unix stream sockets: reaching whoever listens at one, and who that is for whom
// listens. Failures are numbers of errno, as each caller has a sentence of its own.
namespace perseus {

enum class SocketMode : std::uint8_t { kBlocking, kNonBlocking };

// The address of a path. ENAMETOOLONG, EINVAL: it is too long for a socket, or empty.
tl::expected<sockaddr_un, int> UnixAddressOf(std::string_view path);
inline const sockaddr* AsAddress(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

// Connects. Where the queue of whoever listens is full, it is tried again for
// `patience` (a connect() that blocks would wait without end), then EAGAIN.
// ENAMETOOLONG, EINVAL: as above.
tl::expected<FileDescriptor, int> ConnectUnixSocket(const std::string& path,
                                                    std::chrono::nanoseconds patience,
                                                    SocketMode mode);

// The process that connected, as the kernel says it. Children that inherit its socket
// are not it.
struct UnixPeer {
  pid_t pid = 0;  // 0: cannot be seen from here (another PID namespace).
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // Supplementary ones.
};
tl::expected<UnixPeer, int> PeerOfUnixSocket(int socket);

}  // namespace perseus

#endif  // PERSEUS_COMMON_UNIX_SOCKET_H_
