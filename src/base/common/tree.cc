// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "common/located_error.h"
#include "common/nearest_name.h"

namespace perseus {
namespace {

// The path below `from`, which is already described by `prefix`.
std::optional<std::string> FindPath(const TreeNode& from, const TreeNode& target,
                                    const std::string& prefix) {
  if (&from == &target) return prefix;
  if (const auto* list = std::get_if<TreeNode::List>(&from.value)) {
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (auto path = FindPath((*list)[i], target, fmt::format("{}[{}]", prefix, i))) return path;
    }
  } else if (const auto* table = std::get_if<TreeNode::Table>(&from.value)) {
    for (const TreeMember& member : *table) {
      const std::string path = prefix.empty() ? member.key : prefix + "." + member.key;
      if (auto found = FindPath(member.node, target, path)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

const TreeMember* TreeNode::Find(std::string_view key) const {
  const auto* table = std::get_if<Table>(&value);
  if (table == nullptr) return nullptr;
  const auto found =
      std::lower_bound(table->begin(), table->end(), key,
                       [](const TreeMember& member, std::string_view k) { return member.key < k; });
  return found != table->end() && found->key == key ? &*found : nullptr;
}

std::string TreeNode::Describe() const {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value)) return Shown(*text);
  if (std::holds_alternative<TreeDate>(value)) return "a date or time";
  if (std::holds_alternative<List>(value)) return "an array";
  if (std::holds_alternative<Table>(value)) return "an object";
  return "null";
}

std::string TreePath(const TreeNode& root, const TreeNode& node) {
  return FindPath(root, node, "").value_or("");
}

Error TreeError(const std::string& name, Position position, const std::string& message) {
  return ErrorAt(name, position.line, position.column, message);
}

}  // namespace perseus
