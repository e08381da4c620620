// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "relay/plan_hub.h"

namespace perseus::relay {
namespace {

using OrderedJson = nlohmann::ordered_json;

TEST(JsonSlices, GivesPartsAsTheyStand) {
  const std::string text = R"( { "a" : 1.50e+0 , "b\"}" :[ {"c":"]}"} , [ ] ,null ],"d":"x,\\"} )";
  ASSERT_TRUE(IsJson(text));
  const auto members = MembersOf(text);
  ASSERT_TRUE(members);
  ASSERT_EQ(members->size(), 3U);
  EXPECT_EQ((*members)[0].key, "a");
  EXPECT_EQ((*members)[0].value, "1.50e+0");
  EXPECT_EQ((*members)[1].key, R"(b\"})");
  const auto elements = ElementsOf((*members)[1].value);
  ASSERT_TRUE(elements);
  ASSERT_EQ(elements->size(), 3U);
  EXPECT_EQ((*elements)[0], R"({"c":"]}"})");
  EXPECT_EQ((*elements)[1], "[ ]");
  EXPECT_EQ((*elements)[2], "null");
  EXPECT_EQ((*members)[2].value, R"("x,\\")");
  EXPECT_FALSE(MembersOf("[]"));
  EXPECT_FALSE(ElementsOf("{}"));
  EXPECT_TRUE(MembersOf("{ }")->empty());
  EXPECT_TRUE(ElementsOf("[]")->empty());
}

TEST(JsonSlices, AnyDepthIsSafe) {
  const std::string deep = std::string(1 << 20, '[') + std::string(1 << 20, ']');
  ASSERT_TRUE(IsJson(deep));
  EXPECT_EQ(ElementsOf(deep)->size(), 1U);
  EXPECT_FALSE(IsJson(std::string(1 << 20, '[')));
}

OrderedJson AnyJson(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 6 : 4)) {
    case 0:
      return *rc::gen::arbitrary<int>();
    case 1:
      return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("a\"\\{}[],: \n")));
    case 2:
      return *rc::gen::arbitrary<bool>();
    case 3:
      return {};
    case 4: {
      OrderedJson list = OrderedJson::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list.push_back(AnyJson(depth - 1));
      return list;
    }
    default: {
      OrderedJson object = OrderedJson::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
        object["k" + std::to_string(i)] = AnyJson(depth - 1);
      }
      return object;
    }
  }
}

RC_GTEST_PROP(JsonSlices, PartsAreThoseOfAParser, ()) {
  const OrderedJson json = AnyJson(4);
  const std::string text = json.dump(*rc::gen::elementOf(std::vector<int>{-1, 0, 2}));
  RC_ASSERT(IsJson(text));
  const auto members = MembersOf(text);
  const auto elements = ElementsOf(text);
  RC_ASSERT(members.has_value() == json.is_object());
  RC_ASSERT(elements.has_value() == json.is_array());
  if (members) {
    RC_ASSERT(members->size() == json.size());
    for (const JsonMember& member : *members) {
      RC_ASSERT(OrderedJson::parse(member.value) == json[std::string(member.key)]);
    }
  }
  if (elements) {
    RC_ASSERT(elements->size() == json.size());
    for (std::size_t i = 0; i < elements->size(); ++i) {
      RC_ASSERT(OrderedJson::parse((*elements)[i]) == json[i]);
    }
  }
}

RC_GTEST_PROP(JsonSlices, AnyBytesAreSafe, ()) {
  const auto text =
      *rc::gen::container<std::string>(rc::gen::elementOf(std::string("\"\\{}[],: \n1a")));
  static_cast<void>(MembersOf(text));
  static_cast<void>(ElementsOf(text));
}

}  // namespace
}  // namespace perseus::relay
