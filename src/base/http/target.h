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

// What a request line asks for (RFC 9112, 3.2; RFC 3986). Nothing is normalised:
// what could be read in two ways is refused.
namespace perseus::http {

// Longest target that is read, in bytes.
inline constexpr std::size_t kMaxTargetBytes = 4096;

struct Target {
  // Of the path, decoded: "/a/b%20c" is {"a", "b c"}, "/" is {""}, "/a/" is {"a", ""}.
  std::vector<std::string> segments;
  std::map<std::string, std::string> query;
};

// Takes "/path?query", also after "http://host". kInvalidInput, with one sentence:
// '#', bytes outside of printable ASCII, a '%' that no two hexadecimal digits follow,
// a segment or query that decodes to something that is no UTF-8 or holds control
// characters, a segment that decodes to ".", ".." or holds '/' or '\', a query name
// that is empty or given twice, more than 64 query parameters.
Result<Target> ParseTarget(std::string_view text);

// "/" and the segments, joined.
std::string PathOf(const Target& target);

// `text` as one segment of a path or one value of a query: all but RFC 3986's
// unreserved characters become %XX.
std::string PercentEncoded(std::string_view text);

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_TARGET_H_
