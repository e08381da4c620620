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
  kPlain,  // level=info event=lease gpu=GPU-1: for a journal, which knows the time.
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
  // In the long run, after a burst of ten seconds' lines; 0: any number. Clients can cause
  // lines. Errors are never left out by it.
  double lines_per_second = 20;
  std::size_t most_waiting = 1000;  // Lines that the sink has not taken.
};

// Lines for people and machines: an event with fields. A thread of its own writes them:
// who logs never waits for a full pipe or a journal daemon that hangs. What cannot be
// written is left out, counted, and told of in a later line. Thread-safe.
class Log {
 public:
  // Takes one line with its end; called by one thread at a time.
  using Sink = std::function<void(const std::string& line)>;
  explicit Log(Sink sink, LogOptions options = {});
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  // Writes what is left, unless the sink hangs for longer than a moment.
  ~Log();

  void Write(LogLevel level, std::string_view event, const std::vector<LogField>& fields);

  // Waits until the lines of before are written, at most so long.
  void Flush(std::chrono::milliseconds patience);

  static void WriteToStandardError(const std::string& line);

 private:
  struct Queue;

  bool MayWrite(LogLevel level) PERSEUS_REQUIRES(mutex_);

  const LogOptions options_;
  const std::shared_ptr<Queue> queue_;  // Outlives this where the sink hangs.
  std::thread writer_;

  Mutex mutex_;
  double tokens_ PERSEUS_GUARDED_BY(mutex_);
  std::chrono::steady_clock::time_point refilled_ PERSEUS_GUARDED_BY(mutex_) =
      std::chrono::steady_clock::now();
  std::int64_t left_out_ PERSEUS_GUARDED_BY(mutex_) = 0;
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_LOG_H_
