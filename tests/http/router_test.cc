// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "http/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace perseus::http
