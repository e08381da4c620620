// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "common/nearest_name.h"

namespace perseus {
namespace {

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Says what is wrong with a word of a label; empty: nothing. `marks`: what it may hold beside
// letters and digits.
std::string FaultOfWord(std::string_view word, std::string_view marks,
                        std::string_view marks_text) {
  if (word.size() > kMostLabelBytes) {
    return fmt::format("has {} bytes; at most {} are allowed", word.size(), kMostLabelBytes);
  }
  const bool is_allowed = std::all_of(word.begin(), word.end(), [&](char c) {
    return IsLetterOrDigit(c) || marks.find(c) != std::string_view::npos;
  });
  if (is_allowed && IsLetterOrDigit(word.front()) && IsLetterOrDigit(word.back())) return "";
  return fmt::format(
      "must begin and end with a letter (a-z, A-Z) or a digit, and may have {} between them",
      marks_text);
}

}  // namespace

Result<void> CheckLabelName(std::string_view name) {
  if (name.empty()) return InvalidInput("a label has no name; write it as team=vision");
  const std::string fault = FaultOfWord(name, "._-/", "'.', '_', '-' and '/'");
  if (fault.empty()) return {};
  return InvalidInput(fmt::format("the name of the label {} {}", Shown(name), fault));
}

Result<void> CheckLabel(std::string_view name, std::string_view value) {
  if (auto good = CheckLabelName(name); !good) return good;
  if (value.empty()) {
    return InvalidInput(
        fmt::format("the label {} has no value; give it one, or leave it out", Shown(name)));
  }
  const std::string fault = FaultOfWord(value, "._-", "'.', '_' and '-'");
  if (fault.empty()) return {};
  return InvalidInput(
      fmt::format("the value {} of the label {} {}", Shown(value), Shown(name), fault));
}

Result<void> CheckLabels(const JobLabels& labels) {
  if (labels.size() > kMostLabels) {
    return InvalidInput(
        fmt::format("these are {} labels; a job has at most {}", labels.size(), kMostLabels));
  }
  for (const auto& [name, value] : labels) {
    if (auto good = CheckLabel(name, value); !good) return good;
  }
  return {};
}

Result<std::pair<std::string, std::string>> ParseLabel(std::string_view text, char separator) {
  const std::size_t end = text.find(separator);
  if (end == std::string_view::npos) {
    return InvalidInput(fmt::format("expected a name and a value, as in team{}vision, got {}",
                                    separator, Shown(text)));
  }
  std::pair<std::string, std::string> label(text.substr(0, end), text.substr(end + 1));
  if (auto good = CheckLabel(label.first, label.second); !good) {
    return tl::unexpected(good.error());
  }
  return label;
}

std::string LabelsText(const JobLabels& labels, std::string_view separator) {
  std::string text;
  for (const auto& [name, value] : labels) {
    text += fmt::format("{}{}={}", text.empty() ? "" : separator, name, value);
  }
  return text;
}

}  // namespace perseus
