// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_TESTS_SUPPORT_MENTIONS_H_
#define PERSEUS_TESTS_SUPPORT_MENTIONS_H_

#include <gmock/gmock.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace perseus {

// Whether `word` stands in `text`, and is not a part of a longer word or number there.
inline bool StandsIn(std::string_view text, std::string_view word) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !is_inner(text[at - 1]) || !is_inner(word.front());
    const bool ends = end == text.size() || !is_inner(text[end]) || !is_inner(word.back());
    if (begins && ends) return true;
  }
  return false;
}

MATCHER_P(MentionsWord, word, "mentions " + ::testing::PrintToString(word)) {
  if (word.find(' ') == std::string::npos && !word.empty()) return StandsIn(arg, word);
  *result_listener << "which is prose: name what the text is about";
  return false;
}

// The text of a message or page mentions all of these: options, fields, files with a position,
// values, figures. It does not matter in which words.
template <typename... Words>
auto Mentions(const Words&... words) {
  return ::testing::AllOf(MentionsWord(std::string(words))...);
}

}  // namespace perseus

#endif  // PERSEUS_TESTS_SUPPORT_MENTIONS_H_
