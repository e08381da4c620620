// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_REPORT_BATCHES_H_
#define PERSEUS_RELAY_REPORT_BATCHES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/mutex.h"
#include "http/server.h"
#include "relay/forwarder.h"

namespace perseus::relay {

// Joins the iteration reports of a node's ranks, which come at about the same time,
// into one request for each job. Each rank gets an answer of its own: where the server
// refuses them together, they are sent one by one, so that no rank pays for another's
// report. Thread-safe.
class ReportBatches {
 public:
  // Runs a function after so many seconds.
  using After = std::function<void(double, std::function<void()>)>;

  // `forwarder` outlives it.
  ReportBatches(Forwarder* forwarder, After after, double linger_seconds);

  // `target`: of the job's iterations. Never blocks.
  void Add(const std::string& target, const std::string& body, const http::Responder& responder);

  // Sends all that waits for others.
  void Flush();

 private:
  struct Report {
    std::string body;
    http::Responder responder;
    // In the body, without their brackets.
    std::size_t reports_begin = 0, reports_size = 0;
    std::size_t clients_begin = 0, clients_size = 0;
    std::size_t count = 0;  // Of reports.
  };
  using Batch = std::vector<Report>;
  struct Pending {
    std::shared_ptr<Batch> batch;
    std::size_t bytes = 0;
  };

  static bool Read(Report* report);
  void FlushJob(const std::string& target, const std::shared_ptr<Batch>& batch);
  void Send(const std::string& target, const std::shared_ptr<Batch>& batch);
  void SendAlone(const std::string& target, const Report& report);
  void Answer(const std::string& target, const Batch& batch, const Result<http::Response>& result);

  Forwarder* const forwarder_;
  const After after_;
  const double linger_seconds_;
  Mutex mutex_;
  std::map<std::string, Pending> pending_ PERSEUS_GUARDED_BY(mutex_);  // By target.
};

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_REPORT_BATCHES_H_
