// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json_text.h"

namespace perseus {
namespace {

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
  const unsigned code = CodePointOf(text.substr(0, size));
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
    const unsigned code = size == 0 ? 0xFFFD : CodePointOf(json.substr(0, size));
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

std::size_t Utf8CharacterSize(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto between = [&](std::size_t i, unsigned low, unsigned high) {
    return byte(i) >= low && byte(i) <= high;
  };
  if (text.empty()) return 0;
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return between(1, 0x80, 0xBF) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;   // No overlong forms,
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;  // no surrogates.
    return between(1, low, high) && between(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return between(1, low, high) && between(2, 0x80, 0xBF) && between(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::uint32_t CodePointOf(std::string_view character) {
  auto code = static_cast<std::uint32_t>(static_cast<unsigned char>(character[0]));
  if (character.size() > 1) code &= 0x7FU >> character.size();
  for (const char c : character.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return code;
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

std::size_t ValidUtf8Prefix(std::string_view text) {
  std::size_t valid = 0;
  while (valid < text.size()) {
    const std::size_t size = Utf8CharacterSize(text.substr(valid));
    if (size == 0) break;
    valid += size;
  }
  return valid;
}

std::size_t CountCodePoints(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++count) {
    i += std::max<std::size_t>(Utf8CharacterSize(text.substr(i)), 1);
  }
  return count;
}

std::string EscapeHtml(std::string_view text) {
  // Through JSON and back: its writer replaces what is not UTF-8.
  const std::string utf8 =
      nlohmann::json::parse(FormatCompact(nlohmann::ordered_json(std::string(text))))
          .get<std::string>();
  std::string escaped;
  escaped.reserve(utf8.size());
  for (const char c : utf8) {
    constexpr std::pair<char, std::string_view> kEntities[] = {
        {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    const auto* const entity = std::find_if(std::begin(kEntities), std::end(kEntities),
                                            [c](const auto& each) { return each.first == c; });
    if (entity != std::end(kEntities)) {
      escaped += entity->second;
    } else {
      escaped += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace perseus
