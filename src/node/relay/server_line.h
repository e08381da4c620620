// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_SERVER_LINE_H_
#define PERSEUS_RELAY_SERVER_LINE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/mutex.h"
#include "http/client.h"
#include "http/message.h"
#include "perseus/result.h"

// The relay's connections to the server.
namespace perseus::relay {

// Writes one event to the log. Called from any thread.
using LogSink =
    std::function<void(bool is_error, std::string_view event, const std::string& message)>;

struct ServerAddress {
  std::string url;         // As http::ClientOptions.
  std::string token_file;  // Holds one token; "": none.
  std::string ca_file;     // "": the system's certificates.
};

// Whether the server answers, according to all connections to it. Thread-safe.
class ServerHealth {
 public:
  explicit ServerHealth(LogSink log) : log_(std::move(log)) {}

  void Answered();
  void Failed(const std::string& why);

  // Whether the server has not answered since a failure some seconds ago, which is too long for a
  // restart.
  bool is_away() const;
  // Whether the relay should probe the server because no request has been sent for long. So the log
  // shows when the server goes away or comes back, even if no rank sends requests.
  bool wants_probe() const;
  // Whether calls failed until just now, so that a new call may fail without being tried.
  bool fails_fast() const;
  std::string why() const;
  // None: it has not answered yet.
  std::optional<double> seconds_since_answer() const;

 private:
  using Clock = std::chrono::steady_clock;
  bool IsAwayAt(Clock::time_point now) const PERSEUS_REQUIRES(mutex_);

  const LogSink log_;
  mutable Mutex mutex_;
  int failures_ PERSEUS_GUARDED_BY(mutex_) = 0;  // In a row.
  Clock::time_point first_failure_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point last_failure_ PERSEUS_GUARDED_BY(mutex_);
  Clock::time_point last_answer_ PERSEUS_GUARDED_BY(mutex_);
  std::string why_ PERSEUS_GUARDED_BY(mutex_);
  bool told_ PERSEUS_GUARDED_BY(mutex_) = false;
};

// One kept connection to the server. Not thread-safe, except Cancel().
class ServerLine {
 public:
  // Both must outlive this object.
  ServerLine(const ServerAddress* address, ServerHealth* health)
      : address_(address), health_(health) {}

  // Returns the answer without headers about the connection. kIo: no answer, or the server refuses
  // the relay's token (a rank must not see that answer). kCancelled: Cancel() was called.
  Result<http::Response> Call(std::string_view method, std::string_view target,
                              std::string_view body, double deadline_seconds,
                              http::Headers headers = {});

  // Closes the connection. The next call opens a new one and reads the token file again.
  void Close();
  bool is_open() const;

  // Makes a waiting call and all later calls fail. May be called from any thread.
  void Cancel();

 private:
  Result<std::shared_ptr<http::Client>> Open();

  const ServerAddress* address_;
  ServerHealth* health_;
  mutable Mutex mutex_;
  std::shared_ptr<http::Client> client_ PERSEUS_GUARDED_BY(mutex_);
  bool cancelled_ PERSEUS_GUARDED_BY(mutex_) = false;
};

// The answer (503) to a rank if the server gave none.
http::Response UnavailableResponse(const Error& error);

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_SERVER_LINE_H_
