// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "common/json_text.h"
#include "common/numbers.h"
#include "common/printable.h"

namespace perseus::http {
namespace {

char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool SameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return LowerCase(x) == LowerCase(y); });
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = LowerCase(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

namespace {

struct Status {
  int status;
  std::string_view reason;
  std::string_view code;
};

constexpr std::array kStatuses = {
    Status{200, "OK", ""},
    Status{201, "Created", ""},
    Status{202, "Accepted", ""},
    Status{204, "No Content", ""},
    Status{304, "Not Modified", ""},
    Status{400, "Bad Request", "invalid"},
    Status{401, "Unauthorized", "denied"},
    Status{403, "Forbidden", "denied"},
    Status{404, "Not Found", "not_found"},
    Status{405, "Method Not Allowed", "method_not_allowed"},
    Status{406, "Not Acceptable", "invalid"},
    Status{408, "Request Timeout", "timeout"},
    Status{409, "Conflict", "conflict"},
    Status{410, "Gone", "not_found"},
    Status{412, "Precondition Failed", "changed"},
    Status{413, "Content Too Large", "too_large"},
    Status{414, "URI Too Long", "too_large"},
    Status{415, "Unsupported Media Type", "invalid"},
    Status{417, "Expectation Failed", "invalid"},
    Status{422, "Unprocessable Content", "invalid"},
    Status{429, "Too Many Requests", "unavailable"},
    Status{431, "Request Header Fields Too Large", "too_large"},
    Status{500, "Internal Server Error", "internal"},
    Status{501, "Not Implemented", "not_implemented"},
    Status{503, "Service Unavailable", "unavailable"},
    Status{505, "HTTP Version Not Supported", "invalid"},
    Status{507, "Insufficient Storage", "unavailable"},
};

const Status* FindStatus(int status) {
  for (const Status& known : kStatuses) {
    if (known.status == status) return &known;
  }
  return nullptr;
}

}  // namespace

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kRead:
      return "read";
    case Role::kTrain:
      return "train";
    case Role::kOperate:
      return "operate";
  }
  return "none";
}

bool TokenBinding::HasPrefixOf(std::string_view client_key) const {
  return std::any_of(key_prefixes.begin(), key_prefixes.end(),
                     [&](const std::string& prefix) { return client_key.starts_with(prefix); });
}

const std::string* FindHeader(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (SameIgnoringCase(key, name)) return &value;
  }
  return nullptr;
}

Response JsonResponse(int status, std::string body, std::shared_ptr<const std::string> tail) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(std::move(body));
  response.tail = std::move(tail);
  return response;
}

std::size_t BodySize(const Response& response) {
  return (response.body ? response.body->size() : 0) + (response.tail ? response.tail->size() : 0);
}

Response ErrorResponse(int status, std::string_view code, std::string_view message,
                       std::string_view field) {
  nlohmann::ordered_json error = {{"code", code}, {"message", message}};
  if (!field.empty()) error["field"] = field;
  return JsonResponse(status, FormatCompact({{"error", std::move(error)}}) + "\n");
}

Response ErrorFor(const Headers& headers, int status, std::string_view message) {
  const std::string* const accepted = FindHeader(headers, "Accept");
  const bool is_browser = accepted != nullptr && accepted->find("text/html") != std::string::npos;
  Response response = ErrorResponse(status, ErrorCodeOf(status), message);
  if (is_browser) {
    response.content_type = "text/html; charset=utf-8";
    response.body = std::make_shared<const std::string>(
        fmt::format("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
                    "<meta name=\"viewport\" content=\"width=device-width\">\n"
                    "<title>{0}</title>\n<h1>{0}</h1>\n<p>{1}</p>\n</html>\n",
                    ReasonPhrase(status), EscapeHtml(message)));
  }
  response.headers = {{"Vary", "Accept"},
                      {"Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"}};
  return response;
}

Response TryAgainResponse(std::string_view message) {
  Response response = ErrorResponse(503, ErrorCodeOf(503), message);
  response.headers.emplace_back("Retry-After", "1");
  return response;
}

std::string_view ErrorCodeOf(int status) {
  const Status* known = FindStatus(status);
  if (known != nullptr && !known->code.empty()) return known->code;
  return status >= 500 ? "internal" : "invalid";
}

std::string_view ReasonPhrase(int status) {
  const Status* known = FindStatus(status);
  return known != nullptr ? known->reason : "";
}

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
