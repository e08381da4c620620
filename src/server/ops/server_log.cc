// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/server_log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <array>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/json_text.h"

namespace perseus::server {
namespace {

constexpr std::array<spdlog::level::level_enum, 4> kLevels = {
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err};

// "name=value", quoted where that is needed to read it back.
std::string FieldText(const std::string& name, const nlohmann::ordered_json& value) {
  const std::string text = FormatCompact(value);
  const bool is_plain = value.is_string() && !value.get<std::string>().empty() &&
                        text.find_first_of(" =\\") == std::string::npos;
  return fmt::format("{}={}", name, is_plain ? value.get<std::string>() : text);
}

}  // namespace

class ServerLog::Sink {
 public:
  explicit Sink(LogFormat format)
      : logger_("perseus", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    // The time first, as a member of the object that the message completes.
    logger_.set_pattern(format == LogFormat::kJson
                            ? R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})"
                            : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                        spdlog::pattern_time_type::utc);
    logger_.set_level(spdlog::level::debug);
    logger_.flush_on(spdlog::level::debug);
  }
  spdlog::logger& logger() { return logger_; }

 private:
  spdlog::logger logger_;
};

ServerLog::ServerLog(LogFormat format, LogLevel least)
    : format_(format), least_(least), sink_(std::make_unique<Sink>(format)) {}
ServerLog::~ServerLog() = default;

void ServerLog::Write(LogLevel level, std::string_view event,
                      const nlohmann::ordered_json& fields) {
  if (level < least_) return;
  std::string text;
  if (format_ == LogFormat::kJson) {
    nlohmann::ordered_json all = {{"event", event}};
    for (const auto& [name, value] : fields.items()) all[name] = value;
    text = FormatCompact(all);
    // Without the braces, which the pattern has.
    text = text.substr(1, text.size() - 2);
  } else {
    text = event;
    for (const auto& [name, value] : fields.items()) text += " " + FieldText(name, value);
  }
  sink_->logger().log(kLevels[static_cast<std::size_t>(level)], std::string_view(text));
}

}  // namespace perseus::server
