// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_RELAY_H_
#define PERSEUS_RELAY_RELAY_H_

#include <chrono>
#include <cstdint>
#include <memory>
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

// Stands between the ranks of a node and the server, so that a node has two connections
// and not two for each rank, and ranks need no token (docs/explanation/relay.md).
namespace perseus::relay {

struct RelayOptions {
  ServerAddress server;
  std::string socket_path;  // Its folder is made where it is missing.
  PeerPlaces::MayUse may_use;
  int max_connections = 512;
  int max_connections_per_user = 256;
  double probe_seconds = 4;     // How often it looks whether the server should be asked.
  double linger_seconds = 0.2;  // That iteration reports wait for those of other ranks.
  PlanHubOptions plans;
  ForwarderOptions forwarder;
  LogSink log;
};

// Speaks the part of /api/v1 that trainers need on a Unix socket. Threads: two of the
// HTTP server, those of the forwarder, one for each job of the node. What it holds is
// bounded by its options. No exception leaves it.
class Relay {
 public:
  // Checks the options and serves. kInvalidInput: an address, a CA file or a path that
  // is none; kIo: it cannot listen, or cannot read the token. The server need not be there.
  static Result<std::unique_ptr<Relay>> Start(RelayOptions options);
  ~Relay();  // As Stop().
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Ends within a second or two: requests that wait are answered (503, long polls 204),
  // as ranks will connect again.
  void Stop();

  std::string url() const { return server_->url(); }  // "unix:/run/...".

  struct Counts {
    PlanHub::Counts plans;
    http::Counters http;
  };
  Counts counts() const { return {hub_->counts(), server_->counters()}; }

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
