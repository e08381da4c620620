// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/router.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "common/nearest_name.h"

namespace perseus::http {

// None: malformed.
std::optional<std::vector<Router::Segment>> Router::ParsePattern(std::string_view pattern) {
  if (!pattern.starts_with('/')) return std::nullopt;
  std::vector<Segment> segments;
  while (!pattern.empty()) {
    pattern.remove_prefix(1);
    const std::string_view text = pattern.substr(0, pattern.find('/'));
    pattern.remove_prefix(text.size());
    const bool is_parameter = text.size() > 2 && text.front() == '{' && text.back() == '}';
    if (text.empty() && (!segments.empty() || !pattern.empty())) return std::nullopt;
    if (!is_parameter && text.find_first_of("{}%?") != std::string_view::npos) return std::nullopt;
    const bool is_rest = is_parameter && text[text.size() - 2] == '*';
    if (is_rest && !pattern.empty()) return std::nullopt;
    segments.push_back({is_parameter, is_rest, is_parameter ? "" : std::string(text)});
  }
  return segments;
}

bool Router::Fits(const std::vector<Segment>& pattern, const std::vector<std::string>& segments) {
  const bool has_rest = !pattern.empty() && pattern.back().is_rest;
  if (has_rest ? segments.size() < pattern.size() : segments.size() != pattern.size()) return false;
  return std::equal(pattern.begin(), pattern.end(), segments.begin(),
                    [](const Segment& wanted, const std::string& segment) {
                      if (wanted.is_rest) return true;
                      return wanted.is_parameter ? !segment.empty() : wanted.text == segment;
                    });
}

Result<Router> Router::Make(std::vector<Route> routes) {
  Router router;
  for (Route& route : routes) {
    std::optional<std::vector<Segment>> segments = ParsePattern(route.pattern);
    if (!segments) {
      return InvalidInput(fmt::format(
          "The route {} is malformed: write \"/fixed/{{name}}\" or \"/fixed/{{name*}}\".",
          Shown(route.pattern)));
    }
    for (const Entry& other : router.entries_) {
      if (other.route.method == route.method && other.segments == *segments) {
        return InvalidInput(
            fmt::format("The route {} {} is there twice.", route.method, Shown(route.pattern)));
      }
    }
    router.entries_.push_back(Entry{std::move(route), *std::move(segments)});
  }
  std::stable_sort(
      router.entries_.begin(), router.entries_.end(), [](const Entry& a, const Entry& b) {
        return std::lexicographical_compare(
            a.segments.begin(), a.segments.end(), b.segments.begin(), b.segments.end(),
            [](const Segment& x, const Segment& y) {
              return std::pair(x.is_parameter, x.is_rest) < std::pair(y.is_parameter, y.is_rest);
            });
      });
  return router;
}

RouteMatch Router::Match(std::string_view method, const std::vector<std::string>& segments) const {
  RouteMatch match;
  const std::vector<Segment>* pattern = nullptr;
  for (const Entry& entry : entries_) {
    if (!Fits(entry.segments, segments)) continue;
    // "/jobs/{id}" does not answer for "/jobs/all" with a method that this one lacks.
    if (pattern != nullptr && *pattern != entry.segments) break;
    pattern = &entry.segments;
    if (entry.route.method == method || (method == "HEAD" && entry.route.method == "GET")) {
      match.route = &entry.route;
      for (std::size_t i = 0; i < entry.segments.size(); ++i) {
        if (!entry.segments[i].is_parameter) continue;
        match.parameters.push_back(
            entry.segments[i].is_rest
                ? fmt::format("{}", fmt::join(segments.begin() + static_cast<std::ptrdiff_t>(i),
                                              segments.end(), "/"))
                : segments[i]);
      }
      match.allow.clear();
      return match;
    }
    match.allow += match.allow.empty() ? "" : ", ";
    match.allow += entry.route.method == "GET" ? "GET, HEAD" : entry.route.method;
  }
  return match;
}

}  // namespace perseus::http
