// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/json_text.h"

#include <nlohmann/json.hpp>
#include <string_view>

namespace perseus {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

nlohmann::ordered_json ParseObject(std::string_view text) {
  auto json = nlohmann::ordered_json::parse(text, nullptr, false);
  return json.is_object() ? json : nlohmann::ordered_json();
}

std::string FormatCompact(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string FormatIndented(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string FormatByLine(const Json& object) {
  std::string out = "{";
  std::string_view separator = "\n";
  for (const auto& [name, value] : object.items()) {
    out += separator;
    separator = ",\n";
    out += "  " + FormatCompact(name) + ": ";
    if (!value.is_array() || value.empty() || !value.front().is_object()) {
      out += FormatCompact(value);
      continue;
    }
    std::string_view before = "[\n    ";
    for (const Json& element : value) {
      out += before;
      out += FormatCompact(element);
      before = ",\n    ";
    }
    out += "\n  ]";
  }
  return out + "\n}\n";
}

}  // namespace perseus
