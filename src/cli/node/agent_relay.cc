// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/agent_relay.h"

#include <fmt/format.h>
#include <poll.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/framework/terminal.h"
#include "cli/node/metrics_file.h"
#include "cli/node/relay_metrics.h"
#include "common/signal_hold.h"
#include "relay/relay.h"

namespace perseus::cli {
namespace {

relay::RelayOptions RelayOptionsOf(const ServerFlags& server, const agent::AccessList& access,
                                   std::string socket, const std::shared_ptr<Log>& log) {
  relay::RelayOptions options;
  options.server = {server.server, server.token_file, server.ca_file};
  options.socket_path = std::move(socket);
  options.may_use = [access](const UnixPeer& peer) { return access.MayUse(peer); };
  options.log = [log](bool is_error, std::string_view event, const std::string& message) {
    log->Write(is_error ? LogLevel::kError : LogLevel::kInfo, event, {{"message", message}});
  };
  return options;
}

MetricsFile::Collect RelayFigures(const relay::Relay* relay) {
  return [relay](double now_seconds) -> Result<metrics::Families> {
    return RelayFamilies(relay->counts(), now_seconds);
  };
}

}  // namespace

Result<Printout> ServeRelay(const AgentFlags& flags, const agent::AccessList& access) {
  const ServerFlags server = WithEnvironment(flags.server);
  if (server.server.empty()) {
    return InvalidInput(
        "which server? Give its address with --server, as in "
        "'perseus agent relay --server https://perseus:7787'");
  }
  const StopSignals signals;  // Before there are threads.
  const auto log = std::make_shared<Log>([](const std::string& line) { WriteStandardError(line); });
  const std::string socket = flags.socket.empty() ? kDefaultRelaySocket : flags.socket;
  const auto relay = relay::Relay::Start(RelayOptionsOf(server, access, socket, log));
  if (!relay) return tl::unexpected(relay.error());
  std::unique_ptr<MetricsFile> file;
  if (!flags.metrics_file.empty()) {
    auto started = MetricsFile::Start(flags.metrics_file, RelayFigures(relay->get()), log);
    if (!started) return tl::unexpected(started.error());
    file = *std::move(started);
  }
  // Whoever started us waits for this line; one that went away needs none.
  static_cast<void>(
      WriteStandardOutput(fmt::format("perseus agent relay: ready at {}\n", (*relay)->url())));
  pollfd stop = {signals.descriptor(), POLLIN, 0};
  while (::poll(&stop, 1, -1) != 1) {
  }
  file.reset();
  (*relay)->Stop();
  return Printout("");
}

}  // namespace perseus::cli
