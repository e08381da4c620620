// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/peer.h"

#include <fmt/format.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "agent/journal.h"
#include "common/numbers.h"
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

tl::unexpected<Error> SocketFault(const std::string& path, const std::string& what) {
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
    return SocketFault(path, "this file is not a socket; choose another place (--socket)");
  }
  const FileDescriptor probe = NewSocket(SOCK_NONBLOCK);
  if (!probe.valid()) return SocketFault(path, SystemMessage(errno));
  if (::connect(probe.get(), AsAddress(address), sizeof(address)) == 0 || errno == EAGAIN) {
    return SocketFault(path,
                       "another agent listens here; stop it first, or choose another --socket");
  }
  if (errno != ECONNREFUSED || ::unlink(path.c_str()) != 0) {
    return SocketFault(path, fmt::format("a socket is in the way: {}", SystemMessage(errno)));
  }
  return {};
}

// Linux 6.5: the process that connected, without a race against reuse of its
// number. Headers of older systems lack the name.
constexpr int kSoPeerPidfd = 77;

FileDescriptor OpenPidfd(int socket, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof(fd);
  if (::getsockopt(socket, SOL_SOCKET, kSoPeerPidfd, &fd, &size) == 0) return FileDescriptor(fd);
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

bool HasEnded(int pidfd) {
  pollfd item = {pidfd, POLLIN, 0};
  return ::poll(&item, 1, 0) == 1;
}

template <typename T>
bool Holds(const std::vector<T>& list, T value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

bool IsAlwaysAllowed(uid_t uid) { return uid == 0 || uid == ::geteuid(); }

// The entry of a name, by one of the get..nam_r functions.
template <typename Entry, typename Get>
std::optional<Entry> Lookup(const std::string& name, const Get& get, std::vector<char>* buffer) {
  for (buffer->resize(4096); buffer->size() <= (std::size_t{1} << 20);
       buffer->resize(buffer->size() * 2)) {
    Entry entry{};
    Entry* found = nullptr;
    const int error = get(name.c_str(), &entry, buffer->data(), buffer->size(), &found);
    if (error == ERANGE) continue;
    return found == nullptr ? std::nullopt : std::optional(entry);
  }
  return std::nullopt;
}

}  // namespace

Result<ListeningSocket> ListeningSocket::Listen(const std::string& path) {
  const Result<sockaddr_un> address = AddressOf(path);
  if (!address) return tl::unexpected(address.error());
  if (auto made = MakeFolderFor(path); !made) {
    return SocketFault(path, made.error().message + "; choose another place (--socket)");
  }
  if (auto removed = RemoveStale(path, *address); !removed) return tl::unexpected(removed.error());
  FileDescriptor socket = NewSocket(SOCK_NONBLOCK);
  if (!socket.valid()) return SocketFault(path, SystemMessage(errno));
  if (::bind(socket.get(), AsAddress(*address), sizeof(*address)) != 0) {
    return SocketFault(path, fmt::format("cannot listen: {}", SystemMessage(errno)));
  }
  ListeningSocket listening(path, std::move(socket));
  if (::chmod(path.c_str(), 0666) != 0 || ::listen(listening.descriptor(), 128) != 0) {
    return SocketFault(path, fmt::format("cannot listen: {}", SystemMessage(errno)));
  }
  return listening;
}

ListeningSocket::~ListeningSocket() {
  if (socket_.valid()) ::unlink(path_.c_str());
}

Result<Peer> PeerOf(int socket) {
  auto seen = PeerOfUnixSocket(socket);
  if (!seen) {
    return MakeError(ErrorCode::kIo, fmt::format("cannot find out which process connected: {}",
                                                 SystemMessage(seen.error())));
  }
  if (seen->pid <= 0) {
    return MakeError(ErrorCode::kIo,
                     "the process that connected cannot be seen from the agent, so its end would "
                     "not be noticed; run the agent in the host's PID namespace");
  }
  Peer peer;
  static_cast<UnixPeer&>(peer) = *std::move(seen);
  peer.pidfd = OpenPidfd(socket, peer.pid);
  if (!peer.pidfd.valid() || HasEnded(peer.pidfd.get())) {
    return MakeError(ErrorCode::kIo,
                     fmt::format("process {}, which connected, has ended; a process must open the "
                                 "agent's socket itself, not get it from its parent",
                                 peer.pid));
  }
  return peer;
}

bool AccessList::MayUse(const UnixPeer& peer) const {
  return MayOperate(peer) || Holds(users, peer.uid) || Holds(groups, peer.gid) ||
         std::any_of(peer.groups.begin(), peer.groups.end(),
                     [this](gid_t group) { return Holds(groups, group); });
}

bool AccessList::MayOperate(const UnixPeer& peer) const {
  return IsAlwaysAllowed(peer.uid) || Holds(operators, peer.uid);
}

Result<uid_t> UserId(const std::string& name_or_number) {
  if (const auto number = ParseInteger<uid_t>(name_or_number)) return *number;
  std::vector<char> buffer;
  if (const auto entry = Lookup<passwd>(name_or_number, ::getpwnam_r, &buffer)) {
    return entry->pw_uid;
  }
  return InvalidInput(fmt::format("there is no user '{}' on this system", name_or_number));
}

Result<gid_t> GroupId(const std::string& name_or_number) {
  if (const auto number = ParseInteger<gid_t>(name_or_number)) return *number;
  std::vector<char> buffer;
  if (const auto entry = Lookup<group>(name_or_number, ::getgrnam_r, &buffer)) {
    return entry->gr_gid;
  }
  return InvalidInput(fmt::format("there is no group '{}' on this system", name_or_number));
}

std::string DescribeUser(uid_t uid) {
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Closer> file(std::fopen("/etc/passwd", "re"));
  if (file) {
    std::vector<char> buffer(4096);
    passwd entry{};
    passwd* found = nullptr;
    while (::fgetpwent_r(file.get(), &entry, buffer.data(), buffer.size(), &found) == 0) {
      if (found->pw_uid == uid) return fmt::format("{} (uid {})", found->pw_name, uid);
    }
  }
  return fmt::format("uid {}", uid);
}

}  // namespace perseus::agent
