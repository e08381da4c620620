// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_JSON_TEXT_H_
#define PERSEUS_COMMON_JSON_TEXT_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace perseus {

// All JSON is written by these functions. Numbers have the fewest digits that read back to the same
// bits. Bytes that are not UTF-8 are replaced. (Only plan.json has its own line layout, with
// strings from FormatCompact.)

// The object that a text holds; null where it holds none. For texts that are ours or were checked:
// what people write is read by common/tree.h, which says what is wrong and where.
nlohmann::ordered_json ParseObject(std::string_view text);

// On one line, without spaces.
std::string FormatCompact(const nlohmann::ordered_json& value);

// One value per line, indented by two spaces per level, with a line end: for people.
std::string FormatIndented(const nlohmann::ordered_json& value);

// A JSON object with one line per member, and one line per element of arrays of objects. Long
// series stay short and readable.
std::string FormatByLine(const nlohmann::ordered_json& object);

}  // namespace perseus

#endif  // PERSEUS_COMMON_JSON_TEXT_H_
