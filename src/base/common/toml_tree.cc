// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/printable.h"
#include "common/tree.h"

// Compiled in rather than linked, without exceptions: errors are values, and
// the library of Perseus depends on no shared library of the parser. Some
// assertions of toml++ (3.3 and 3.4) fail on input that the lines after them handle
// (a NUL in a table header); with NDEBUG they are hints to the optimizer. So
// they are made to say nothing in either case.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

namespace perseus {
namespace {

constexpr int kMaxKeyParts = 8;

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

class AsciiWriter {
 public:
  AsciiWriter(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  Result<std::string> Write() {
    int dots = 0;  // Since the key or value began.
    while (at_ < text_.size() && !error_) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        WriteString();
      } else if (c == '#') {
        WriteComment();
      } else if (!IsAscii(c)) {
        Fail(at_, "a character beyond ASCII must be in a string or a comment; quote it");
      } else {
        if (c == '.') ++dots;
        if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0;
        if (dots >= kMaxKeyParts) {
          Fail(at_,
               fmt::format("a key has more than {} parts; is it the right file?", kMaxKeyParts));
        }
        ascii_ += c;
        ++at_;
      }
    }
    if (error_) return tl::unexpected(*error_);
    return ascii_;
  }

 private:
  void Fail(std::size_t offset, const std::string& message) {
    const std::string_view before = text_.substr(0, offset);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0.
    const Position position = {
        .line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
        .column = static_cast<int>(CountCodePoints(before.substr(line_start))) + 1};
    error_ = TreeError(name_, position, message);
  }

  void WriteComment() {
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      ascii_ += IsAscii(text_[at_]) ? text_[at_] : '?';
    }
  }

  void WriteString() {
    const char quote = text_[at_];
    if (text_.substr(at_, 3) == std::string(3, quote)) {
      return Fail(at_, "expected a string on one line, found a multi-line string");
    }
    const std::optional<std::size_t> end = StringEnd();
    if (!end) return Fail(at_, "the string does not end on its line; close it with a quote");
    const std::string_view whole = text_.substr(at_, *end - at_);
    if (std::all_of(whole.begin(), whole.end(), IsAscii)) {
      ascii_ += whole;
    } else {
      WriteEscaped(whole.substr(1, whole.size() - 2), quote == '\'');
    }
    if (!error_) at_ = *end;
  }

  // Behind the closing quote of the string at at_.
  std::optional<std::size_t> StringEnd() const {
    const char quote = text_[at_];
    for (std::size_t i = at_ + 1; i < text_.size() && text_[i] != '\n'; ++i) {
      if (text_[i] == quote) return i + 1;
      const bool escaped = quote == '"' && text_[i] == '\\';
      if (escaped && i + 1 < text_.size() && text_[i + 1] != '\n') ++i;
    }
    return std::nullopt;
  }

  // As a "..." string. In a '...' string nothing is an escape yet.
  void WriteEscaped(std::string_view content, bool is_literal) {
    ascii_ += '"';
    while (!content.empty()) {
      const char c = content.front();
      if (IsAscii(c)) {
        if (is_literal && (c == '"' || c == '\\')) ascii_ += '\\';
        ascii_ += c;
        content.remove_prefix(1);
        continue;
      }
      const std::size_t size = Utf8CharacterSize(content);
      if (size == 0) return Fail(at_, "the string is not valid UTF-8; save the file as UTF-8");
      fmt::format_to(std::back_inserter(ascii_), "\\U{:08X}", CodePointOf(content.substr(0, size)));
      content.remove_prefix(size);
    }
    ascii_ += '"';
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::string ascii_;
  std::optional<Error> error_;
};

// Converts a TOML document to ASCII with the same lines. Other characters become escapes in strings
// and "?" in comments; elsewhere they are an error, as TOML requires. The reason: toml++ (up to
// 3.4) has undefined behaviour if it checks such characters for white space. Also refuses what job
// files do not need and toml++ 3.3 does not handle safely: multi-line strings, and keys of more
// than eight parts (`a.b.c = 1`), because it destroys its tree recursively without a limit of
// depth. Messages use `name` for the path.
Result<std::string> TomlToAscii(std::string_view text, const std::string& name) {
  return AsciiWriter(WithoutByteOrderMark(text), name).Write();
}

Position PositionOf(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

// Copies toml++'s tree into ours.
class Converter {
 public:
  explicit Converter(const std::string& name) : name_(name) {}

  Result<TreeNode> Convert(const toml::node& node, int depth) {
    TreeNode result;
    result.position = PositionOf(node.source());
    if (depth > kMaxTreeDepth) {
      return tl::unexpected(
          TreeError(name_, result.position, fmt::format("nests more than {} deep", kMaxTreeDepth)));
    }
    if (const auto* table = node.as_table()) {
      TreeNode::Table members;
      for (const auto& [key, value] : *table) {
        Result<TreeNode> child = Convert(value, depth + 1);
        if (!child) return child;
        members.push_back({std::string(key.str()), PositionOf(key.source()), *std::move(child)});
      }
      std::sort(members.begin(), members.end(),
                [](const TreeMember& a, const TreeMember& b) { return a.key < b.key; });
      result.value = std::move(members);
    } else if (const auto* array = node.as_array()) {
      TreeNode::List items;
      for (const toml::node& item : *array) {
        Result<TreeNode> child = Convert(item, depth + 1);
        if (!child) return child;
        items.push_back(*std::move(child));
      }
      result.value = std::move(items);
    } else if (const auto* flag = node.as_boolean()) {
      result.value = flag->get();
    } else if (const auto* whole = node.as_integer()) {
      result.value = static_cast<double>(whole->get());
    } else if (const auto* real = node.as_floating_point()) {
      result.value = real->get();
    } else if (const auto* text = node.as_string()) {
      result.value = text->get();
    } else {
      result.value = TreeDate{};
    }
    return result;
  }

 private:
  const std::string& name_;
};

}  // namespace

Result<TreeNode> ParseTomlTree(std::string_view text, const std::string& name) {
  const Result<std::string> ascii = TomlToAscii(text, name);
  if (!ascii) return tl::unexpected(ascii.error());
  const toml::parse_result parsed = toml::parse(*ascii);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return tl::unexpected(TreeError(name, PositionOf(error.source()),
                                    fmt::format("is not valid TOML: {}", error.description())));
  }
  return Converter(name).Convert(parsed.table(), 0);
}

}  // namespace perseus
