// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_SERVE_H_
#define PERSEUS_SERVER_OPS_SERVE_H_

#include <functional>
#include <optional>
#include <string>

#include "common/log.h"
#include "perseus/result.h"

namespace perseus::server {

struct ServeOptions {
  std::string listen = "127.0.0.1:7787";
  std::string store = "sqlite:perseus.db";
  std::string token_file = {};
  std::string tls_certificate_file = {};
  std::string tls_key_file = {};
  std::string zeus_plan_file = {};
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  int max_connections = 12'000;
  int max_jobs = 10'000;                             // That have not finished.
  std::optional<double> keep_finished_seconds = {};  // None: for ever.
  int workers = 4;
  double grace_seconds = 5;  // For requests under way, at the end.
};

// Runs the server until SIGTERM or SIGINT; SIGHUP reads tokens and certificate
// again. `ready` is called once, with the address, when requests are answered, on a thread
// of its own, which may be left behind at the end. The calling thread must be the only one, as
// signals are blocked in all that follow. Where the store hangs at the end, or after a second
// signal, the process ends in here.
Result<void> Serve(const ServeOptions& options,
                   const std::function<void(const std::string&)>& ready);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_SERVE_H_
