// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_UTF8_H_
#define PERSEUS_COMMON_UTF8_H_

#include <cstddef>
#include <string_view>

namespace perseus {

// Size in bytes of the well-formed UTF-8 character at the start of `text` (Unicode, Table 3-7); 0:
// there is none.
std::size_t Utf8CharacterSize(std::string_view text);

// Size in bytes of the longest well-formed beginning of `text`.
std::size_t ValidUtf8Prefix(std::string_view text);

// Number of characters in `text`; a malformed byte counts as one.
std::size_t CountCodePoints(std::string_view text);

}  // namespace perseus

#endif  // PERSEUS_COMMON_UTF8_H_
