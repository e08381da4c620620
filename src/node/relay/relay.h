// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_RELAY_H_
#define PERSEUS_RELAY_RELAY_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/mutex.h"
#include "common/unix_socket.h"
#include "http/server.h"
#include "perseus/result.h"
#include "relay/plan_hub.h"
#include "relay/upstream.h"

// The relay passes requests from the ranks of a node to the server. With it, a node needs two
// connections instead of two per rank, and ranks need no token (docs/explanation/agent.md).
namespace perseus::relay {

// The local user to whom a job belongs: the first who created it through this relay or named it in
// a request. The relay must know this because the server cannot distinguish its users: all of them
// use the relay's token. Thread-safe.
class JobOwners {
 public:
  explicit JobOwners(std::size_t most_of_a_user = 256) : most_of_a_user_(most_of_a_user) {}

  // Whether the user may name the job in requests. If it had no owner, it belongs to this user from
  // now on. Root always may. `user` none: the user is not known, and may not.
  bool MayUse(const std::string& job, std::optional<std::uint32_t> user) {
    if (!user) return false;
    const MutexLock lock(mutex_);
    const auto known = owners_.find(job);
    if (known != owners_.end()) {
      const bool is_owner = known->second.user == *user;
      if (is_owner) known->second.used = ++uses_;
      return is_owner || *user == 0;
    }
    // Of one user: his jobs are forgotten for his own, never those of others.
    if (counts_[*user] >= most_of_a_user_) ForgetOldest(*user);
    ++counts_[*user];
    owners_[job] = {*user, ++uses_};
    return true;
  }

 private:
  struct Owner {
    std::uint32_t user = 0;
    std::uint64_t used = 0;  // Value of `uses_` at its last use.
  };
  void ForgetOldest(std::uint32_t user) PERSEUS_REQUIRES(mutex_) {
    auto oldest = owners_.end();
    for (auto each = owners_.begin(); each != owners_.end(); ++each) {
      if (each->second.user != user) continue;
      if (oldest == owners_.end() || each->second.used < oldest->second.used) oldest = each;
    }
    if (oldest == owners_.end()) return;
    owners_.erase(oldest);
    --counts_[user];
  }

  const std::size_t most_of_a_user_;
  Mutex mutex_;
  std::uint64_t uses_ PERSEUS_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Owner> owners_ PERSEUS_GUARDED_BY(mutex_);          // By job.
  std::map<std::uint32_t, std::size_t> counts_ PERSEUS_GUARDED_BY(mutex_);  // Of jobs, by user.
};

struct RelayOptions {
  ServerAddress server;
  std::string socket_path;  // Its folder is made if it is missing.
  // Null: only root and the relay's own user may connect.
  std::function<bool(const UnixPeer&)> may_use;
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

  std::string url() const;  // "unix:/run/...".

  struct Counts {
    PlanHub::Counts plans;
    http::Counters http;
    Forwarder::Counts requests;
    bool is_server_away = false;
    std::optional<double> seconds_since_answer;  // Of the server; none: it has not answered yet.
  };
  Counts counts() const;

 private:
  class Impl;
  explicit Relay(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_RELAY_H_
