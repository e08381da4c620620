// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "wire/routes.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/nearest_name.h"
#include "common/numbers.h"

namespace perseus::wire {
namespace {

// Says what is wrong with the value of a parameter; empty: nothing.
std::string QueryFault(const QueryParameter& parameter, const std::string& text) {
  const NumberRange& range = parameter.range;
  if (parameter.kind == QueryKind::kText) {
    const std::string words = fmt::format(" {} ", parameter.schema_words);
    const bool is_known = words.find(fmt::format(" {} ", text)) != std::string::npos;
    if (parameter.schema_words.empty() || (is_known && text.find(' ') == std::string::npos)) {
      return "";
    }
    return fmt::format("'{}' must be one of: {}", parameter.name, parameter.schema_words);
  }
  const bool is_integer = parameter.kind == QueryKind::kInteger;
  const std::optional<std::int64_t> integer = ParseInteger<std::int64_t>(text);
  const std::optional<double> number =
      is_integer && integer ? static_cast<double>(*integer) : ParseFinite(text);
  const bool is_number = is_integer ? integer.has_value() : number.has_value();
  if (is_number && *number >= range.least && *number <= range.most) return "";
  std::string fault =
      fmt::format("'{}' must be {}", parameter.name, is_integer ? "a whole number" : "a number");
  if (range.least > kAnyNumber.least) fault += fmt::format(", {} or more", range.least);
  if (range.most < kAnyNumber.most) fault += fmt::format(", {} or less", range.most);
  return fault;
}

}  // namespace

std::optional<http::Response> CheckQuery(const RouteRow& row, const http::Request& request) {
  const auto refuse = [](const std::string& message, std::string_view field) {
    return http::ErrorResponse(422, "invalid", message, field);
  };
  for (const auto& [name, text] : request.query) {
    const auto known =
        std::find_if(row.query.begin(), row.query.end(),
                     [&wanted = name](const auto& each) { return each.name == wanted; });
    if (known != row.query.end()) {
      const std::string fault = QueryFault(*known, text);
      if (!fault.empty()) return refuse(fault, name);
      continue;
    }
    std::string names;
    for (const QueryParameter& each : row.query) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    }
    return refuse(fmt::format("The query has {}, which is not known here; {}.", Shown(name),
                              names.empty() ? "this takes no parameters" : "known are: " + names),
                  "query");
  }
  for (const QueryParameter& each : row.query) {
    if (each.is_required && !request.query.contains(std::string(each.name))) {
      return refuse(fmt::format("'{}' is missing in the query.", each.name), each.name);
    }
  }
  return std::nullopt;
}

}  // namespace perseus::wire
