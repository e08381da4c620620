// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/html_text.h"

#include <nlohmann/json.hpp>

#include "common/json_text.h"

namespace perseus {

std::string EscapeHtml(std::string_view text) {
  // Through JSON and back: its writer replaces what is not UTF-8.
  const std::string utf8 =
      nlohmann::json::parse(FormatCompact(nlohmann::ordered_json(std::string(text))))
          .get<std::string>();
  std::string escaped;
  escaped.reserve(utf8.size());
  for (const char c : utf8) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) ? ' ' : c;
    }
  }
  return escaped;
}

}  // namespace perseus
