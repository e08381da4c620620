// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "agent/safe_place.h"
#include "common/unix_socket.h"

namespace perseus::agent {
namespace {

Result<sockaddr_un> AddressOf(const std::string& path) {
  const auto address = UnixAddressOf(path);
  if (address) return *address;
  return InvalidInput(
      fmt::format("'{}': the path of a Unix socket has 1 to {} bytes; choose "
                  "another one (--socket PATH)",
                  path, sizeof(address->sun_path) - 1));
}

tl::unexpected<Error> Fault(const std::string& path, const std::string& what) {
  return MakeError(ErrorCode::kIo, fmt::format("{}: {}", path, what));
}

FileDescriptor NewSocket(int flags) {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// Removes a socket at which nobody listens; anything else stays.
Result<void> RemoveStale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return Fault(path, "this file is not a socket; choose another place (--socket)");
  }
  const FileDescriptor probe = NewSocket(SOCK_NONBLOCK);
  if (!probe.valid()) return Fault(path, SystemMessage(errno));
  if (::connect(probe.get(), AsAddress(address), sizeof(address)) == 0 || errno == EAGAIN) {
    return Fault(path, "another agent listens here; stop it first, or choose another --socket");
  }
  if (errno != ECONNREFUSED || ::unlink(path.c_str()) != 0) {
    return Fault(path, fmt::format("a socket is in the way: {}", SystemMessage(errno)));
  }
  return {};
}

}  // namespace

Result<ListeningSocket> ListeningSocket::Listen(const std::string& path) {
  const Result<sockaddr_un> address = AddressOf(path);
  if (!address) return tl::unexpected(address.error());
  if (auto made = MakeFolderFor(path); !made) {
    return Fault(path, made.error().message + "; choose another place (--socket)");
  }
  if (auto removed = RemoveStale(path, *address); !removed) return tl::unexpected(removed.error());
  FileDescriptor socket = NewSocket(SOCK_NONBLOCK);
  if (!socket.valid()) return Fault(path, SystemMessage(errno));
  if (::bind(socket.get(), AsAddress(*address), sizeof(*address)) != 0) {
    return Fault(path, fmt::format("cannot listen: {}", SystemMessage(errno)));
  }
  ListeningSocket listening(path, std::move(socket));
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listening.descriptor(), 128) != 0) {
    return Fault(path, fmt::format("cannot listen: {}", SystemMessage(errno)));
  }
  return listening;
}

ListeningSocket::~ListeningSocket() {
  if (socket_.valid()) ::unlink(path_.c_str());
}

}  // namespace perseus::agent
