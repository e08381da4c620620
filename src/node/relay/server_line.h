// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_SERVER_LINE_H_
#define PERSEUS_RELAY_SERVER_LINE_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "common/mutex.h"
#include "http/client.h"
#include "http/message.h"
#include "perseus/result.h"

// The way to the server, for the threads of a relay.
namespace perseus::relay {

// Takes one event for the log. From any thread.
using LogSink =
    std::function<void(bool is_error, std::string_view event, const std::string& message)>;

struct ServerAddress {
  std::string url;         // As http::ClientOptions.
  std::string token_file;  // Holds one token; "": none.
  std::string ca_file;     // "": the system's certificates.
};

// Whether the server answers, as all lines to it see it. Thread-safe.
class ServerHealth {
 public:
  explicit ServerHealth(LogSink log) : log_(std::move(log)) {}

  void Answered();
  void Failed(const std::string& why);

  // It has not answered since a failure of some seconds ago: not just a restart.
  bool is_away() const;
  // Whether somebody should ask it, since nobody has for long: so that the log says that it is
  // away, or back, also while no rank asks.
  bool wants_probe() const;
  // Calls failed until just now, so that another one needs not be tried.
  bool fails_fast() const;
  std::string why() const;

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

// One kept connection to the server. One thread at a time, but for Cancel().
class ServerLine {
 public:
  // Both outlive it.
  ServerLine(const ServerAddress* address, ServerHealth* health)
      : address_(address), health_(health) {}

  // The answer, without the headers that concern a connection alone. Errors: kIo (no
  // answer, or the server refuses the relay's token, which is no answer for a rank),
  // kCancelled.
  Result<http::Response> Call(std::string_view method, std::string_view target,
                              std::string_view body, double deadline_seconds,
                              http::Headers headers = {});

  // The next call connects anew, with the token that the file then holds.
  void Close();
  bool is_open() const;

  // Ends a call that waits, and every later one. Any thread.
  void Cancel();

 private:
  Result<std::shared_ptr<http::Client>> Open();

  const ServerAddress* address_;
  ServerHealth* health_;
  mutable Mutex mutex_;
  std::shared_ptr<http::Client> client_ PERSEUS_GUARDED_BY(mutex_);
  bool cancelled_ PERSEUS_GUARDED_BY(mutex_) = false;
};

// 503 for a rank, where there is no answer.
http::Response UnavailableResponse(const Error& error);

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_SERVER_LINE_H_
