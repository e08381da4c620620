// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "relay/json_slices.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

namespace perseus::relay {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Reads a text that is JSON. At the end of one that is not, Peek() is '\0'.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { SkipSpace(); }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // Whether `c` is next; then it and the space behind it are passed.
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    SkipSpace();
    return true;
  }

  // The next value, and the space behind it is passed.
  std::string_view Value() {
    const std::size_t begin = at_;
    int depth = 0;
    do {
      const char c = Peek();
      if (c == '"') {
        SkipString();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (depth > 0 && (c == ',' || c == ':' || kSpace.find(c) != std::string_view::npos)) {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(",:]} \t\r\n", at_), text_.size());
      }
    } while (depth > 0 && at_ < text_.size());
    const std::string_view value = text_.substr(begin, at_ - begin);
    SkipSpace();
    return value;
  }

 private:
  void SkipSpace() { at_ = std::min(text_.find_first_not_of(kSpace, at_), text_.size()); }

  void SkipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
    }
    at_ = std::min(at_ + 1, text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

bool IsJson(std::string_view text) { return nlohmann::json::accept(text); }

std::optional<std::vector<JsonMember>> MembersOf(std::string_view object) {
  Scanner scanner(object);
  if (!scanner.Take('{')) return std::nullopt;
  std::vector<JsonMember> members;
  if (scanner.Take('}')) return members;
  do {
    const std::string_view quoted = scanner.Value();
    if (quoted.size() < 2 || !scanner.Take(':')) return std::nullopt;
    members.push_back({quoted.substr(1, quoted.size() - 2), scanner.Value()});
  } while (scanner.Take(','));
  return members;
}

std::optional<std::vector<std::string_view>> ElementsOf(std::string_view array) {
  Scanner scanner(array);
  if (!scanner.Take('[')) return std::nullopt;
  std::vector<std::string_view> elements;
  if (scanner.Take(']')) return elements;
  do {
    elements.push_back(scanner.Value());
  } while (scanner.Take(','));
  return elements;
}

}  // namespace perseus::relay
