// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_LOG_H_
#define PERSEUS_COMMON_LOG_H_

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/mutex.h"

namespace perseus {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// How a line begins, and how its fields look.
enum class LogFormat : std::uint8_t {
  kPlain,  // level=info event=lease gpu=GPU-1: for systemd's journal, which adds the time.
  kText,   // 2026-11-22T00:31:09.120Z info lease gpu=GPU-1
  kJson,   // {"time":"...","level":"info","event":"lease","gpu":"GPU-1"}
};

// A text, a number or a truth value.
class LogValue {
 public:
  // NOLINTBEGIN(google-explicit-constructor): values are written where fields are.
  LogValue(std::string text) : text_(std::move(text)) {}
  LogValue(std::string_view text) : text_(text) {}
  LogValue(const char* text) : text_(text) {}
  template <std::integral T>
  LogValue(T number) : text_(std::to_string(number)), is_json_(true) {}
  LogValue(bool value) : text_(value ? "true" : "false"), is_json_(true) {}
  LogValue(double number);
  LogValue(const nlohmann::ordered_json& value);
  // NOLINTEND(google-explicit-constructor)

  // As JSON, with characters that can be shown.
  std::string Json() const;
  // The same, but bare words without their quotes.
  std::string Text() const;

 private:
  std::string text_;
  bool is_json_ = false;
};

struct LogField {
  std::string key;
  LogValue value;
};

struct LogOptions {
  LogFormat format = LogFormat::kPlain;
  LogLevel least = LogLevel::kInfo;
  // Mean rate limit, because clients can cause lines; 0: no limit. A burst may have ten seconds'
  // worth of lines. Errors are always written.
  double lines_per_second = 20;
  std::size_t most_waiting = 1000;  // Limit of lines that wait for the sink.
};

// A log of events with fields. A thread of its own writes the lines, so callers never wait for a
// full pipe or a journal daemon that hangs. Lines that cannot be written are dropped, and a later
// line says how many. Thread-safe.
class Log {
 public:
  // Writes one line, which has its line end. Called by one thread at a time.
  using Sink = std::function<void(const std::string& line)>;
  explicit Log(Sink sink, LogOptions options = {});
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  // Writes the waiting lines, unless the sink hangs.
  ~Log();

  void Write(LogLevel level, std::string_view event, const std::vector<LogField>& fields);

  // Waits until all lines so far are written, at most for `patience`.
  void Flush(std::chrono::milliseconds patience);

  static void WriteToStandardError(const std::string& line);

 private:
  struct Queue;

  bool MayWrite(LogLevel level) PERSEUS_REQUIRES(mutex_);

  const LogOptions options_;
  const std::shared_ptr<Queue> queue_;  // Outlives this object if the sink hangs.
  std::thread writer_;

  Mutex mutex_;
  double tokens_ PERSEUS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point refilled_ PERSEUS_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::now();
  std::int64_t left_out_ PERSEUS_GUARDED_BY(mutex_) = 0;
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_LOG_H_
