// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_FORWARDER_H_
#define PERSEUS_RELAY_FORWARDER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/mutex.h"
#include "http/message.h"
#include "http/server.h"
#include "perseus/result.h"
#include "relay/server_line.h"

namespace perseus::relay {

struct ForwarderOptions {
  int lines = 2;
  std::size_t max_waiting = 512;
  std::size_t max_waiting_bytes = std::size_t{48} << 20;
  double deadline_seconds = 8;  // Less than clients wait for (10).
  std::chrono::milliseconds idle = std::chrono::seconds(5);
};

// Sends requests to the server in the order in which they came, over a few kept connections.
// Usually one is enough; others are closed after a while without work. The number, bytes and time
// of waiting requests are limited. Thread-safe.
class Forwarder {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::string body;
    http::Headers headers = {};
  };
  // Called once, on a thread of the forwarder, with the answer or (kIo, kCancelled) why
  // there is none.
  using Callback = std::function<void(const Result<http::Response>&)>;

  // Both must outlive this object.
  Forwarder(const ServerAddress* address, ServerHealth* health, ForwarderOptions options);
  ~Forwarder();  // As Stop().
  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;

  // Never blocks. False: too many requests wait, or it has stopped; `callback` is then not called.
  bool Send(Request request, Callback callback);

  struct Counts {
    std::size_t waiting = 0, limit = 0;  // Requests.
    std::uint64_t sent = 0;              // To the server, since the start,
    std::uint64_t unanswered = 0;        // and those of them that it did not answer.
    std::uint64_t refused = 0;           // As too many waited.
  };
  Counts counts();

  // Ends running and waiting requests with kCancelled. Must not be called from a callback.
  void Stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Item {
    Request request;
    Callback callback;
    Clock::time_point deadline;
  };
  struct Worker {
    explicit Worker(const ServerAddress* address, ServerHealth* health) : line(address, health) {}
    ServerLine line;
    ConditionVariable wake;
    bool is_woken = false;  // With mutex_.
    std::thread thread;
  };

  void Run(Worker* worker);
  bool Next(Worker* worker, Item* item);
  void Count(const Result<http::Response>& answer);
  Result<http::Response> Ask(Worker* worker, const Item& item);

  const ForwarderOptions options_;
  ServerHealth* const health_;
  Mutex mutex_;
  std::deque<Item> queue_ PERSEUS_GUARDED_BY(mutex_);
  std::size_t queued_bytes_ PERSEUS_GUARDED_BY(mutex_) = 0;
  // The one that worked last is the last.
  std::vector<Worker*> idle_ PERSEUS_GUARDED_BY(mutex_);
  Counts counts_ PERSEUS_GUARDED_BY(mutex_);  // Without `waiting` and `limit`.
  bool stopped_ PERSEUS_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Sends `request` and answers with the server's response, or with 503.
void Forward(Forwarder* forwarder, Forwarder::Request request, const http::Responder& responder);

// 503: too much waits.
http::Response TooManyRequests();

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_FORWARDER_H_
