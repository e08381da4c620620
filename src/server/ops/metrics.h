// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_METRICS_H_
#define PERSEUS_SERVER_OPS_METRICS_H_

#include <memory>
#include <string>

#include "http/server.h"
#include "server/runtime/job_service.h"

namespace perseus::server {

// What /metrics shows. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // One answered request. Does not block.
  void Count(const http::AccessRecord& record);

  // The text format of Prometheus, version 0.0.4.
  std::string Text(const JobService& service, const http::Counters& http) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_METRICS_H_
