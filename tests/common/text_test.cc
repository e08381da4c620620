// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/json_text.h"
#include "common/labels.h"
#include "common/nearest_name.h"
#include "common/printable.h"
#include "common/word_hash.h"
#include "support/mentions.h"

namespace perseus {
namespace {

TEST(HtmlTextTest, EscapesHtml) {
  EXPECT_EQ(EscapeHtml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeHtml("3 \u00b5s"), "3 \u00b5s");
}

TEST(HtmlTextTest, ReplacesWhatIsNotText) {
  EXPECT_EQ(EscapeHtml("a\x80z"), "a\ufffdz");
  EXPECT_EQ(EscapeHtml(std::string_view("a\0\n\x7fz", 5)), "a   z");
}

}  // namespace
}  // namespace perseus

namespace perseus::cli {
namespace {

using Json = nlohmann::ordered_json;

TEST(JsonTextTest, OneMemberAndOneRowALine) {
  const Json object = {{"a", 1},
                       {"series", {0.1, 2.5}},
                       {"rows", Json::array({Json{{"x", 1}}, Json{{"x", nullptr}}})},
                       {"none", Json::array()},
                       {"inner", {{"y", "z"}}}};
  EXPECT_EQ(FormatByLine(object),
            "{\n"
            "  \"a\": 1,\n"
            "  \"series\": [0.1,2.5],\n"
            "  \"rows\": [\n"
            "    {\"x\":1},\n"
            "    {\"x\":null}\n"
            "  ],\n"
            "  \"none\": [],\n"
            "  \"inner\": {\"y\":\"z\"}\n"
            "}\n");
  EXPECT_EQ(Json::parse(FormatByLine(object)), object);
}

TEST(JsonTextTest, KeepsAllDigitsAndSurvivesOddBytes) {
  const double third = 1.0 / 3;
  const std::string text = FormatByLine({{"x", third}, {"odd\"", "\xff"}});
  const Json back = Json::parse(text);
  EXPECT_EQ(back["x"].get<double>(), third);
  EXPECT_EQ(back["odd\""], "\xef\xbf\xbd");
}

}  // namespace
}  // namespace perseus::cli

namespace perseus {
namespace {

std::string FaultOf(const std::string& text) {
  const auto label = ParseLabel(text);
  return label ? "" : label.error().message;
}

TEST(LabelsTest, WhatKubernetesKnowsIsAllowed) {
  EXPECT_EQ(*ParseLabel("team=vision"), std::pair(std::string("team"), std::string("vision")));
  EXPECT_EQ(FaultOf("app.kubernetes.io/name=a_b-c.d"), "");
  EXPECT_EQ(FaultOf("T=0"), "");
  EXPECT_EQ(ParseLabel("team:vision", ':')->second, "vision");
  EXPECT_EQ(FaultOf(std::string(63, 'k') + "=" + std::string(63, 'v')), "");
}

TEST(LabelsTest, WhatIsNotAllowedIsNamed) {
  EXPECT_THAT(FaultOf("team"), Mentions("team=vision", "'team'"));
  EXPECT_THAT(FaultOf("=vision"), Mentions("team=vision"));
  EXPECT_THAT(FaultOf("="), Mentions("team=vision"));
  EXPECT_THAT(FaultOf(""), Mentions("team=vision"));
  EXPECT_THAT(FaultOf("team="), Mentions("'team'"));
  // The first = ends the name.
  EXPECT_THAT(FaultOf("a=b=c"), Mentions("'b=c'", "'a'"));
  EXPECT_THAT(FaultOf("te am=x"), ::testing::HasSubstr("'te am'"));
  EXPECT_THAT(FaultOf("team-=x"), Mentions("'team-'"));
  EXPECT_THAT(FaultOf("team,user=x"), Mentions("'team,user'"));
  EXPECT_THAT(FaultOf("a:b=x"), Mentions("'a:b'"));
  EXPECT_THAT(FaultOf("team=vision\nadmin"), Mentions("'team'", R"('vision\nadmin')"));
  EXPECT_THAT(FaultOf("team=s\xc3\xa9"), Mentions("'s\xc3\xa9'"));
  EXPECT_THAT(FaultOf("team=a/b"), Mentions("'a/b'"));
  EXPECT_THAT(FaultOf("team=(none)"), Mentions("'(none)'"));
  EXPECT_THAT(FaultOf(std::string("a\0b=x", 5)), Mentions(R"('a\x00b')"));
  EXPECT_THAT(FaultOf(std::string(64, 'k') + "=v"), Mentions("64", "63"));
  EXPECT_THAT(FaultOf("k=" + std::string(100'000, 'v')), Mentions("100000", "63"));
  EXPECT_LT(FaultOf(std::string(100'000, 'k') + "=v").size(), 500U);
  EXPECT_THAT(FaultOf("team=vision\nadmin"), ::testing::Not(::testing::HasSubstr("\n")));
}

TEST(LabelsTest, ThereAreOnlySoMany) {
  JobLabels labels;
  for (std::size_t i = 0; i < kMostLabels; ++i) labels.emplace(fmt::format("k{}", i), "v");
  EXPECT_TRUE(CheckLabels(labels));
  labels.emplace("one-more", "v");
  ASSERT_FALSE(CheckLabels(labels));
  EXPECT_THAT(CheckLabels(labels).error().message, Mentions("17", "16"));
  EXPECT_FALSE(CheckLabels({{"team", ""}}));
}

TEST(LabelsTest, TheTextIsByName) {
  EXPECT_EQ(LabelsText({{"team", "vision"}, {"project", "x"}}), "project=x, team=vision");
  EXPECT_EQ(LabelsText({}), "");
}

TEST(NearestNameTest, IsNearOrEmpty) {
  EXPECT_EQ(NearestName("explian", {"plan", "explain"}), "explain");
  EXPECT_EQ(NearestName("zbv", {"1f1b", "dualpipev"}), "");
  EXPECT_EQ(NearestName("", {}), "");
  EXPECT_EQ(NearestName("", {"a"}), "");
}

TEST(NearestNameTest, FoldsCaseAndSeparators) {
  EXPECT_EQ(NearestName("Zero-Bubble", {"zerobuble", "zero"}), "zerobuble");
  EXPECT_TRUE(SameName("One_Name", "ONE-NAME"));
  EXPECT_FALSE(SameName("one", "two"));
}

// A letter is no misspelling of every short word.
TEST(NearestNameTest, OffersNoUnrelatedShortWord) {
  EXPECT_EQ(NearestName("-x", {"--at", "--tp"}), "");
  EXPECT_EQ(NearestName("-tq", {"--at", "--tp"}), "--tp");
  EXPECT_EQ(NearestName("foo", {"job"}), "");
  EXPECT_EQ(NearestName("jib", {"job"}), "job");
}

TEST(Printable, ShowsWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("plain, \u00e9, \u4f60 and \\"), "plain, \u00e9, \u4f60 and \\");
  EXPECT_EQ(Printable("a\nb\x1b[31m\x7f"), "a\\nb\\x1b[31m\\x7f");
  EXPECT_EQ(Printable("\u009b31m\u0085"), "\\x9b31m\\x85");
  EXPECT_EQ(Printable("\u202eevil\u202c \u2066x\u2069 \u200e\u200f\u061c"),
            "\\u202eevil\\u202c \\u2066x\\u2069 \\u200e\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029"), "\\u2028\\u2029");
  EXPECT_EQ(Printable("\x9b\xff\xc3"), "\\x9b\\xff\\xc3");
}

TEST(PrintableJson, IsTheSameValue) {
  const nlohmann::ordered_json value = {{"name", "a\u202e\u009b\x7f\u00e9\n\U0001F600"}};
  const std::string text = PrintableJson(value.dump());
  EXPECT_EQ(text, R"({"name":"a\u202e\u009b\u007f)"
                  "\u00e9"
                  R"(\n)"
                  "\U0001F600\"}");
  EXPECT_EQ(nlohmann::ordered_json::parse(text), value);
}

TEST(CutTo, CountsCharactersAndMarksWhatIsLeftOut) {
  EXPECT_EQ(CutTo(4, "caf\u00e9", "\u2026"), "caf\u00e9");
  EXPECT_EQ(CutTo(3, "caf\u00e9", "\u2026"), "ca\u2026");
  EXPECT_EQ(CutTo(3, "\u00e9\u00e9\u00e9\u00e9", "\u2026"), "\u00e9\u00e9\u2026");
}

TEST(WordHashTest, IsSplitMix64) {
  // The first outputs of the published generator for the seeds 0 and 1234567.
  EXPECT_EQ(WordHash(0).With(0).value(), 0xE220A8397B1DCDAFU);
  EXPECT_EQ(WordHash(1234567).With(0).value(), 6457827717110365317U);
  EXPECT_EQ(WordHash(1234567 ^ 5).With(5).value(), 6457827717110365317U);
  EXPECT_NE(WordHash(0).With(1).With(2).value(), WordHash(0).With(2).With(1).value());
}

TEST(WordHashTest, DrawsHaveMeanZeroVarianceOneAndBounds) {
  constexpr int kDraws = 100000;
  double sum = 0;
  double squares = 0;
  double most = 0;
  double share = 0;
  for (int i = 0; i < kDraws; ++i) {
    const WordHash hash = WordHash(42).With(i);
    const double z = hash.StandardDraw();
    sum += z;
    squares += z * z;
    most = std::max(most, std::fabs(z));
    share += hash.Share();
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.015);
  EXPECT_NEAR(squares / kDraws, 1, 0.02);
  EXPECT_LT(most, 2 * std::sqrt(3.0));
  EXPECT_GT(most, 3);
  EXPECT_NEAR(share / kDraws, 0.5, 0.005);
}

TEST(WordHashTest, DrawAddsTheFourWords) {
  const WordHash hash = WordHash(9).With(8);
  double sum = -2;
  for (int word = 0; word < 4; ++word) {
    sum += (static_cast<double>((hash.value() >> (16 * word)) & 0xFFFF) + 0.5) / 65536;
  }
  EXPECT_DOUBLE_EQ(hash.StandardDraw(), std::sqrt(3.0) * sum);
}

}  // namespace
}  // namespace perseus
