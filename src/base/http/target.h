// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_TARGET_H_
#define PERSEUS_HTTP_TARGET_H_

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "perseus/result.h"

// The target of a request line (RFC 9112, 3.2; RFC 3986). It is not normalised; ambiguous targets
// are refused.
namespace perseus::http {

// Longest target that is read, in bytes.
inline constexpr std::size_t kMaxTargetBytes = 4096;

struct Target {
  // The path's segments, decoded: "/a/b%20c" is {"a", "b c"}, "/" is {""}, "/a/" is {"a", ""}.
  std::vector<std::string> segments;
  std::map<std::string, std::string> query;
};

// Parses "/path?query", also after "http://host". kInvalidInput, with one sentence, for: '#'; bytes
// that are not printable ASCII; a '%' without two hexadecimal digits; a segment or query that
// decodes to invalid UTF-8 or control characters; a segment that decodes to ".", ".." or contains
// '/' or '\'; a query name that is empty or occurs twice; over 64 query parameters.
Result<Target> ParseTarget(std::string_view text);

// "/" and the segments, joined.
std::string PathOf(const Target& target);

// Encodes `text` as one segment of a path or one value of a query: all characters except RFC 3986's
// unreserved ones become %XX.
std::string PercentEncoded(std::string_view text);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TARGET_H_
