// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/labels.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/mentions.h"

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

}  // namespace
}  // namespace perseus
