// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_METRICS_H_
#define PERSEUS_SERVER_OPS_METRICS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "http/server.h"
#include "server/runtime/job_service.h"

namespace perseus::server {

// Figures that neither JobService nor http::Counters has.
struct ServerFigures {
  std::size_t max_connections = 0;
  bool is_store_up = true;
  std::optional<double> certificate_expires_at_seconds = {};  // None: no TLS.
};

// The metrics of /metrics. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Counts an answered request. Does not block.
  void Count(const http::AccessRecord& record);

  // All metrics in Prometheus' text format, version 0.0.4.
  std::string Text(const JobService& service, const http::Counters& http,
                   const ServerFigures& figures) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_METRICS_H_
