// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/connect.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/mutex.h"
#include "common/unix_socket.h"
#include "http/worker_pool.h"

namespace perseus::http {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

// A remedy, for the end of a sentence.
std::string_view AdviceOn(int error) {
  switch (error) {
    case ECONNREFUSED:
    case ENOENT:
      return "; nobody listens there: start the server, or correct the address";
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return "; correct the address, or let it through the firewall";
    case EACCES:
      return "; the socket's owner lets only some users and groups in";
    default:
      return "";
  }
}

tl::unexpected<Error> Unreachable(const Endpoint& endpoint, std::string_view reason) {
  return MakeError(ErrorCode::kIo, fmt::format("Cannot reach {}: {}.", endpoint.url, reason));
}

// The addresses that getaddrinfo finds; `error` is its return value.
Addresses Resolve(const std::string& host, int port, int flags, int* error) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  *error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {*error == 0 ? found : nullptr, ::freeaddrinfo};
}

// Shared with the thread that looks a name up.
struct Lookup {
  FileDescriptor done;  // An eventfd.
  Mutex mutex;
  Addresses addresses PERSEUS_GUARDED_BY(mutex){nullptr, ::freeaddrinfo};
  int error PERSEUS_GUARDED_BY(mutex) = 0;
};

Result<Addresses> LookUp(const Endpoint& endpoint, Deadline deadline, const CancelSignal& cancel) {
  int error = 0;
  Addresses numeric = Resolve(endpoint.host, endpoint.port, AI_NUMERICHOST, &error);
  if (numeric) return numeric;
  auto lookup = std::make_shared<Lookup>();
  lookup->done = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!lookup->done.valid()) return Unreachable(endpoint, SystemMessage(errno));
  QuietThread([lookup, host = endpoint.host, port = endpoint.port] {
    int outcome = 0;
    Addresses addresses = Resolve(host, port, AI_ADDRCONFIG, &outcome);
    const MutexLock lock(lookup->mutex);
    lookup->addresses = std::move(addresses);
    lookup->error = outcome;
    ::eventfd_write(lookup->done.get(), 1);
  }).detach();
  switch (WaitFor(lookup->done.get(), POLLIN, deadline, cancel)) {
    case Waited::kCancelled:
      return MakeError(ErrorCode::kCancelled, "The call was cancelled.");
    case Waited::kDeadline:
      return Unreachable(endpoint, "looking its name up took too long");
    case Waited::kReady:
      break;
  }
  const MutexLock lock(lookup->mutex);
  if (!lookup->addresses) {
    return Unreachable(endpoint,
                       fmt::format("its name is not known ({})", ::gai_strerror(lookup->error)));
  }
  return std::move(lookup->addresses);
}

// errno, 0 once it is connected.
Result<int> FinishConnect(int socket, int started, Deadline deadline, const CancelSignal& cancel) {
  if (started == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  switch (WaitFor(socket, POLLOUT, deadline, cancel)) {
    case Waited::kCancelled:
      return MakeError(ErrorCode::kCancelled, "The call was cancelled.");
    case Waited::kDeadline:
      return ETIMEDOUT;
    case Waited::kReady:
      break;
  }
  int error = 0;
  socklen_t size = sizeof(error);
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Result<FileDescriptor> ConnectUnix(const Endpoint& endpoint, Deadline deadline,
                                   const CancelSignal& cancel) {
  const auto address = UnixAddressOf(endpoint.unix_path);
  if (!address) return Unreachable(endpoint, SystemMessage(address.error()));
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return Unreachable(endpoint, SystemMessage(errno));
  for (;;) {
    const int started = ::connect(socket.get(), AsAddress(*address), sizeof(*address));
    // The server's queue is full, and nothing tells when it no longer is.
    if (started != 0 && errno == EAGAIN) {
      const Deadline soon = std::min(deadline, DeadlineIn(0.01));
      const Waited waited = WaitFor(-1, 0, soon, cancel);
      if (waited == Waited::kDeadline && soon < deadline) continue;
      errno = ETIMEDOUT;
    }
    Result<int> error = FinishConnect(socket.get(), started, deadline, cancel);
    if (!error) return tl::unexpected(error.error());
    if (*error != 0)
      return Unreachable(endpoint, SystemMessage(*error) + std::string(AdviceOn(*error)));
    return socket;
  }
}

}  // namespace

Result<FileDescriptor> ConnectSocket(const Endpoint& endpoint, Deadline deadline,
                                     const CancelSignal& cancel) {
  if (!endpoint.unix_path.empty()) return ConnectUnix(endpoint, deadline, cancel);
  const Result<Addresses> addresses = LookUp(endpoint, deadline, cancel);
  if (!addresses) return tl::unexpected(addresses.error());
  std::vector<const addrinfo*> candidates;
  for (const addrinfo* a = addresses->get(); a != nullptr; a = a->ai_next) candidates.push_back(a);
  int last_error = EADDRNOTAVAIL;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const addrinfo* address = candidates[i];
    FileDescriptor socket(
        ::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) {
      last_error = errno;
      continue;
    }
    // An address that does not answer leaves time for those after it.
    const Deadline now = std::chrono::steady_clock::now();
    const Deadline share =
        now + (deadline - now) / static_cast<std::int64_t>(candidates.size() - i);
    const int started = ::connect(socket.get(), address->ai_addr, address->ai_addrlen);
    Result<int> error = FinishConnect(socket.get(), started, share, cancel);
    if (!error) return tl::unexpected(error.error());
    if (*error == 0) {
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      return socket;
    }
    last_error = *error;
  }
  return Unreachable(endpoint, SystemMessage(last_error) + std::string(AdviceOn(last_error)));
}

}  // namespace perseus::http
