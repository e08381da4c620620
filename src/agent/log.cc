// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/json_text.h"
#include "common/utf8.h"

namespace perseus::agent {
namespace {

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      break;
  }
  return "error";
}

// Bare words stay as they are; all else in quotes, with escapes.
std::string LogValue(const std::string& text) {
  const auto is_bare = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:@+,").find(c) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_bare)) return text;
  return FormatCompact(text);
}

}  // namespace

bool Log::MayWrite(LogLevel level) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> passed = now - refilled_;
  tokens_ = std::min(kBurst, tokens_ + passed.count() * kPerSecond);
  refilled_ = now;
  if (level == LogLevel::kError) return true;
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

void Log::Write(LogLevel level, std::string_view event, std::initializer_list<LogField> fields) {
  const std::lock_guard lock(mutex_);
  if (!MayWrite(level)) {
    ++left_out_;
    return;
  }
  std::string line = fmt::format("level={} event={}", LevelName(level), event);
  for (const LogField& field : fields) {
    line += fmt::format(" {}={}", field.key, LogValue(field.value));
  }
  if (left_out_ > 0) line += fmt::format(" lines_left_out={}", left_out_);
  left_out_ = 0;
  sink_(line + "\n");
}

}  // namespace perseus::agent
