// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_NOTIFY_H_
#define PERSEUS_AGENT_NOTIFY_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::agent {

// Tells systemd how the service is (sd_notify(3), without its library). Says
// nothing where nobody asked. A plain value.
class ServiceNotifier {
 public:
  // From $NOTIFY_SOCKET and $WATCHDOG_USEC, once, at start.
  static ServiceNotifier FromEnvironment();

  // "READY=1", "STOPPING=1", "WATCHDOG=1". Best effort.
  void Tell(std::string_view state) const;

  // How often "WATCHDOG=1" is wanted: half the time that systemd waits.
  std::optional<std::chrono::nanoseconds> watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  std::optional<std::chrono::nanoseconds> watchdog_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_NOTIFY_H_
