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
  std::string docs_folder = {};  // The documentation's site. "": there is none.
  LogFormat log_format = LogFormat::kText;
  LogLevel log_level = LogLevel::kInfo;
  int max_connections = 12'000;
  int max_jobs = 10'000;                             // Limit of unfinished jobs.
  std::optional<double> keep_finished_seconds = {};  // None: finished jobs are never deleted.
  std::optional<double> finish_silent_seconds = 7 * 86'400.0;  // None: silent jobs never end.
  int workers = 4;
  double grace_seconds = 0.8;  // Time that requests and commits under way have at the end.
};

// Runs the server until SIGTERM or SIGINT. SIGHUP makes it read tokens and certificate again.
// `ready` is called once with the address when the server answers requests, on a thread of its own
// that may outlive this call. The calling thread must be the only one of the process: all threads
// that start later inherit that signals are blocked. If the store hangs beyond the grace at the
// end, or a second signal comes, this function ends the process. Its exit code is 1 if sums of
// acknowledged reports were not written.
Result<void> Serve(const ServeOptions& options,
                   const std::function<void(const std::string&)>& ready);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_SERVE_H_
