// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_RELAY_JSON_SLICES_H_
#define PERSEUS_RELAY_JSON_SLICES_H_

#include <optional>
#include <string_view>
#include <vector>

// Finds parts of a JSON text, so that they can be passed on unchanged and without parsing them: the
// digits of numbers stay the same, and no recursion depends on the depth of the text. Pure
// functions, which are safe for any bytes.
namespace perseus::relay {

struct JsonMember {
  std::string_view key;  // Between the quotes, escapes as they stand.
  std::string_view value;
};

bool IsJson(std::string_view text);

// For a text for which IsJson() is true, or a value in one. nullopt: not an object, or not an
// array.
std::optional<std::vector<JsonMember>> MembersOf(std::string_view object);
std::optional<std::vector<std::string_view>> ElementsOf(std::string_view array);

}  // namespace perseus::relay

#endif  // PERSEUS_RELAY_JSON_SLICES_H_
