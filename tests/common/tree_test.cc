// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace perseus {
namespace {

std::string JsonError(std::string_view text) {
  const Result<TreeNode> tree = ParseJsonTree(text, "f.json");
  return tree ? "" : tree.error().message;
}

std::string TomlError(std::string_view text) {
  const Result<TreeNode> tree = ParseTomlTree(text, "f.toml");
  return tree ? "" : tree.error().message;
}

// "line:column" of every node, in depth-first order by key.
void Collect(const TreeNode& node, std::vector<std::string>* places) {
  places->push_back(std::to_string(node.position.line) + ":" +
                    std::to_string(node.position.column));
  if (const auto* list = std::get_if<TreeNode::List>(&node.value)) {
    for (const TreeNode& item : *list) Collect(item, places);
  } else if (const auto* table = std::get_if<TreeNode::Table>(&node.value)) {
    for (const TreeMember& member : *table) Collect(member.node, places);
  }
}

TEST(JsonTree, KnowsWhereEveryValueStarts) {
  const Result<TreeNode> tree = ParseJsonTree(
      "{\"a\": [1, -2.5e3 , \"q\\\\\\\"q\", \"\"],\n"
      "  \"b\": {\"c\": true, \"d\": false,\n\"e\": null}, \"f\":12}",
      "f.json");
  ASSERT_TRUE(tree.has_value());
  std::vector<std::string> places;
  Collect(*tree, &places);
  EXPECT_EQ(places, (std::vector<std::string>{"1:1", "1:7", "1:8", "1:11", "1:20", "1:30", "2:8",
                                              "2:14", "2:25", "3:6", "3:17"}));
  EXPECT_EQ(tree->Find("b")->key_position.line, 2);
  EXPECT_EQ(tree->Find("b")->key_position.column, 3);
  EXPECT_EQ(TreePath(*tree, tree->Find("b")->node.Find("d")->node), "b.d");
}

// Takes the lists at "a[].b", and notes what it is given.
class Recorder : public ListConsumer {
 public:
  bool Begin(std::string_view path) override {
    if (path != "a[].b") return false;
    ++lists;
    return true;
  }
  Result<void> Take(TreeNode element) override {
    if (taken++ == refused) return InvalidInput("no more");
    last = element.position;
    return {};
  }
  Result<void> End() override {
    ++ended;
    return {};
  }

  int lists = 0;
  int ended = 0;
  int taken = 0;
  int refused = -1;  // The element at which the parse is to end.
  Position last;
};

TEST(JsonTree, GivesTheElementsOfListsToTheirConsumer) {
  constexpr std::string_view kText =
      R"({"a": [{"b": [1, {"b": [2]}, [3]], "c": [4]}, {"b": []}], "b": [5]})";
  Recorder recorder;
  const Result<TreeNode> tree = ParseJsonTree(kText, "f.json", &recorder);
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(recorder.lists, 2);
  EXPECT_EQ(recorder.ended, 2);
  EXPECT_EQ(recorder.taken, 3);
  EXPECT_EQ(recorder.last.column, 30);
  std::vector<std::string> places;
  Collect(*tree, &places);
  EXPECT_EQ(places, (std::vector<std::string>{"1:1", "1:7", "1:8", "1:14", "1:41", "1:42", "1:47",
                                              "1:53", "1:64", "1:65"}));
  recorder.refused = 4;
  recorder.taken = 3;
  EXPECT_EQ(ParseJsonTree(kText, "f.json", &recorder).error().message, "no more");
}

// A value outside of the tree does not count for its size.
TEST(JsonTree, IsBoundedButForConsumedLists) {
  std::string text = R"({"a": [{"b": [0)";
  for (int i = 0; i < kMaxTreeNodes; ++i) text += ",0";
  text += "]}]}";
  EXPECT_NE(JsonError(text).find("holds more than 12000000 values"), std::string::npos);
  Recorder recorder;
  EXPECT_TRUE(ParseJsonTree(text, "f.json", &recorder).has_value());
  EXPECT_EQ(recorder.taken, kMaxTreeNodes + 1);
}

TEST(JsonTree, IsBoundedAsTheCallerSays) {
  EXPECT_TRUE(ParseJsonTree("[1,2]", "f.json", nullptr, 3).has_value());
  EXPECT_EQ(ParseJsonTree("[1,2,3]", "f.json", nullptr, 3).error().message,
            "f.json:1:6: holds more than 3 values; is it the right file?");
}

TEST(JsonTree, ReadsALoneNumberAtTheEnd) {
  const Result<TreeNode> tree = ParseJsonTree(" 125", "f.json");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(std::get<double>(tree->value), 125);
  EXPECT_EQ(tree->position.column, 2);
}

TEST(JsonTree, SkipsAByteOrderMark) { EXPECT_EQ(JsonError("\xEF\xBB\xBF{}"), ""); }

TEST(JsonTree, SaysWhatIsWrong) {
  EXPECT_EQ(JsonError(" \n"), "f.json:1:1: the file is empty; expected a JSON object");
  EXPECT_EQ(JsonError("{\"a\": 1,\n \"b\" 2}"),
            "f.json:2:6: is not valid JSON: syntax error while parsing object separator - "
            "unexpected number literal; expected ':'");
  EXPECT_EQ(JsonError("[1, NaN]"),
            "f.json:1:5: is not valid JSON: syntax error while parsing value - invalid literal; "
            "last read: '1, N'");
  EXPECT_EQ(JsonError("[1e999]"), "f.json:1:6: is not valid JSON: number overflow parsing '1e999'");
  EXPECT_EQ(JsonError("{\"a\": 1, \"b\": 2,\n\"a\": 3}"),
            "f.json:2:1: 'a' is given twice; remove one of them");
  EXPECT_NE(JsonError("{\"a\": \"\xFF\"}").find("invalid string: ill-formed UTF-8"),
            std::string::npos);
  EXPECT_NE(JsonError("{} {}").find("f.json:1:4: is not valid JSON"), std::string::npos);
}

TEST(JsonTree, BoundsTheDepth) {
  const std::string deepest = std::string(kMaxTreeDepth, '[') + std::string(kMaxTreeDepth, ']');
  EXPECT_EQ(JsonError(deepest), "");
  EXPECT_EQ(JsonError(std::string(1'000'000, '[')),
            "f.json:1:33: nests more than 32 deep; is it the right file?");
}

TEST(TomlTree, KnowsWhereValuesAndKeysAre) {
  const Result<TreeNode> tree =
      ParseTomlTree("# comment\na = [1, 2.5]\n\n  b = 'text'\nc = true\n", "f.toml");
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->Find("b")->key_position.line, 4);
  EXPECT_EQ(tree->Find("b")->key_position.column, 3);
  EXPECT_EQ(tree->Find("b")->node.position.column, 7);
  const TreeNode& list = tree->Find("a")->node;
  const TreeNode& second = std::get<TreeNode::List>(list.value)[1];
  EXPECT_EQ(second.position.column, 9);
  EXPECT_EQ(TreePath(*tree, second), "a[1]");
  EXPECT_EQ(tree->Find("d"), nullptr);
}

TEST(TomlTree, SaysWhatIsWrong) {
  EXPECT_EQ(TomlError("a = 1\nb = \n").substr(0, 30), "f.toml:2:5: is not valid TOML:");
  EXPECT_NE(TomlError("a = 1\na = 2\n").find("f.toml:2:"), std::string::npos);
}

// Long dotted keys would exhaust the stack when the parser's tree is freed.
TEST(TomlTree, BoundsTheDepth) {
  std::string dotted = "a";
  for (int i = 0; i < 400'000; ++i) dotted += ".a";
  EXPECT_EQ(TomlError(dotted + " = 1"),
            "f.toml:1:16: a key has more than 8 parts; is it the right file?");
  std::string quoted = "\"=\"";
  for (int i = 0; i < 400'000; ++i) quoted += ".'='";
  EXPECT_EQ(TomlError("\n" + quoted + " = 1"),
            "f.toml:2:32: a key has more than 8 parts; is it the right file?");
  EXPECT_NE(TomlError("a = " + std::string(100, '[') + std::string(100, ']')), "");
  EXPECT_NE(TomlError("a = " + std::string(500'000, '[')), "");
}

TEST(TomlTree, AllowsDotsInTextAndNumbers) {
  EXPECT_EQ(TomlError("p = \"../../../../../../../../../../../../x\" # a.b.c.d.e.f.g.h.i.j.k\n"
                      "d = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]\n"
                      "q = '......................'\n"),
            "");
}

TEST(TomlTree, RefusesControlCharacters) {
  EXPECT_NE(TomlError(std::string("[\0\0]\n", 5)), "");
  EXPECT_NE(TomlError(std::string("a\0 = 1\n", 7)), "");
  EXPECT_NE(TomlError("[{]\n"), "");
}

// toml++ 3.3 must not see them: see TomlToAscii.
TEST(TomlTree, AllowsLettersBeyondAsciiInTextOnly) {
  const Result<TreeNode> tree = ParseTomlTree(
      "\xEF\xBB\xBF# \xC3\xA9\na = '\\\"\xC3\xA9'\nb = \"\\t\xE6\x97\xA5\xF0\x9F\x98\x80\"\n",
      "f.toml");
  ASSERT_TRUE(tree.has_value()) << tree.error().message;
  EXPECT_EQ(std::get<std::string>(tree->Find("a")->node.value), "\\\"\xC3\xA9");
  EXPECT_EQ(std::get<std::string>(tree->Find("b")->node.value), "\t\xE6\x97\xA5\xF0\x9F\x98\x80");
  EXPECT_EQ(TomlError("a = 1\nb = ['\xC3\xA9', \xC3\xA9]\n"),
            "f.toml:2:11: a character beyond ASCII must be in a string or a comment; quote it");
  EXPECT_EQ(TomlError("a = 8\"\xC3\xA9 = 1\n"),
            "f.toml:1:6: the string does not end on its line; close it with a quote");
  EXPECT_EQ(TomlError("a = \"x\\\n\""),
            "f.toml:1:5: the string does not end on its line; close it with a quote");
  EXPECT_EQ(TomlError("a = '\xC3'"),
            "f.toml:1:5: the string is not valid UTF-8; save the file as UTF-8");
  EXPECT_EQ(TomlError("a = \"\"\"\\\n\xC3\xA9\"\"\""),
            "f.toml:1:5: expected a string on one line, found a multi-line string");
}

// Any JSON of the library's own making reads back as the same tree.
RC_GTEST_PROP(JsonTree, ReadsStringsAndNumbersExactly, ()) {
  // Text without NUL is kept exactly; nlohmann escapes the rest.
  const auto texts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
  const auto numbers = *rc::gen::container<std::vector<double>>(rc::gen::arbitrary<double>());
  const nlohmann::json json = {{"texts", texts}, {"numbers", numbers}};
  const Result<TreeNode> tree = ParseJsonTree(json.dump(1), "f.json");
  RC_ASSERT(tree.has_value());
  const auto& read_texts = std::get<TreeNode::List>(tree->Find("texts")->node.value);
  RC_ASSERT(read_texts.size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    RC_ASSERT(std::get<std::string>(read_texts[i].value) == texts[i]);
    RC_ASSERT(read_texts[i].position.column == 3);
  }
  const auto& read_numbers = std::get<TreeNode::List>(tree->Find("numbers")->node.value);
  RC_ASSERT(read_numbers.size() == numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    RC_ASSERT(std::get<double>(read_numbers[i].value) == numbers[i]);
    RC_ASSERT(read_numbers[i].position.column == 3);
  }
}

}  // namespace
}  // namespace perseus
