// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_TREE_H_
#define PERSEUS_COMMON_TREE_H_

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "perseus/result.h"

namespace perseus {

// A place in a file, counted from 1.
struct Position {
  int line = 1;
  int column = 1;
};

struct TreeMember;

// Stands for TOML's dates and times, which Perseus does not use.
struct TreeDate {};

// A value of a JSON or TOML document, with its position. Depth (kMaxTreeDepth) and number of values
// (kMaxTreeNodes or less) are limited, so that no input can exhaust stack or memory.
struct TreeNode {
  using List = std::vector<TreeNode>;
  using Table = std::vector<TreeMember>;  // Sorted by key, keys distinct.

  std::variant<std::monostate, bool, double, std::string, TreeDate, List, Table> value;
  Position position;

  // The member of a table, or nullptr.
  const TreeMember* Find(std::string_view key) const;

  // Describes the value for "found ...": "null", "the number 3", "an array", ...
  std::string Describe() const;
};

struct TreeMember {
  std::string key;
  Position key_position;
  TreeNode node;
};

inline constexpr int kMaxTreeDepth = 32;
inline constexpr int kMaxTreeNodes = 12'000'000;

// Receives the elements of long lists one by one during parsing, so that the tree need not hold
// them.
class ListConsumer {
 public:
  ListConsumer() = default;
  ListConsumer(const ListConsumer&) = delete;
  ListConsumer& operator=(const ListConsumer&) = delete;
  virtual ~ListConsumer() = default;

  // Whether it wants the elements of the list at this path, which has no indexes:
  // "ranks[].computations". If so, the list in the tree stays empty. Lists within such elements are
  // not offered.
  virtual bool Begin(std::string_view path) = 0;
  // An error ends the parse.
  virtual Result<void> Take(TreeNode element) = 0;
  virtual Result<void> End() = 0;  // The list that began last has ended.
};

// Messages use `name` for the path. A tree takes up to forty times the memory of its text, so set a
// lower `max_nodes` for untrusted text.
Result<TreeNode> ParseJsonTree(std::string_view text, const std::string& name,
                               ListConsumer* consumer = nullptr, int max_nodes = kMaxTreeNodes);
Result<TreeNode> ParseTomlTree(std::string_view text, const std::string& name);

// "ranks[3].computations[7].knob" for a node of the tree, by identity; empty
// for the root.
std::string TreePath(const TreeNode& root, const TreeNode& node);

// The error "name:line:column: message".
Error TreeError(const std::string& name, Position position, const std::string& message);

}  // namespace perseus

#endif  // PERSEUS_COMMON_TREE_H_
