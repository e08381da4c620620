// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_JSON_TEXT_H_
#define PERSEUS_COMMON_JSON_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace perseus {

// The one way in which JSON is written. Numbers have the fewest digits that read
// back to the same bits; bytes that are not UTF-8 are replaced. (plan.json alone
// lays its lines out by itself, with the strings of FormatCompact.)

// On one line, without spaces.
std::string FormatCompact(const nlohmann::ordered_json& value);

// One value a line, two spaces a level, and a line end: for people.
std::string FormatIndented(const nlohmann::ordered_json& value);

// A JSON object with one member a line, and one element a line in arrays of
// objects: long series stay readable and short.
std::string FormatByLine(const nlohmann::ordered_json& object);

}  // namespace perseus

#endif  // PERSEUS_COMMON_JSON_TEXT_H_
