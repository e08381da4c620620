// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_NEAREST_NAME_H_
#define PERSEUS_COMMON_NEAREST_NAME_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perseus {

// Whether the names are equal, ignoring case and the characters '-', '_' and ' '.
bool SameName(std::string_view a, std::string_view b);

// The form that SameName() compares: lower case, without '-', '_' and ' '.
std::string FoldedName(std::string_view name);

// The one of `names` that is most similar to `given` (compared as FoldedName); "" if none is
// similar.
std::string NearestName(std::string_view given, const std::vector<std::string>& names);

// "; did you mean 'NAME'?" with NearestName(); "" if no name is similar.
std::string NearestHint(std::string_view given, const std::vector<std::string>& names);

// `text` in quotes for a message: shortened, and as Printable() shows it.
std::string Shown(std::string_view text);

// The names of an enumeration whose values count from 0.
template <typename Enum, std::size_t kSize>
struct EnumNames {
  std::array<std::string_view, kSize> names;

  // "?" of a value that is none.
  constexpr std::string_view Of(Enum value) const {
    const auto index = static_cast<std::size_t>(value);
    return index < kSize ? names[index] : "?";
  }
  constexpr std::optional<Enum> Parse(std::string_view name) const {
    for (std::size_t k = 0; k < kSize; ++k) {
      if (names[k] == name) return static_cast<Enum>(k);
    }
    return std::nullopt;
  }
};

}  // namespace perseus

#endif  // PERSEUS_COMMON_NEAREST_NAME_H_
