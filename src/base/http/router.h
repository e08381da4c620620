// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_HTTP_ROUTER_H_
#define PERSEUS_HTTP_ROUTER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/server.h"
#include "perseus/result.h"

namespace perseus::http {

// The result of a look-up of method and path.
struct RouteMatch {
  const Route* route = nullptr;  // Null: see `allow`.
  std::vector<std::string> parameters;
  // If the path exists but not with this method, the allowed methods: "GET, HEAD, POST". Else "".
  std::string allow;
};

// Finds the route of a path: exact bytes, segment by segment. Immutable, so
// thread-safe.
class Router {
 public:
  // kInvalidInput: a pattern is malformed, or two routes match the same requests.
  static Result<Router> Make(std::vector<Route> routes);

  RouteMatch Match(std::string_view method, const std::vector<std::string>& segments) const;

 private:
  struct Segment {
    bool is_parameter = false;  // Matches any segment that is not empty.
    bool is_rest = false;       // Likewise, but all segments that are left, one at least.
    std::string text;           // Of a fixed segment.
    bool operator==(const Segment&) const = default;
  };
  struct Entry {
    Route route;
    std::vector<Segment> segments;
  };
  static std::optional<std::vector<Segment>> ParsePattern(std::string_view pattern);
  static bool Fits(const std::vector<Segment>& pattern, const std::vector<std::string>& segments);

  std::vector<Entry> entries_;  // Routes whose fixed segments are further left come first.
};

}  // namespace perseus::http

#endif  // PERSEUS_HTTP_ROUTER_H_
