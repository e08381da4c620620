// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/notify.h"

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "common/file_descriptor.h"
#include "common/numbers.h"
#include "common/unix_socket.h"

namespace perseus::agent {

ServiceNotifier ServiceNotifier::FromEnvironment() {
  ServiceNotifier notifier;
  if (const char* path = std::getenv("NOTIFY_SOCKET")) notifier.socket_ = path;
  if (const char* text = std::getenv("WATCHDOG_USEC")) {
    const auto microseconds = ParseInteger<std::int64_t>(text);
    if (microseconds && *microseconds > 0) {
      notifier.watchdog_ = std::chrono::microseconds(*microseconds) / 2;
    }
  }
  return notifier;
}

void ServiceNotifier::Tell(std::string_view state) const {
  auto address = UnixAddressOf(socket_);
  if (!address) return;
  if (address->sun_path[0] == '@') address->sun_path[0] = '\0';  // Abstract.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return;
  ::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
           AsAddress(*address), size);
}

}  // namespace perseus::agent
