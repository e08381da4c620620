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

// What the handlers of the API share: reading bodies and queries, answering.
namespace perseus::server {

http::Response FailureResponse(const Failure& failure);
http::Response JsonAnswer(int status, const nlohmann::ordered_json& value);
http::Response NoContent();

// More than the measurements of the largest body have; as a tree some 60 MiB.
inline constexpr int kMostBodyValues = 700'000;

// Reads a body that is a JSON object of at most `most_values`; `read` takes what it
// needs from the root. The failure names the field.
Outcome<void> ReadBody(const std::string& body, const std::function<void(const TreeCursor&)>& read,
                       int most_values = kMostBodyValues);

// Refuses members that the schema does not have.
void AllowOnly(const ObjectSchema& schema, const TreeCursor& object);
// The member of an object, unless it is missing or null.
std::optional<TreeCursor> FindSet(const TreeCursor& object, std::string_view key);
std::optional<double> FindNumber(const TreeCursor& object, std::string_view key,
                                 NumberRange range = kAnyNumber);
std::optional<std::int64_t> FindInteger(const TreeCursor& object, std::string_view key);
// Empty where it is missing. At most `most` bytes; a failure beyond.
std::string FindText(const TreeCursor& object, std::string_view key, std::size_t most = 1024);
// A whole number within double's exact range; an error for others.
std::int64_t Whole(const TreeCursor& number);

// Any int, so that the job says what is wrong with it.
inline constexpr int kMostNumber = 2'000'000'000;
int RankNumber(const TreeCursor& root, std::string_view key);

// Of a query that fits its row. A whole number; nullopt where it is missing.
std::optional<std::int64_t> QueryInteger(const http::Request& request, const std::string& name);
// Empty where it is missing.
std::string QueryText(const http::Request& request, const std::string& name);
// "wait": seconds, 0 where missing, 60 at most.
double QueryWait(const http::Request& request);

}  // namespace perseus::server

#endif  // PERSEUS_SERVER_API_API_TEXT_H_
