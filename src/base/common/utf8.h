// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_UTF8_H_
#define PERSEUS_COMMON_UTF8_H_

#include <cstddef>
#include <string_view>

namespace perseus {

// Bytes of the well-formed UTF-8 character that `text` starts with (Unicode,
// Table 3-7); 0 where there is none.
std::size_t Utf8CharacterSize(std::string_view text);

// Length of the longest well-formed beginning.
std::size_t ValidUtf8Prefix(std::string_view text);

// Characters of `text`; a malformed byte counts as one.
std::size_t CountCodePoints(std::string_view text);

}  // namespace perseus

#endif  // PERSEUS_COMMON_UTF8_H_
