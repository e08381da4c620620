// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_NOTIFY_H_
#define PERSEUS_AGENT_NOTIFY_H_

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace perseus::agent {

// Reports the state of the service to systemd (as sd_notify(3), without its library). Does nothing
// if systemd did not start the process.
class ServiceNotifier {
 public:
  // Reads $NOTIFY_SOCKET and $WATCHDOG_USEC. Call it once at the start.
  static ServiceNotifier FromEnvironment();

  // "READY=1", "STOPPING=1", "WATCHDOG=1". Best effort.
  void Tell(std::string_view state) const;

  // How often to send "WATCHDOG=1": half of systemd's time limit.
  std::optional<std::chrono::nanoseconds> watchdog() const { return watchdog_; }

 private:
  std::string socket_;
  std::optional<std::chrono::nanoseconds> watchdog_;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_NOTIFY_H_
