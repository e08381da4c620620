// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "common/printable.h"
#include "http/support.h"
#include "http/target.h"
#include "http/transport.h"
#include "support/mentions.h"

namespace perseus::http {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Route To(std::string method, std::string pattern) {
  Route route;
  route.method = std::move(method);
  route.pattern = std::move(pattern);
  return route;
}

Router MakeRouter(std::vector<Route> routes) { return *Router::Make(std::move(routes)); }

std::string PatternOf(const RouteMatch& match) {
  return match.route == nullptr ? "" : match.route->pattern;
}

TEST(Router, FillsParametersInOrder) {
  const Router router = MakeRouter({To("GET", "/jobs/{id}/ranks/{rank}")});
  const RouteMatch match = router.Match("GET", {"jobs", "j 1", "ranks", "7"});
  EXPECT_EQ(PatternOf(match), "/jobs/{id}/ranks/{rank}");
  EXPECT_THAT(match.parameters, ElementsAre("j 1", "7"));
}

TEST(Router, MatchesExactly) {
  const Router router = MakeRouter({To("GET", "/"), To("GET", "/jobs"), To("GET", "/jobs/{id}")});
  EXPECT_EQ(PatternOf(router.Match("GET", {""})), "/");
  EXPECT_EQ(PatternOf(router.Match("GET", {"jobs"})), "/jobs");
  for (const std::vector<std::string>& segments : std::vector<std::vector<std::string>>{
           {"Jobs"}, {"jobs", ""}, {"", "jobs"}, {"jobs", "a", ""}, {"jobs", "a", "b"}, {"{id}"}}) {
    const RouteMatch match = router.Match("GET", segments);
    EXPECT_EQ(match.route, nullptr);
    EXPECT_THAT(match.allow, IsEmpty());
  }
}

TEST(Router, PrefersFixedSegmentsInAnyOrderOfRoutes) {
  for (const bool fixed_first : {false, true}) {
    std::vector<Route> routes = {To("GET", "/jobs/{id}"), To("GET", "/jobs/all"),
                                 To("DELETE", "/jobs/{id}")};
    if (fixed_first) std::swap(routes[0], routes[1]);
    const Router router = MakeRouter(routes);
    EXPECT_EQ(PatternOf(router.Match("GET", {"jobs", "all"})), "/jobs/all");
    EXPECT_EQ(PatternOf(router.Match("GET", {"jobs", "x"})), "/jobs/{id}");
    EXPECT_EQ(router.Match("DELETE", {"jobs", "all"}).allow, "GET, HEAD");
  }
}

TEST(Router, GivesTheRestOfAPathToTheLastName) {
  const Router router =
      MakeRouter({To("GET", "/docs/{file*}"), To("GET", "/docs"), To("GET", "/docs/{a}/all")});
  const auto file_of = [&router](const std::vector<std::string>& segments) {
    const RouteMatch match = router.Match("GET", segments);
    EXPECT_EQ(PatternOf(match), "/docs/{file*}");
    return match.parameters.empty() ? "none" : match.parameters.back();
  };
  EXPECT_EQ(file_of({"docs", "a.html"}), "a.html");
  EXPECT_EQ(file_of({"docs", "a", "b", "c.js"}), "a/b/c.js");
  EXPECT_EQ(file_of({"docs", "a", ""}), "a/");
  EXPECT_EQ(file_of({"docs", ""}), "");
  EXPECT_EQ(PatternOf(router.Match("GET", {"docs"})), "/docs");
  EXPECT_EQ(PatternOf(router.Match("GET", {"docs", "x", "all"})), "/docs/{a}/all");
  EXPECT_EQ(router.Match("GET", {"other", "a"}).route, nullptr);
  EXPECT_EQ(router.Match("PUT", {"docs", "a", "b"}).allow, "GET, HEAD");
}

TEST(Router, SaysWhichMethodsAreAllowed) {
  const Router router = MakeRouter({To("GET", "/a"), To("POST", "/a"), To("POST", "/b")});
  EXPECT_EQ(router.Match("PUT", {"a"}).allow, "GET, HEAD, POST");
  EXPECT_EQ(router.Match("HEAD", {"b"}).allow, "POST");
  EXPECT_EQ(PatternOf(router.Match("HEAD", {"a"})), "/a");
  EXPECT_EQ(router.Match("get", {"a"}).route, nullptr);
}

TEST(Router, RefusesBadPatterns) {
  for (const char* pattern :
       {"", "a", "/a/", "//", "/{", "/{}", "/a{b}", "/a?b", "/%41", "/{a*}/b"}) {
    EXPECT_FALSE(Router::Make({To("GET", pattern)})) << pattern;
  }
  EXPECT_THAT(Router::Make({To("GET", "/{a}"), To("GET", "/{b}")}).error().message,
              Mentions("twice"));
}

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGood[] =
    "# who may do what\n"
    "read    aaaaaaaaaaaaaaaa dashboard\n"
    "\n"
    "train\tbbbbbbbbbbbbbbbb node-1\r\n"
    "  operate ABCdef0123-._~+/== alice@site";

TEST(Tokens, ReadsRolesAndNames) {
  const Result<TokenSet> tokens = TokenSet::Parse(kGood, "t");
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(tokens->Find("aaaaaaaaaaaaaaaa")->role, Role::kRead);
  EXPECT_EQ(tokens->Find("bbbbbbbbbbbbbbbb")->name, "node-1");
  EXPECT_EQ(tokens->Find("ABCdef0123-._~+/==")->role, Role::kOperate);
  for (const char* unknown : {"", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAA"}) {
    EXPECT_FALSE(tokens->Find(unknown)) << unknown;
  }
}

TEST(Tokens, MayBeBoundToJobs) {
  const Result<TokenSet> tokens = TokenSet::Parse(
      "train aaaaaaaaaaaaaaaa alice key=alice- key=team-a/ job=j-0123456789abcdef\n"
      "train bbbbbbbbbbbbbbbb node\n",
      "t");
  ASSERT_TRUE(tokens) << tokens.error().message;
  const TokenBinding binding = tokens->Find("aaaaaaaaaaaaaaaa")->binding;
  EXPECT_FALSE(binding.is_free());
  EXPECT_THAT(binding.key_prefixes, ::testing::ElementsAre("alice-", "team-a/"));
  EXPECT_THAT(binding.jobs, ::testing::ElementsAre("j-0123456789abcdef"));
  EXPECT_TRUE(binding.HasPrefixOf("alice-llama"));
  EXPECT_FALSE(binding.HasPrefixOf("alic"));
  EXPECT_TRUE(tokens->Find("bbbbbbbbbbbbbbbb")->binding.is_free());
}

TEST(Tokens, SayWhereALineIsWrongAndNeverShowTokens) {
  const struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"read aaaaaaaaaaaaaaaa\n", "t:1: a line has to be"},
      {"\nadmin aaaaaaaaaaaaaaaa x\n", "t:2: the role has to be read, train or operate"},
      {"read short-secret x\n", "t:1: a token has to have 16 to 256 characters"},
      {"read aaaaaaaaaaaaaaaa:secret x\n", "t:1: a token has to have"},
      {"read aaaaaaaaaaaaaaaa x;y\n", "t:1: a name has to have"},
      {"read aaaaaaaaaaaaaaaa x\ntrain aaaaaaaaaaaaaaaa y\n", "t:2: this token is 'x''s already"},
      {"read aaaaaaaaaaaaaaaa x key=a secret\n",
       "t:1: behind the name may be key=PREFIX and job=ID"},
      {"read aaaaaaaaaaaaaaaa x key=\n", "t:1: behind the name"},
      {"read aaaaaaaaaaaaaaaa x label=a\n", "t:1: behind the name"},
      {"# nothing\n", "t holds no token"},
  };
  for (const auto& [text, message] : cases) {
    const Result<TokenSet> tokens = TokenSet::Parse(text, "t");
    ASSERT_FALSE(tokens) << text;
    EXPECT_THAT(tokens.error().message, StartsWith(message));
    EXPECT_THAT(tokens.error().message, Not(HasSubstr("secret")));
    EXPECT_THAT(tokens.error().message, Not(HasSubstr("aaaaaaaa")));
  }
}

TEST(Tokens, RefusesFilesThatOthersMayReadOrChange) {
  const TemporaryDirectory folder;
  for (const int mode : {0644, 0604, 0602, 0620, 0666, 0777}) {
    const Result<TokenSet> tokens = TokenSet::Load(folder.PutSecret("t", kGood, mode));
    ASSERT_FALSE(tokens) << std::oct << mode;
    EXPECT_THAT(tokens.error().message, Mentions("640"));
  }
  for (const int mode : {0600, 0400, 0640, 0440}) {
    EXPECT_TRUE(TokenSet::Load(folder.PutSecret("t", kGood, mode))) << std::oct << mode;
  }
  EXPECT_THAT(TokenSet::Load(folder.Path("none")).error().message, Mentions("directory"));
  EXPECT_THAT(TokenSet::Load(folder.Path()).error().message, Mentions("regular"));
  EXPECT_THAT(ReadSecretFile(folder.PutSecret("t", kGood), "It", 10).error().message,
              Mentions("10"));
}

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
