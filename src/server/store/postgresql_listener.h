// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_STORE_POSTGRESQL_LISTENER_H_
#define PERSEUS_SERVER_STORE_POSTGRESQL_LISTENER_H_

#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/file_descriptor.h"
#include "server/store/backend.h"
#include "server/store/link.h"

namespace perseus::store {

// LISTENs on the channel "perseus" on a connection of its own. Messages are "JOB REVISION SERVER".
// This does not work behind a pooler, which gives the connection to other clients between two
// transactions. There, and while there is no connection, only `look` is called from time to time.
class PostgresqlListener : public Watcher {
 public:
  // `uri` is that of PostgresqlAddress. The functions are called on one thread.
  PostgresqlListener(std::string uri, std::string server_id,
                     std::function<void(std::vector<std::string>)> woken,
                     std::function<void()> look);
  ~PostgresqlListener() override;

 private:
  using Clock = std::chrono::steady_clock;
  struct CloseConnection {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  enum class Woken : std::uint8_t { kStop, kSocket, kTime };

  void ListenAndLook();
  void Connect();
  bool ConnectWithin(Clock::time_point until);
  bool Listen(Clock::time_point until);
  std::string Ask(const std::string& query, Clock::time_point until);
  void TakeMessages();
  void Drop();
  Woken Wait(short events, Clock::time_point until) const;

  const std::string uri_;
  const std::string server_id_;
  const std::function<void(std::vector<std::string>)> woken_;
  const std::function<void()> look_;
  const FileDescriptor stop_;  // An eventfd.

  // The members below are used by the thread only.
  std::unique_ptr<PGconn, CloseConnection> connection_;
  bool is_pooled_ = false;
  Backoff backoff_;
  Clock::time_point connect_at_ = {};

  std::thread thread_;
};

}  // namespace perseus::store

#endif  // PERSEUS_SERVER_STORE_POSTGRESQL_LISTENER_H_
