// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "markup.h"

#include <set>
#include <vector>

namespace perseus::report {

std::string Markup(std::string html) {
  for (const std::string name : {"style", "script"}) {
    const std::string close = "</" + name + ">";
    for (;;) {
      const std::size_t begin = html.find("<" + name);
      if (begin == std::string::npos) break;
      const std::size_t end = html.find(close, begin);
      if (end == std::string::npos) break;
      html.erase(begin, end + close.size() - begin);
    }
  }
  return html;
}

std::string UnbalancedTag(const std::string& markup) {
  static const std::set<std::string> kVoid = {"meta", "link", "br"};
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = markup.find('<', at)) != std::string::npos;) {
    std::size_t end = at + 1;
    for (bool quoted = false; end < markup.size() && (quoted || markup[end] != '>'); ++end) {
      if (markup[end] == '"') quoted = !quoted;
    }
    std::string tag = markup.substr(at + 1, end - at - 1);
    at = end;
    const bool closes = tag.starts_with('/');
    const std::string name =
        tag.substr(closes ? 1 : 0, tag.find_first_of(" /\n", closes ? 1 : 0) - (closes ? 1 : 0));
    if (name.empty() || name[0] < 'a' || name[0] > 'z') continue;  // <!DOCTYPE html>
    if (kVoid.contains(name) || tag.ends_with('/')) continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return tag;
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back();
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

}  // namespace perseus::report
