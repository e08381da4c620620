// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/response_head.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace perseus::http {
namespace {

// A line end within a header would begin another one.
void AppendHeader(std::string_view name, std::string_view value, std::string* head) {
  const auto append = [&](std::string_view text) {
    for (const char c : text) *head += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
  };
  append(name);
  *head += ": ";
  append(value);
  *head += "\r\n";
}

}  // namespace

bool MayHaveBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string FormatHead(const Response& response, const ResponseFraming& framing,
                       const std::string& date) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, ReasonPhrase(response.status));
  AppendHeader("Date", date, &head);
  if (MayHaveBody(response.status)) {
    if (!response.content_type.empty() && (response.body || framing.body != BodyFraming::kLength)) {
      AppendHeader("Content-Type", response.content_type, &head);
    }
    if (framing.body == BodyFraming::kLength) {
      AppendHeader("Content-Length", std::to_string(BodySize(response)), &head);
    } else if (framing.body == BodyFraming::kChunked) {
      AppendHeader("Transfer-Encoding", "chunked", &head);
    }
  }
  if (!framing.keep_alive) {
    AppendHeader("Connection", "close", &head);
  } else if (!framing.is_http_1_1) {
    AppendHeader("Connection", "keep-alive", &head);
  }
  // Answers are of this moment, and never a page's own script.
  if (FindHeader(response.headers, "Cache-Control") == nullptr) {
    AppendHeader("Cache-Control", "no-store", &head);
  }
  AppendHeader("X-Content-Type-Options", "nosniff", &head);
  for (const auto& [name, value] : response.headers) AppendHeader(name, value, &head);
  return head += "\r\n";
}

std::string HttpDate(std::time_t time) {
  static constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed",
                                                            "Thu", "Fri", "Sat"};
  static constexpr std::array<std::string_view, 12> kMonths = {
      "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  ::gmtime_r(&time, &utc);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                     kMonths[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
}

}  // namespace perseus::http
