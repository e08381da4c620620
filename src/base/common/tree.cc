// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/tree.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/located_error.h"
#include "common/nearest_name.h"
#include "common/numbers.h"

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

namespace {

// The node of a cursor after an error.
const TreeNode& NullNode() {
  static const TreeNode kNull;
  return kNull;
}

std::string DescribeRange(NumberRange range, std::string_view noun) {
  const bool has_least = std::isfinite(range.least);
  const bool has_most = std::isfinite(range.most);
  if (range.above_least && range.below_most) {
    return fmt::format("{} above {} and below {}", noun, range.least, range.most);
  }
  if (has_least && has_most && range.above_least) {
    return fmt::format("{} above {} and at most {}", noun, range.least, range.most);
  }
  if (has_least && has_most) {
    return fmt::format("{} from {} to {}", noun, range.least, range.most);
  }
  if (has_least && range.above_least) return fmt::format("{} above {}", noun, range.least);
  if (has_least) return fmt::format("{} of at least {}", noun, range.least);
  return std::string(noun);
}

}  // namespace

void TreeReader::FailAt(Position position, const std::string& message) {
  if (!error_) error_ = TreeError(name_, position, message);
}

void TreeReader::FailWith(Error error) {
  if (!error_) error_ = std::move(error);
}

void TreeReader::Fail(const TreeNode& node, std::string_view message) {
  if (error_) return;
  std::string path = TreePath(root_, node);
  if (place_ != nullptr) path = (*place_)() + (path.empty() ? "" : ".") + path;
  FailAt(node.position, path.empty() ? std::string(message) : fmt::format("{}: {}", path, message));
}

void TreeReader::FailExpected(const TreeNode& node, std::string_view expected) {
  Fail(node, fmt::format("expected {}, found {}", expected, node.Describe()));
}

TreeCursor TreeCursor::Nothing() const { return {reader_, &NullNode()}; }

void TreeCursor::FailNumber(std::string_view expected) const {
  const auto* text = std::get_if<std::string>(&node_->value);
  constexpr std::size_t kLongestNumber = 40;
  if (text == nullptr || text->size() > kLongestNumber || !ParseFinite(*text))
    return FailExpected(expected);
  Fail(fmt::format("expected {}, found it in quotes; write {} without them", expected, *text));
}

double TreeCursor::Number(NumberRange range) const {
  if (reader_->failed()) return 0;
  const auto* number = std::get_if<double>(&node_->value);
  if (number == nullptr || !std::isfinite(*number) || *number < range.least ||
      *number > range.most || (range.above_least && *number == range.least) ||
      (range.below_most && *number == range.most)) {
    FailNumber(DescribeRange(range, "a number"));
    return 0;
  }
  return *number;
}

int TreeCursor::Integer(int least, int most) const {
  if (reader_->failed()) return 0;
  const auto* number = std::get_if<double>(&node_->value);
  // Written so that NaN fails.
  if (number == nullptr || !(*number >= least && *number <= most) ||
      std::trunc(*number) != *number) {
    FailNumber(
        DescribeRange({.least = static_cast<double>(least), .most = static_cast<double>(most)},
                      "a whole number"));
    return 0;
  }
  return static_cast<int>(*number);
}

bool TreeCursor::Bool() const {
  if (reader_->failed()) return false;
  if (const auto* flag = std::get_if<bool>(&node_->value)) return *flag;
  FailExpected("true or false");
  return false;
}

std::string TreeCursor::String() const {
  if (reader_->failed()) return {};
  if (const auto* text = std::get_if<std::string>(&node_->value)) return *text;
  FailExpected("a string");
  return {};
}

std::vector<double> TreeCursor::Numbers(NumberRange range) const {
  if (reader_->failed()) return {};
  if (IsNumber()) return {Number(range)};
  if (!IsList()) {
    FailNumber(DescribeRange(range, "a number") + ", or an array of such numbers");
    return {};
  }
  std::vector<double> numbers;
  for (std::size_t i = 0; i < Size(); ++i) numbers.push_back(At(i).Number(range));
  return numbers;
}

std::optional<TreeCursor> TreeCursor::Find(std::string_view key) const {
  if (reader_->failed()) return std::nullopt;
  if (!std::holds_alternative<TreeNode::Table>(node_->value)) {
    FailExpected("an object");
    return std::nullopt;
  }
  const TreeMember* member = node_->Find(key);
  if (member == nullptr) return std::nullopt;
  return TreeCursor(reader_, &member->node);
}

TreeCursor TreeCursor::Get(std::string_view key) const {
  if (const std::optional<TreeCursor> found = Find(key)) return *found;
  Fail(fmt::format("'{}' is missing", key));
  return Nothing();
}

std::size_t TreeCursor::Size() const {
  if (reader_->failed()) return 0;
  if (const auto* list = std::get_if<TreeNode::List>(&node_->value)) return list->size();
  FailExpected("an array");
  return 0;
}

TreeCursor TreeCursor::At(std::size_t index) const {
  if (reader_->failed()) return Nothing();
  return {reader_, &std::get<TreeNode::List>(node_->value)[index]};
}

void TreeCursor::AllowOnly(std::span<const std::string_view> known) const {
  const auto* table = std::get_if<TreeNode::Table>(&node_->value);
  if (table == nullptr || reader_->failed()) return;
  const TreeMember* first = nullptr;
  for (const TreeMember& member : *table) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    const auto place = [](const TreeMember& m) {
      return std::pair(m.key_position.line, m.key_position.column);
    };
    if (first == nullptr || place(member) < place(*first)) first = &member;
  }
  if (first == nullptr) return;
  const std::string hint = NearestHint(first->key, {known.begin(), known.end()});
  reader_->FailAt(
      first->key_position,
      fmt::format(
          "unknown key {}{}", Shown(first->key),
          hint.empty() ? fmt::format("; the known keys are {}", fmt::join(known, ", ")) : hint));
}

}  // namespace perseus
