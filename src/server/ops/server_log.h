// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_OPS_SERVER_LOG_H_
#define PERSEUS_SERVER_OPS_SERVER_LOG_H_

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace perseus::server {

enum class LogFormat : std::uint8_t { kText, kJson };
enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarning, kError };

// What the server tells its operator, on standard error: one line each, an event
// with fields. Never what a token or a body holds. Thread-safe.
class ServerLog {
 public:
  ServerLog(LogFormat format, LogLevel least);
  ~ServerLog();
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  // `fields` is an object, in the order in which they are shown.
  void Write(LogLevel level, std::string_view event, const nlohmann::ordered_json& fields);

 private:
  class Sink;
  LogFormat format_;
  LogLevel least_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_OPS_SERVER_LOG_H_
