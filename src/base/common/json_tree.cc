// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/nearest_name.h"
#include "common/printable.h"
#include "common/tree.h"

namespace perseus {
namespace {

// Turns offsets into lines and columns. Offsets ascend, so that a whole file
// costs one pass.
class LineCounter {
 public:
  explicit LineCounter(std::string_view text) : text_(text) {}

  Position At(std::size_t offset) {
    offset = std::min(offset, text_.size());
    for (; offset_ < offset; ++offset_) {
      if (text_[offset_] == '\n') {
        ++position_.line;
        position_.column = 1;
      } else {
        ++position_.column;
      }
    }
    return position_;
  }

 private:
  std::string_view text_;
  std::size_t offset_ = 0;
  Position position_;
};

// Reads a text and tells how far the parser has come: the library reports
// values without their place.
class TrackedIterator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): names of the standard library.
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  TrackedIterator(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  TrackedIterator& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  TrackedIterator operator++(int) {
    const TrackedIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const TrackedIterator& a, const TrackedIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds the tree from the events of nlohmann's SAX parser.
class TreeBuilder {
 public:
  TreeBuilder(std::string_view text, const std::string& name, ListConsumer* consumer, int max_nodes)
      : text_(text),
        name_(name),
        consumer_(consumer),
        max_nodes_(max_nodes),
        counter_(text),
        read_to_(text.data()) {}

  Result<TreeNode> Build() {
    const char* end = text_.data() + text_.size();
    const bool ok = nlohmann::json::sax_parse(TrackedIterator(text_.data(), &read_to_),
                                              TrackedIterator(end, &read_to_), this);
    if (error_) return tl::unexpected(*std::move(error_));
    if (!ok) return tl::unexpected(TreeError(name_, {}, "is not JSON"));
    return std::move(root_);
  }

  // The interface of nlohmann::json_sax, found by name.
  // NOLINTBEGIN(readability-identifier-naming)
  bool null() { return Add(std::monostate{}, Offset() - 4); }
  bool boolean(bool value) { return Add(value, Offset() - (value ? 4 : 5)); }
  bool number_integer(std::int64_t value) { return Add(static_cast<double>(value), NumberStart()); }
  bool number_unsigned(std::uint64_t value) {
    return Add(static_cast<double>(value), NumberStart());
  }
  bool number_float(double value, const std::string& /*lexeme*/) {
    return Add(value, NumberStart());
  }
  bool string(std::string& value) { return Add(std::move(value), StringStart()); }
  bool binary(nlohmann::json::binary_t& /*value*/) { return false; }
  bool start_array(std::size_t /*size*/) { return Open(TreeNode::List{}); }
  bool end_array() { return EndConsumed() && Close(); }
  bool start_object(std::size_t /*size*/) { return Open(TreeNode::Table{}); }
  bool end_object();
  bool key(std::string& value) {
    open_.back().key = std::move(value);
    open_.back().key_position = counter_.At(StringStart());
    return true;
  }
  bool parse_error(std::size_t offset, const std::string& last_token,
                   const nlohmann::detail::exception& exception);
  // NOLINTEND(readability-identifier-naming)

 private:
  // A container whose end has not come yet.
  struct OpenContainer {
    TreeNode node;
    std::string key;  // Of the member that comes next.
    Position key_position;
    bool is_consumed = false;  // A list whose elements the consumer takes.
  };

  std::size_t Offset() const { return static_cast<std::size_t>(read_to_ - text_.data()); }

  // The parser stands behind the closing quote.
  std::size_t StringStart() const {
    std::size_t quote = Offset() - 1;
    while (quote > 0) {
      --quote;
      if (text_[quote] != '"') continue;
      std::size_t backslashes = 0;
      while (backslashes < quote && text_[quote - 1 - backslashes] == '\\') ++backslashes;
      if (backslashes % 2 == 0) break;
    }
    return quote;
  }

  // The parser has looked at one character behind the number, if there is one.
  std::size_t NumberStart() const {
    const auto part = [](char c) {
      return (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.' || c == 'e' || c == 'E';
    };
    std::size_t start = Offset();
    if (start > 0 && !part(text_[start - 1])) --start;
    while (start > 0 && part(text_[start - 1])) --start;
    return start;
  }

  bool Fail(Position position, const std::string& message) {
    if (!error_) error_ = TreeError(name_, position, message);
    return false;
  }

  bool Count(Position position) {
    if (++nodes_ <= max_nodes_) return true;
    return Fail(position,
                fmt::format("holds more than {} values; is it the right file?", max_nodes_));
  }

  template <typename T>
  bool Add(T value, std::size_t offset) {
    TreeNode node;
    node.value = std::move(value);
    node.position = counter_.At(offset);
    return Count(node.position) && Attach(std::move(node));
  }

  bool Attach(TreeNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return true;
    }
    OpenContainer& parent = open_.back();
    if (parent.is_consumed) {
      nodes_ = nodes_outside_;
      return Consumed(consumer_->Take(std::move(node)));
    }
    if (auto* list = std::get_if<TreeNode::List>(&parent.node.value)) {
      list->push_back(std::move(node));
    } else if (auto* table = std::get_if<TreeNode::Table>(&parent.node.value)) {
      table->push_back({std::move(parent.key), parent.key_position, std::move(node)});
    }
    return true;
  }

  template <typename Container>
  bool Open(Container container) {
    const Position position = counter_.At(Offset() - 1);
    if (open_.size() >= kMaxTreeDepth) {
      return Fail(position,
                  fmt::format("nests more than {} deep; is it the right file?", kMaxTreeDepth));
    }
    OpenContainer entry;
    entry.node.value = std::move(container);
    entry.node.position = position;
    const bool is_list = std::is_same_v<Container, TreeNode::List>;
    const bool consumed =
        is_list && consumer_ != nullptr && !consuming_ && consumer_->Begin(OpenPath());
    entry.is_consumed = consumed;
    open_.push_back(std::move(entry));
    if (!Count(position)) return false;
    if (consumed) {
      consuming_ = true;
      nodes_outside_ = nodes_;
    }
    return true;
  }

  // Of the value that comes next, without indexes: "ranks[].computations".
  std::string OpenPath() const {
    std::string path;
    for (const OpenContainer& container : open_) {
      if (std::holds_alternative<TreeNode::List>(container.node.value)) {
        path += "[]";
      } else {
        path += (path.empty() ? "" : ".") + container.key;
      }
    }
    return path;
  }

  bool EndConsumed() {
    if (!open_.back().is_consumed) return true;
    consuming_ = false;
    return Consumed(consumer_->End());
  }

  bool Consumed(Result<void> result) {
    if (!result && !error_) error_ = std::move(result.error());
    return result.has_value();
  }

  bool Close() {
    TreeNode node = std::move(open_.back().node);
    open_.pop_back();
    return Attach(std::move(node));
  }

  std::string_view text_;
  const std::string& name_;
  ListConsumer* consumer_;
  const int max_nodes_;
  LineCounter counter_;
  const char* read_to_;
  TreeNode root_;
  std::vector<OpenContainer> open_;
  int nodes_ = 0;
  bool consuming_ = false;
  int nodes_outside_ = 0;  // Before the first element of the consumed list.
  std::optional<Error> error_;
};

bool TreeBuilder::end_object() {
  auto& table = std::get<TreeNode::Table>(open_.back().node.value);
  std::stable_sort(table.begin(), table.end(),
                   [](const TreeMember& a, const TreeMember& b) { return a.key < b.key; });
  const auto twin =
      std::adjacent_find(table.begin(), table.end(),
                         [](const TreeMember& a, const TreeMember& b) { return a.key == b.key; });
  if (twin != table.end()) {
    return Fail(std::next(twin)->key_position,
                fmt::format("{} is given twice; remove one of them", Shown(twin->key)));
  }
  return Close();
}

bool TreeBuilder::parse_error(std::size_t offset, const std::string& /*last_token*/,
                              const nlohmann::detail::exception& exception) {
  // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax
  // error while ...": the place is ours to say.
  std::string_view what = exception.what();
  if (const auto colon = what.find(": ");
      what.find("parse error at") != std::string_view::npos && colon != std::string_view::npos) {
    what.remove_prefix(colon + 2);
  } else if (const auto bracket = what.find("] "); bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  return Fail(counter_.At(offset == 0 ? 0 : offset - 1),
              fmt::format("is not valid JSON: {}", what));
}

}  // namespace

Result<TreeNode> ParseJsonTree(std::string_view text, const std::string& name,
                               ListConsumer* consumer, int max_nodes) {
  text = WithoutByteOrderMark(text);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return tl::unexpected(TreeError(name, {}, "the file is empty; expected a JSON object"));
  }
  return TreeBuilder(text, name, consumer, max_nodes).Build();
}

}  // namespace perseus
