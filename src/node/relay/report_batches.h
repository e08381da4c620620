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

// Combines the iteration reports of a node's ranks, which come at about the same time, into one
// request per job. Each rank gets its own answer: if the server refuses a combined request, the
// reports are sent one by one, so that an invalid report affects only its own rank. Thread-safe.
class ReportBatches {
 public:
  // Runs a function after a number of seconds.
  using After = std::function<void(double, std::function<void()>)>;

  // `forwarder` must outlive this object.
  ReportBatches(Forwarder* forwarder, After after, double linger_seconds);

  // `target`: the path of the job's iterations. Never blocks.
  void Add(const std::string& target, const std::string& body, const http::Responder& responder);

  // Sends all waiting reports.
  void Flush();

 private:
  struct Report {
    std::string body;
    http::Responder responder;
    // Positions of both lists in the body, without their brackets.
    std::size_t reports_begin = 0, reports_size = 0;
    std::size_t clients_begin = 0, clients_size = 0;
    std::size_t count = 0;  // Number of reports.
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
