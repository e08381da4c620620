// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/cluster/json_values.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/framework/table.h"
#include "common/printable.h"

namespace perseus::cli {

std::string MemberText(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return Printable(found->is_string() ? found->get<std::string>() : found->dump());
}

std::optional<double> NumberOf(const nlohmann::ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

const nlohmann::ordered_json& ObjectOf(const nlohmann::ordered_json& object, const char* key) {
  static const nlohmann::ordered_json kNothing = nlohmann::ordered_json::object();
  const auto found = object.find(key);
  return found == object.end() || !found->is_object() ? kNothing : *found;
}

const nlohmann::ordered_json& ListOf(const nlohmann::ordered_json& object, const char* key) {
  static const nlohmann::ordered_json kNothing = nlohmann::ordered_json::array();
  const auto found = object.find(key);
  return found == object.end() || !found->is_array() ? kNothing : *found;
}

std::string DayText(const nlohmann::ordered_json& object, const char* key) {
  constexpr double kMostSeconds = 2e11;
  const double seconds = NumberOf(object, key).value_or(0);
  if (!(seconds > 0 && seconds < kMostSeconds)) return "";
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::string SecondsOf(const nlohmann::ordered_json& object, const char* key) {
  const auto number = NumberOf(object, key);
  return number ? FormatSeconds(*number) : "";
}

std::string Line(const char* what, const std::string& value) {
  return value.empty() ? "" : fmt::format("{:<12} {}\n", what, value);
}

}  // namespace perseus::cli
