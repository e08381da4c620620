// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "common/toml_ascii.h"
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
