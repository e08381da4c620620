// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_PRINTABLE_H_
#define PERSEUS_COMMON_PRINTABLE_H_

#include <cstddef>
#include <string>
#include <string_view>

// Texts that others chose, for terminals, logs and messages. A terminal obeys some
// characters instead of showing them, and some change the order of what is around
// them: controls (C0, DEL, C1), marks of the writing direction, other line ends, bytes
// that are no UTF-8. These are written as \n, \x1b, \x9b, \u202e.
namespace perseus {

// Adds the first character of `text`, which is not empty, to `out`; its bytes.
std::size_t AppendPrintable(std::string_view text, std::string* out);

// All of `text`, on one line.
std::string Printable(std::string_view text);

// `json` is valid JSON text: the same value, in characters that can be shown.
std::string PrintableJson(std::string_view json);

// At most `most` characters of `text`, the last of which is `mark` ("…") where it was longer.
std::string CutTo(std::size_t most, std::string_view text, std::string_view mark);

}  // namespace perseus

#endif  // PERSEUS_COMMON_PRINTABLE_H_
