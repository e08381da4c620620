// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// `perseus agent relay`: until SIGTERM.

#include "relay/relay.h"

#include <fmt/format.h>
#include <poll.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "agent/peer.h"
#include "cli/commands.h"
#include "cli/framework/terminal.h"
#include "cli/node/metrics_file.h"
#include "cli/node/node.h"
#include "common/signal_hold.h"

namespace perseus::cli {
namespace {

// Metrics of a relay's counts, for Prometheus. `now_seconds`: time of day.
metrics::Families RelayFamilies(const relay::Relay::Counts& counts, double now_seconds) {
  metrics::Families families = {metrics::BuildInfo("perseus_relay_build_info")};
  const auto counter = [&](const char* name, const char* help, auto value) {
    families.push_back(metrics::Counter(name, help, static_cast<double>(value)));
  };
  const auto gauge = [&](const char* name, const char* help, auto value) {
    families.push_back(metrics::Gauge(name, help, static_cast<double>(value)));
  };
  gauge("perseus_relay_server_up", "0: the server has not answered for some seconds.",
        counts.is_server_away ? 0 : 1);
  if (counts.seconds_since_answer) {
    gauge("perseus_relay_server_heard_timestamp_seconds",
          "When the server answered last, seconds since 1970.",
          now_seconds - *counts.seconds_since_answer);
  }
  gauge("perseus_relay_jobs", "Jobs of this node's ranks.", counts.plans.jobs);
  gauge("perseus_relay_ranks", "Ranks that ask for plans.", counts.plans.ranks);
  gauge("perseus_relay_waiting", "Requests of ranks that wait for a plan.", counts.plans.waiting);
  counter("perseus_relay_polls_total", "Long polls at the server for new plans.",
          counts.plans.polls);
  counter("perseus_relay_fetches_total", "Plans that were fetched at once.", counts.plans.fetches);
  gauge("perseus_relay_queue_requests", "Requests that wait for their turn at the server.",
        counts.requests.waiting);
  gauge("perseus_relay_queue_requests_limit", "How many may wait.", counts.requests.limit);
  counter("perseus_relay_forwarded_requests_total", "Requests for the server, long polls apart.",
          counts.requests.sent);
  counter("perseus_relay_unanswered_requests_total", "Of these, those without its answer.",
          counts.requests.unanswered);
  counter("perseus_relay_refused_requests_total", "Requests that were refused as too many waited.",
          counts.requests.refused);
  gauge("perseus_relay_connections", "Open connections of ranks.", counts.http.connections_now);
  counter("perseus_relay_refused_connections_total", "Connections beyond the limit.",
          counts.http.refused_connections);
  return families;
}

}  // namespace

Result<Printout> RunRelay(const AgentFlags& flags, const agent::AccessList& access) {
  const ServerFlags server = WithEnvironment(flags.server);
  if (server.server.empty()) {
    return InvalidInput(
        "which server? Give its address with --server, as in "
        "'perseus agent relay --server https://perseus:7787'");
  }
  const StopSignals signals;  // Before there are threads.
  const auto log = std::make_shared<Log>([](const std::string& line) { WriteStandardError(line); });
  relay::RelayOptions options;
  options.server = {server.server, server.token_file, server.ca_file};
  options.socket_path = flags.socket.empty() ? kDefaultRelaySocket : flags.socket;
  options.may_use = [&access](const UnixPeer& peer) { return access.MayUse(peer); };
  options.log = [log](bool is_error, std::string_view event, const std::string& message) {
    log->Write(is_error ? LogLevel::kError : LogLevel::kInfo, event, {{"message", message}});
  };
  const auto relay = relay::Relay::Start(std::move(options));
  if (!relay) return tl::unexpected(relay.error());
  auto file = MetricsFile::Start(
      flags.metrics_file,
      [&relay](double now_seconds) -> Result<metrics::Families> {
        return RelayFamilies((*relay)->counts(), now_seconds);
      },
      log);
  if (!file) return tl::unexpected(file.error());
  // Report readiness; a failed write (a reader that has gone) is no error.
  static_cast<void>(
      WriteStandardOutput(fmt::format("perseus agent relay: ready at {}\n", (*relay)->url())));
  pollfd stop = {signals.descriptor(), POLLIN, 0};
  while (::poll(&stop, 1, -1) != 1) {
  }
  file->reset();
  (*relay)->Stop();
  return Printout("");
}

}  // namespace perseus::cli
