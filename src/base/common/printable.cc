// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/printable.h"

#include <fmt/format.h>

#include "common/utf8.h"

namespace perseus {
namespace {

// The code point of a well-formed character of `size` bytes.
unsigned CodePoint(std::string_view text, std::size_t size) {
  const auto lead = static_cast<unsigned char>(text[0]);
  unsigned code = size == 1 ? lead : lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  return code;
}

bool IsControl(unsigned code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

// Marks of the writing direction, and the line ends of Unicode.
bool IsLayout(unsigned code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::size_t AppendPrintable(std::string_view text, std::string* out) {
  const std::size_t size = Utf8CharacterSize(text);
  if (size == 0) {
    *out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    return 1;
  }
  const unsigned code = CodePoint(text, size);
  if (code == '\n') {
    *out += "\\n";
  } else if (IsControl(code)) {
    *out += fmt::format("\\x{:02x}", code);
  } else if (IsLayout(code)) {
    *out += fmt::format("\\u{:04x}", code);
  } else {
    out->append(text.substr(0, size));
  }
  return size;
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) text.remove_prefix(AppendPrintable(text, &out));
  return out;
}

std::string PrintableJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    const std::size_t size = Utf8CharacterSize(json);
    const unsigned code = size == 0 ? 0xFFFD : CodePoint(json, size);
    if (size == 0 || IsControl(code) || IsLayout(code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out.append(json.substr(0, size));
    }
    json.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string CutTo(std::size_t most, std::string_view text, std::string_view mark) {
  if (CountCodePoints(text) <= most) return std::string(text);
  const std::size_t kept = most - CountCodePoints(mark);
  std::size_t end = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    const std::size_t size = Utf8CharacterSize(text.substr(end));
    end += size == 0 ? 1 : size;
  }
  return std::string(text.substr(0, end)).append(mark);
}

}  // namespace perseus
