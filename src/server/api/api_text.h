// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_SERVER_API_API_TEXT_H_
#define PERSEUS_SERVER_API_API_TEXT_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "common/tree.h"
#include "common/tree_reader.h"
#include "http/message.h"
#include "server/base/failure.h"
#include "server/domain/schema.h"

// Functions that the API's handlers share: they read bodies and queries, and make answers.
namespace perseus::server {

http::Response FailureResponse(const Failure& failure);
http::Response JsonAnswer(int status, const nlohmann::ordered_json& value);
template <typename T>
http::Response JsonAnswer(int status, const Message<T>& message, const T& object) {
  return http::JsonResponse(status, wire::Write(message, object));
}
http::Response NoContent();

// More values than the largest body of measurements has. As a tree they take about 60 MiB.
inline constexpr int kMostBodyValues = 700'000;

// Parses a body, which must be a JSON object with at most `most_values` values. `read` takes what
// it needs from the root. A failure names the field.
Outcome<void> ReadBody(const std::string& body, const std::function<void(const TreeCursor&)>& read,
                       int most_values = kMostBodyValues);

template <typename T>
Outcome<T> ReadBody(const Message<T>& message, const std::string& body,
                    int most_values = kMostBodyValues) {
  T object = {};
  const Outcome<void> read = ReadBody(
      body, [&](const TreeCursor& root) { wire::Read(message, root, &object); }, most_values);
  if (!read) return tl::unexpected(read.error());
  return object;
}

// Refuses members that the schema does not have.
void AllowOnly(const AnyMessage& schema, const TreeCursor& object);
// The member of an object, unless it is missing or null.
std::optional<TreeCursor> FindSet(const TreeCursor& object, std::string_view key);
std::optional<double> FindNumber(const TreeCursor& object, std::string_view key,
                                 NumberRange range = kAnyNumber);
std::optional<std::int64_t> FindInteger(const TreeCursor& object, std::string_view key);
// The text of a member; empty if it is missing. Fails if it is longer than `most` bytes.
std::string FindText(const TreeCursor& object, std::string_view key, std::size_t most = 1024);
// Fails if the number is not whole or cannot be exact as a double.
std::int64_t Whole(const TreeCursor& number);

// Upper limit of RankNumber(), above that of any job, so that the job can refuse a wrong rank with
// a better message.
inline constexpr int kMostNumber = 2'000'000'000;
int RankNumber(const TreeCursor& root, std::string_view key);

// A whole number in the query, which CheckQuery() has checked; nullopt if it is missing.
std::optional<std::int64_t> QueryInteger(const http::Request& request, const std::string& name);
// A text in the query; empty if it is missing.
std::string QueryText(const http::Request& request, const std::string& name);
// The parameter "wait" in seconds: 0 if it is missing, at most 60.
double QueryWait(const http::Request& request);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_TEXT_H_
