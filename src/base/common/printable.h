// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_PRINTABLE_H_
#define PERSEUS_COMMON_PRINTABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Makes untrusted text safe for terminals, logs and messages. Some characters control a terminal or
// change the order of the text around them: control characters (C0, DEL, C1), marks of the writing
// direction, unusual line ends, bytes that are not UTF-8. These are escaped as \n, \x1b, \x9b,
// \u202e.
namespace perseus {

// Appends the first character of `text`, which must not be empty, to `out`. Returns its size in
// bytes.
std::size_t AppendPrintable(std::string_view text, std::string* out);

// All of `text`, on one line.
std::string Printable(std::string_view text);

// Escapes the text of a JSON value, so that it is printable and has the same value.
std::string PrintableJson(std::string_view json);

// At most `most` characters of `text`. If it was longer, it ends with `mark` ("…").
std::string CutTo(std::size_t most, std::string_view text, std::string_view mark);

// Size in bytes of the well-formed UTF-8 character at the start of `text` (Unicode, Table 3-7); 0:
// there is none.
std::size_t Utf8CharacterSize(std::string_view text);

// The code point of a well-formed UTF-8 character.
std::uint32_t CodePointOf(std::string_view character);

// Without the UTF-8 mark that some editors put before a text.
std::string_view WithoutByteOrderMark(std::string_view text);

// Size in bytes of the longest well-formed beginning of `text`.
std::size_t ValidUtf8Prefix(std::string_view text);

// Number of characters in `text`; a malformed byte counts as one.
std::size_t CountCodePoints(std::string_view text);

// `text` for HTML text or a quoted attribute: & < > " ' escaped, bytes that
// are not UTF-8 replaced, control characters made spaces.
std::string EscapeHtml(std::string_view text);

}  // namespace perseus

#endif  // PERSEUS_COMMON_PRINTABLE_H_
