// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "common/nearest_name.h"
#include "common/numbers.h"
#include "common/unix_socket.h"

namespace perseus::http {
namespace {

constexpr int kBacklog = 4096;  // The system lowers it to net.core.somaxconn.

union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
  sockaddr_un local;
};

struct BoundAddress {
  SocketAddress address{};
  socklen_t size = 0;
};

BoundAddress ToSystem(const ListenAddress& address) {
  BoundAddress bound;
  if (!address.unix_path.empty()) {
    bound.address.local.sun_family = AF_UNIX;
    std::memcpy(bound.address.local.sun_path, address.unix_path.c_str(),
                address.unix_path.size() + 1);
    bound.size = sizeof(sockaddr_un);
  } else if (::inet_pton(AF_INET, address.host.c_str(), &bound.address.v4.sin_addr) == 1) {
    bound.address.v4.sin_family = AF_INET;
    bound.address.v4.sin_port = htons(static_cast<std::uint16_t>(address.port));
    bound.size = sizeof(sockaddr_in);
  } else {
    ::inet_pton(AF_INET6, address.host.c_str(), &bound.address.v6.sin6_addr);
    bound.address.v6.sin6_family = AF_INET6;
    bound.address.v6.sin6_port = htons(static_cast<std::uint16_t>(address.port));
    bound.size = sizeof(sockaddr_in6);
  }
  return bound;
}

// "127.0.0.1:4711", "[::1]:4711" or "unix".
std::string PeerName(const SocketAddress& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.any.sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &address.v4.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(address.v4.sin_port));
  }
  if (address.any.sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &address.v6.sin6_addr, text.data(), text.size());
    return fmt::format("[{}]:{}", text.data(), ntohs(address.v6.sin6_port));
  }
  return "unix";
}

tl::unexpected<Error> CannotListen(const ListenAddress& address, const std::string& reason) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  const std::string name = !address.unix_path.empty() ? address.unix_path
                           : is_v6 ? fmt::format("[{}]:{}", address.host, address.port)
                                   : fmt::format("{}:{}", address.host, address.port);
  return MakeError(ErrorCode::kIo, fmt::format("Cannot listen on {}: {}.", name, reason));
}

// The fault of the address, and a remedy.
std::string ReasonOf(int error, const ListenAddress& address) {
  const bool is_unix = !address.unix_path.empty();
  const std::string folder = std::filesystem::path(address.unix_path).parent_path().string();
  switch (error) {
    case EADDRINUSE:
      return "another program listens there; stop it or choose another address";
    case EADDRNOTAVAIL:
      return "this machine does not have that address; give one that it has, or 0.0.0.0 for all";
    case ENOENT:
    case ENOTDIR:
      if (!is_unix) break;
      return fmt::format("there is no folder {}; make it, or choose another path", folder);
    case EACCES:
      return is_unix
                 ? fmt::format("this user may not write in {}; allow it, or choose another path",
                               folder.empty() ? "this folder" : folder)
                 : "this user may not listen on that port; choose one from 1024 on";
    default:
      break;
  }
  return SystemMessage(error);
}

// Whether a server listens on the socket file.
bool AnswersOn(const BoundAddress& bound) {
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return probe.valid() && (::connect(probe.get(), &bound.address.any, bound.size) == 0 ||
                           errno == EAGAIN || errno == EINPROGRESS);
}

// Binds with no more than `mode` from the first moment on.
int BindUnix(int socket, const BoundAddress& bound, int mode) {
  // Mode of the socket itself: what bind() gives the file, less the umask, which is
  // the whole process's and so left alone.
  const auto system_mode = static_cast<mode_t>(mode);
  if (::fchmod(socket, system_mode) != 0) return errno;
  if (::bind(socket, &bound.address.any, bound.size) != 0) return errno;
  // Restore the bits that the umask took away.
  return ::chmod(bound.address.local.sun_path, system_mode) == 0 ? 0 : errno;
}

}  // namespace

bool IsNumericHost(const std::string& host, bool* is_local) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4) == 1) {
    *is_local = (ntohl(v4.s_addr) >> 24) == 127;
    return true;
  }
  if (::inet_pton(AF_INET6, host.c_str(), &v6) != 1) return false;
  *is_local = IN6_IS_ADDR_LOOPBACK(&v6);
  return true;
}

Result<ListenAddress> ParseListenAddress(std::string_view text) {
  ListenAddress address;
  if (text.starts_with("unix:")) {
    address.unix_path = text.substr(5);
    address.is_local = true;
    if (!UnixAddressOf(address.unix_path)) {
      return InvalidInput(
          fmt::format("The path of a Unix socket has 1 to {} bytes, but this has {}.",
                      sizeof(sockaddr_un::sun_path) - 1, address.unix_path.size()));
    }
    return address;
  }
  const std::size_t colon = text.rfind(':');
  const std::optional<int> port =
      colon == std::string_view::npos ? std::nullopt : ParseInteger<int>(text.substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return InvalidInput(
        fmt::format("{} is no address to listen on: write HOST:PORT, as 127.0.0.1:7787, or "
                    "unix:/path.",
                    Shown(text)));
  }
  address.port = *port;
  address.host = text.substr(0, colon);
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (address.host.starts_with('[') && address.host.ends_with(']')) {
    address.host = address.host.substr(1, address.host.size() - 2);
  } else if (address.host.find(':') != std::string::npos) {
    return InvalidInput(fmt::format(
        "{} is no address to listen on: write IPv6 in brackets, as [::1]:7787.", Shown(text)));
  }
  if (!IsNumericHost(address.host, &address.is_local)) {
    return InvalidInput(
        fmt::format("{} is no address to listen on: the host has to be a number, as 127.0.0.1, "
                    "or 0.0.0.0 for all interfaces.",
                    Shown(text)));
  }
  return address;
}

Listener::Listener(FileDescriptor socket, int port, std::string unix_path)
    : socket_(std::move(socket)), port_(port), unix_path_(std::move(unix_path)) {}

Listener::Listener(Listener&& other) noexcept
    : socket_(std::move(other.socket_)),
      port_(other.port_),
      unix_path_(std::exchange(other.unix_path_, {})) {}

Listener::~Listener() { Close(); }

void Listener::Close() {
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
  socket_ = FileDescriptor();
}

Result<Listener> Listener::Open(const ListenAddress& address, int unix_mode) {
  BoundAddress bound = ToSystem(address);
  FileDescriptor socket(
      ::socket(bound.address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return CannotListen(address, SystemMessage(errno));
  int error = 0;
  if (!address.unix_path.empty()) {
    error = BindUnix(socket.get(), bound, unix_mode);
    struct stat status {};
    if (error == EADDRINUSE && ::lstat(address.unix_path.c_str(), &status) == 0 &&
        S_ISSOCK(status.st_mode) && !AnswersOn(bound)) {
      ::unlink(address.unix_path.c_str());
      error = BindUnix(socket.get(), bound, unix_mode);
    }
  } else {
    const int on = 1;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (::bind(socket.get(), &bound.address.any, bound.size) != 0) error = errno;
  }
  if (error == 0 && ::listen(socket.get(), kBacklog) != 0) error = errno;
  if (error != 0) {
    return CannotListen(address, ReasonOf(error, address));
  }
  if (!address.unix_path.empty()) return Listener(std::move(socket), 0, address.unix_path);
  socklen_t size = sizeof(bound.address);
  if (::getsockname(socket.get(), &bound.address.any, &size) != 0) {
    return CannotListen(address, SystemMessage(errno));
  }
  const int port = ntohs(bound.address.any.sa_family == AF_INET ? bound.address.v4.sin_port
                                                                : bound.address.v6.sin6_port);
  return Listener(std::move(socket), port, "");
}

FileDescriptor Listener::Accept(std::string* peer) const {
  SocketAddress address{};
  socklen_t size = sizeof(address);
  FileDescriptor accepted(
      ::accept4(socket_.get(), &address.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (accepted.valid()) {
    *peer = PeerName(address);
    if (address.any.sa_family != AF_UNIX) {
      const int on = 1;
      ::setsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
  }
  return accepted;
}

}  // namespace perseus::http
