// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_ENUM_NAMES_H_
#define PERSEUS_COMMON_ENUM_NAMES_H_

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace perseus {

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

#endif  // PERSEUS_COMMON_ENUM_NAMES_H_
