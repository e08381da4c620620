// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/utf8.h"
#include "support/mentions.h"

namespace perseus::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Target, DecodesSegmentsAndQuery) {
  const Result<Target> target = ParseTarget("/a%20b/c+d/%C3%A9?x=1&y=a%26b+c&z&w=a=b");
  ASSERT_TRUE(target);
  EXPECT_THAT(target->segments, ElementsAre("a b", "c+d", "é"));
  EXPECT_THAT(target->query,
              ElementsAre(Pair("w", "a=b"), Pair("x", "1"), Pair("y", "a&b c"), Pair("z", "")));
  EXPECT_EQ(PathOf(*target), "/a b/c+d/é");
}

TEST(Target, KeepsEmptySegments) {
  EXPECT_THAT(ParseTarget("/")->segments, ElementsAre(""));
  EXPECT_THAT(ParseTarget("//a/")->segments, ElementsAre("", "a", ""));
  EXPECT_THAT(ParseTarget("/?")->query, ElementsAre());
  EXPECT_THAT(ParseTarget("/?&&a=1&")->query, ElementsAre(Pair("a", "1")));
}

TEST(Target, TakesTheAbsoluteForm) {
  EXPECT_THAT(ParseTarget("http://example.org:80/a?b=c")->segments, ElementsAre("a"));
  EXPECT_THAT(ParseTarget("HTTP://example.org")->segments, ElementsAre(""));
  EXPECT_FALSE(ParseTarget("http:///a"));
  EXPECT_FALSE(ParseTarget("http://h?a=b"));
  EXPECT_FALSE(ParseTarget("ftp://example.org/a"));
}

TEST(Target, RefusesWhatCouldBeReadInTwoWays) {
  for (const char* text : {"",        "*",         "a",         "example.org:443",
                           "/a b",    "/a#b",      "/\xC3\xA9", "/a\x7F",
                           "/a\tb",   "/%",        "/%4",       "/%zz",
                           "/%2",     "/a%00b",    "/%0A",      "/%7F",
                           "/%FF",    "/%C0%AF",   "/.",        "/..",
                           "/a/../b", "/%2e",      "/%2E%2e/x", "/.%2e",
                           "/a%2Fb",  "/a%2fb",    "/a%5Cb",    "/a\\b",
                           "/?=1",    "/?a=1&a=2", "/?%00=1",   "/?a=%ED%A0%80",
                           "/?a=%"}) {
    const Result<Target> target = ParseTarget(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kInvalidInput);
    EXPECT_THAT(target.error().message, ::testing::EndsWith(".")) << text;
  }
}

TEST(Target, IsBounded) {
  EXPECT_TRUE(ParseTarget("/" + std::string(kMaxTargetBytes - 1, 'a')));
  EXPECT_FALSE(ParseTarget("/" + std::string(kMaxTargetBytes, 'a')));
  std::string query = "/?";
  for (int i = 0; i < 64; ++i) query += "&a" + std::to_string(i);
  EXPECT_TRUE(ParseTarget(query));
  EXPECT_THAT(ParseTarget(query + "&b").error().message, Mentions("64"));
}

// A text of well-formed characters without controls, as segments and values may hold.
rc::Gen<std::string> GoodText() {
  return rc::gen::map(
      rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
          "a", "Z", "0", "-", "~", "%", "+", "&", "=", "?", "#", " ", "\"", "é", "€", "😀", ":"})),
      [](const std::vector<std::string>& parts) {
        std::string text = "x";
        for (const std::string& part : parts) text += part;
        return text;
      });
}

RC_GTEST_PROP(Target, ReadsWhatWasEncoded, ()) {
  const auto segments = *rc::gen::nonEmpty(rc::gen::resize(
      8, rc::gen::container<std::vector<std::string>>(rc::gen::resize(12, GoodText()))));
  const auto query =
      *rc::gen::resize(8, rc::gen::container<std::map<std::string, std::string>>(
                              rc::gen::resize(8, GoodText()), rc::gen::resize(8, GoodText())));
  std::string text;
  for (const std::string& segment : segments) text += "/" + PercentEncoded(segment);
  text += "?";
  for (const auto& [name, value] : query) {
    text += PercentEncoded(name) + "=" + PercentEncoded(value) + "&";
  }
  RC_PRE(text.size() <= kMaxTargetBytes);
  const Result<Target> target = ParseTarget(text);
  RC_ASSERT(target.has_value());
  RC_ASSERT(target->segments == segments);
  RC_ASSERT(target->query == query);
}

// Whatever comes in: what a handler gets has no way out of a folder and no surprises.
RC_GTEST_PROP(Target, NeverLetsATrickThrough, ()) {
  const auto pieces =
      *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(std::vector<std::string>{
          "/",   "//",     ".",      "..",   "%2e",     "%2E", "%2f", "%5c", "\\", "%00",
          "%0a", "%c0%ae", "%e2%80", "%25",  "%252e",   "a",   "?",   "&",   "=",  "+",
          "%",   "#",      ";",      "\x80", "http://", "@",   ":",   "é"}));
  std::string text = "/";
  for (const std::string& piece : pieces) text += piece;
  const Result<Target> target = ParseTarget(text);
  if (!target) return;
  const auto is_clean = [](const std::string& part) {
    return ValidUtf8Prefix(part) == part.size() &&
           std::none_of(part.begin(), part.end(),
                        [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
  };
  for (const std::string& segment : target->segments) {
    RC_ASSERT(segment != "." && segment != "..");
    RC_ASSERT(segment.find_first_of("/\\") == std::string::npos);
    RC_ASSERT(is_clean(segment));
  }
  for (const auto& [name, value] : target->query) RC_ASSERT(is_clean(name) && is_clean(value));
}

}  // namespace
}  // namespace perseus::http
