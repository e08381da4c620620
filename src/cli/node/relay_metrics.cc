// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/node/relay_metrics.h"

namespace perseus::cli {

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

}  // namespace perseus::cli
