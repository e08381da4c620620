// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_SERVER_EVENTS_H_
#define PERSEUS_CLI_CLUSTER_SERVER_EVENTS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "cli/cluster/server_client.h"
#include "http/client.h"
#include "perseus/result.h"

namespace perseus::cli {

// The events of a server, on standard error also that it is gone, since when, and that it is
// back: it is asked for a sign of life where it says nothing, and connected to again.
class ServerEvents {
 public:
  // `subject`: the path of the job whose events these are, or one that always answers.
  static Result<ServerEvents> Open(ServerClient* client, const std::string& path,
                                   std::string subject);

  // The next event, however long it takes; none once nobody wants it any more, which is asked
  // every few seconds. Error: the server refuses, as the job is deleted.
  Result<std::optional<http::Event>> Next(const std::function<bool()>& is_wanted);

 private:
  ServerEvents(ServerClient* client, std::string path, std::string subject,
               http::EventReader reader)
      : client_(client),
        path_(std::move(path)),
        subject_(std::move(subject)),
        reader_(std::move(reader)) {}

  bool IsAlive();
  Result<void> ComeBack(const std::string& why, const std::function<bool()>& is_wanted);
  Result<bool> TryAgain();

  ServerClient* client_;
  std::string path_;
  std::string subject_;
  http::EventReader reader_;
  std::string last_id_;
};

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_SERVER_EVENTS_H_
