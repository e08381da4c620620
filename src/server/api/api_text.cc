// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/api/api_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/json_text.h"
#include "common/numbers.h"

namespace perseus::server {
namespace {

constexpr std::string_view kBodyName = "request";
constexpr double kMostWaitSeconds = 60;
constexpr double kMostWhole = 9007199254740992.0;  // 2^53

int StatusOf(FailureCode code) {
  switch (code) {
    case FailureCode::kInvalid:
      return 422;
    case FailureCode::kNotFound:
      return 404;
    case FailureCode::kConflict:
      return 409;
    case FailureCode::kTooLarge:
      return 413;
    case FailureCode::kPast:
      return 412;
    case FailureCode::kUnavailable:
    case FailureCode::kStale:
      return 503;
    case FailureCode::kInternal:
      return 500;
  }
  return 500;
}

std::string_view CodeName(FailureCode code) {
  switch (code) {
    case FailureCode::kInvalid:
      return "invalid";
    case FailureCode::kNotFound:
      return "not_found";
    case FailureCode::kConflict:
      return "conflict";
    case FailureCode::kTooLarge:
      return "too_large";
    case FailureCode::kPast:
      return "past";
    case FailureCode::kUnavailable:
    case FailureCode::kStale:
      return "unavailable";
    case FailureCode::kInternal:
      return "internal";
  }
  return "internal";
}

// "request:1:12: rows[0].time: expected ..." in its parts.
Failure BodyFailure(const Error& error) {
  Failure failure{.code = FailureCode::kInvalid, .message = error.message};
  if (error.code == ErrorCode::kInternal) failure.code = FailureCode::kInternal;
  std::string_view text = error.message;
  if (!text.starts_with(kBodyName)) return failure;
  const std::size_t place = text.find(": ");
  if (place == std::string_view::npos) return failure;
  text.remove_prefix(place + 2);
  const std::size_t path = text.find(": ");
  if (path == std::string_view::npos) return failure;
  const std::string_view field = text.substr(0, path);
  const bool is_path = std::all_of(field.begin(), field.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '[' ||
           c == ']';
  });
  if (!is_path) return failure;
  failure.field = field;
  failure.message = fmt::format("'{}': {}", field, text.substr(path + 2));
  return failure;
}

}  // namespace

http::Response FailureResponse(const Failure& failure) {
  http::Response response = http::ErrorResponse(StatusOf(failure.code), CodeName(failure.code),
                                                failure.message, failure.field);
  if (failure.code == FailureCode::kUnavailable) response.headers.emplace_back("Retry-After", "1");
  return response;
}

http::Response JsonAnswer(int status, const nlohmann::ordered_json& value) {
  return http::JsonResponse(status, FormatCompact(value));
}

http::Response NoContent() {
  http::Response response;
  response.status = 204;
  response.content_type.clear();
  return response;
}

Outcome<void> ReadBody(const std::string& body, const std::function<void(const TreeCursor&)>& read,
                       int most_values) {
  const std::string name(kBodyName);
  const Result<TreeNode> tree = ParseJsonTree(body, name, nullptr, most_values);
  if (!tree) return tl::unexpected(BodyFailure(tree.error()));
  TreeReader reader(*tree, name);
  const TreeCursor root = reader.Root();
  if (!std::holds_alternative<TreeNode::Table>(tree->value)) {
    root.FailExpected("a JSON object");
  } else {
    read(root);
  }
  if (reader.failed()) return tl::unexpected(BodyFailure(*reader.error()));
  return {};
}

void AllowOnly(const AnyMessage& schema, const TreeCursor& object) {
  std::vector<std::string_view> names;
  for (const Field& member : schema.fields) names.push_back(member.name);
  object.AllowOnly(names);
}

std::optional<TreeCursor> FindSet(const TreeCursor& object, std::string_view key) {
  const std::optional<TreeCursor> found = object.Find(key);
  if (!found || std::holds_alternative<std::monostate>(found->node().value)) return std::nullopt;
  return found;
}

std::optional<double> FindNumber(const TreeCursor& object, std::string_view key,
                                 NumberRange range) {
  const std::optional<TreeCursor> found = FindSet(object, key);
  if (!found) return std::nullopt;
  return found->Number(range);
}

int RankNumber(const TreeCursor& root, std::string_view key) {
  return root.Get(key).Integer(-kMostNumber, kMostNumber);
}

std::int64_t Whole(const TreeCursor& number) {
  const double value = number.Number({.least = -kMostWhole, .most = kMostWhole});
  if (value != std::floor(value)) {
    number.FailExpected("a whole number");
    return 0;
  }
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> FindInteger(const TreeCursor& object, std::string_view key) {
  const std::optional<TreeCursor> found = FindSet(object, key);
  if (!found) return std::nullopt;
  return Whole(*found);
}

std::string FindText(const TreeCursor& object, std::string_view key, std::size_t most) {
  const std::optional<TreeCursor> found = FindSet(object, key);
  if (!found) return "";
  std::string text = found->String();
  if (text.size() > most) found->Fail(fmt::format("longer than {} bytes", most));
  if (text.find('\0') != std::string::npos) found->Fail("holds a null character");
  return text;
}

std::string QueryText(const http::Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::optional<std::int64_t> QueryInteger(const http::Request& request, const std::string& name) {
  return ParseInteger<std::int64_t>(QueryText(request, name));
}

double QueryWait(const http::Request& request) {
  return std::min(ParseFinite(QueryText(request, "wait")).value_or(0), kMostWaitSeconds);
}

}  // namespace perseus::server
