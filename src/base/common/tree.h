// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#ifndef PERSEUS_COMMON_TREE_H_
#define PERSEUS_COMMON_TREE_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <span>
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

class TreeCursor;

// Reads typed values from a tree and keeps the first error, with its position
// ("plan.json:12:40: ranks[3].computations[7].knob: expected ..."). After an error, every value
// reads as the default of its type, so callers need to check for errors only at the end.
class TreeReader {
 public:
  // All arguments must outlive the reader. `place` returns the path of the root if that is an
  // element of a larger tree.
  TreeReader(const TreeNode& root, const std::string& name,
             const std::function<std::string()>* place = nullptr)
      : root_(root), name_(name), place_(place) {}

  TreeCursor Root();
  bool failed() const { return error_.has_value(); }
  const std::optional<Error>& error() const { return error_; }

  // FailExpected(): "expected ..., found ..." at a node. The others: any message.
  void FailExpected(const TreeNode& node, std::string_view expected);
  void Fail(const TreeNode& node, std::string_view message);
  void FailAt(Position position, const std::string& message);
  void FailWith(Error error);

 private:
  const TreeNode& root_;
  const std::string& name_;
  const std::function<std::string()>* place_;
  std::optional<Error> error_;
};

// The bounds of a number, inclusive unless said otherwise.
struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  // `least` itself is excluded.
  bool below_most = false;   // `most` itself is excluded.
};
inline constexpr NumberRange kAnyNumber = {};
inline constexpr NumberRange kNotNegative = {.least = 0};
inline constexpr NumberRange kPositive = {.least = 0, .above_least = true};

inline constexpr int kMaxCount = 1'000'000;  // Limit for counts of stages, microbatches, GPUs.

// A node of the tree, with its reader. Cheap to copy; must not outlive its reader.
class TreeCursor {
 public:
  TreeCursor(TreeReader* reader, const TreeNode* node) : reader_(reader), node_(node) {}

  const TreeNode& node() const { return *node_; }
  bool IsNumber() const { return std::holds_alternative<double>(node_->value); }
  bool IsString() const { return std::holds_alternative<std::string>(node_->value); }
  bool IsList() const { return std::holds_alternative<TreeNode::List>(node_->value); }

  // Typed values.
  double Number(NumberRange range = kAnyNumber) const;
  int Integer(int least, int most = kMaxCount) const;
  bool Bool() const;
  std::string String() const;
  // A number, or an array of them.
  std::vector<double> Numbers(NumberRange range) const;

  // Containers.
  TreeCursor Get(std::string_view key) const;  // Fails if the key is missing.
  std::optional<TreeCursor> Find(std::string_view key) const;
  std::size_t Size() const;  // Fails if the value is not an array.
  TreeCursor At(std::size_t index) const;

  // Fails at the first key that is not one of `known`, and names the nearest.
  void AllowOnly(std::span<const std::string_view> known) const;

  // "expected `expected`, found ...".
  void FailExpected(std::string_view expected) const { reader_->FailExpected(*node_, expected); }
  void Fail(std::string_view message) const { reader_->Fail(*node_, message); }

 private:
  TreeCursor Nothing() const;
  // FailExpected() for a number. Also says so if the number stands in quotes.
  void FailNumber(std::string_view expected) const;

  TreeReader* reader_;
  const TreeNode* node_;
};

inline TreeCursor TreeReader::Root() { return {this, &root_}; }

}  // namespace perseus

#endif  // PERSEUS_COMMON_TREE_H_
