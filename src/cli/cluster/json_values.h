// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_CLI_CLUSTER_JSON_VALUES_H_
#define PERSEUS_CLI_CLUSTER_JSON_VALUES_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

// Members of what a server answered, for people. What is missing or of another type is
// nothing: the server may be an older one.
namespace perseus::cli {

// What a server names may hold anything, and goes to a terminal.
std::string MemberText(const nlohmann::ordered_json& object, const char* key);
std::optional<double> NumberOf(const nlohmann::ordered_json& object, const char* key);
// These live as long as `object`, or forever.
const nlohmann::ordered_json& ObjectOf(const nlohmann::ordered_json& object, const char* key);
const nlohmann::ordered_json& ListOf(const nlohmann::ordered_json& object, const char* key);

// "2026-11-27 08:10", in UTC, of a time in seconds since 1970; empty where the server says none
// that there can be.
std::string DayText(const nlohmann::ordered_json& object, const char* key);

// "18.2340 s"; empty where the member is no number.
std::string SecondsOf(const nlohmann::ordered_json& object, const char* key);

// "what         value"; empty where the value is.
std::string Line(const char* what, const std::string& value);

}  // namespace perseus::cli

#endif  // PERSEUS_CLI_CLUSTER_JSON_VALUES_H_
