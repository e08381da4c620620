// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_RELAY_H_
#define PERSEUS_RELAY_RELAY_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/server.h"
#include "perseus/result.h"
#include "relay/forwarder.h"
#include "relay/job_owners.h"
#include "relay/peer_places.h"
#include "relay/plan_hub.h"
#include "relay/report_batches.h"
#include "relay/server_line.h"

// The relay passes requests from the ranks of a node to the server. With it, a node needs two
// connections instead of two per rank, and ranks need no token (docs/explanation/relay.md).
namespace perseus::relay {

struct RelayOptions {
  ServerAddress server;
  std::string socket_path;  // Its folder is made if it is missing.
  PeerPlaces::MayUse may_use;
  int max_connections = 512;
  int max_connections_per_user = 256;
  double probe_seconds = 4;     // How often to check whether to probe the server.
  double linger_seconds = 0.2;  // How long iteration reports wait for those of other ranks.
  PlanHubOptions plans;
  ForwarderOptions forwarder;
  LogSink log;
};

// Serves the part of /api/v1 that trainers need on a Unix socket. Threads: two of the HTTP server,
// those of the forwarder, and one per job of the node. Its options limit its memory. It throws no
// exceptions.
class Relay {
 public:
  // Checks the options and starts to serve, even if the server cannot be reached yet.
  // kInvalidInput: address, CA file or path are invalid. kIo: it cannot listen or read the token.
  static Result<std::unique_ptr<Relay>> Start(RelayOptions options);
  ~Relay();  // As Stop().
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Stops within a second or two. Answers waiting requests (503; long polls: 204), so that ranks
  // connect again.
  void Stop();

  std::string url() const { return server_->url(); }  // "unix:/run/...".

  struct Counts {
    PlanHub::Counts plans;
    http::Counters http;
    Forwarder::Counts requests;
    bool is_server_away = false;
    std::optional<double> seconds_since_answer;  // Of the server; none: it has not answered yet.
  };
  Counts counts() const {
    return {hub_->counts(), server_->counters(), forwarder_->counts(), health_.is_away(),
            health_.seconds_since_answer()};
  }

 private:
  explicit Relay(RelayOptions options);
  Result<void> Open();
  std::vector<http::Route> Routes();
  http::Handler OfOwner(http::Handler handle);
  void CreateJob(const http::Request& request, const http::Responder& responder);
  void Probe();

  const RelayOptions options_;
  ServerHealth health_;
  PeerPlaces places_;
  JobOwners owners_;
  std::unique_ptr<PlanHub> hub_;
  std::unique_ptr<Forwarder> forwarder_;
  std::unique_ptr<ReportBatches> reports_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_RELAY_H_
