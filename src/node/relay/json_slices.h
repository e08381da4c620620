// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_JSON_SLICES_H_
#define PERSEUS_RELAY_JSON_SLICES_H_

#include <optional>
#include <string_view>
#include <vector>

// Parts of a JSON text as they stand in it, so that they can be passed on without
// reading them: no number changes its digits, and nothing is as deep as the text is.
// Pure functions; any bytes are safe.
namespace perseus::relay {

struct JsonMember {
  std::string_view key;  // Between the quotes, escapes as they stand.
  std::string_view value;
};

// Whether `text` is one JSON value.
bool IsJson(std::string_view text);

// Of a text that IsJson(), or a value of one. nullopt: it is no object, no array.
std::optional<std::vector<JsonMember>> MembersOf(std::string_view object);
std::optional<std::vector<std::string_view>> ElementsOf(std::string_view array);

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_JSON_SLICES_H_
