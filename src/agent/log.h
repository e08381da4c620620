// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_AGENT_LOG_H_
#define PERSEUS_AGENT_LOG_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>

namespace perseus::agent {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

struct LogField {
  std::string_view key;
  std::string value;
};

// Lines for people and machines: "level=info event=lease gpu=GPU-1 pid=12". Clients
// can cause lines, so they are limited to some a second; what was left out is
// counted in the next one. Errors are never left out. Thread-safe.
class Log {
 public:
  // Takes one line with its end; called by one thread at a time.
  using Sink = std::function<void(const std::string&)>;
  explicit Log(Sink sink) : sink_(std::move(sink)) {}

  void Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields);

 private:
  bool MayWrite(LogLevel level);

  const Sink sink_;
  std::mutex mutex_;
  double tokens_ = kBurst;
  std::chrono::steady_clock::time_point refilled_ = std::chrono::steady_clock::now();
  std::int64_t left_out_ = 0;

  static constexpr double kBurst = 200;
  static constexpr double kPerSecond = 20;
};

}  // namespace perseus::agent

#endif  // PERSEUS_AGENT_LOG_H_
