// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "relay/plan_hub.h"

namespace perseus::relay {
namespace {

Result<std::shared_ptr<const PlanSet>> Parse(const std::string& text) {
  return PlanSet::Parse(std::make_shared<const std::string>(text));
}

TEST(PlanSet, GivesEachRankWhatTheServerWouldHave) {
  const auto set = Parse(
      R"({"job":"j","version":12,"plans":[)"
      R"({"job":"j","version":12,"ranks":[0,3],"pipeline":0,"computations":[["F",0,0,1410,0.10]]},)"
      R"({"job":"j","version":12,"ranks":[7],"pipeline":1,"sentence":"\"ranks\":[1]"}]})");
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_EQ((*set)->version(), 12);
  EXPECT_EQ((*set)->size(), 3U);
  EXPECT_TRUE((*set)->Has(3));
  EXPECT_FALSE((*set)->Has(1));
  EXPECT_EQ(
      *(*set)->BodyOf(3),
      R"({"job":"j","version":12,"rank":3,"pipeline":0,"computations":[["F",0,0,1410,0.10]]})");
  EXPECT_EQ(*(*set)->BodyOf(7),
            R"({"job":"j","version":12,"rank":7,"pipeline":1,"sentence":"\"ranks\":[1]"})");
}

TEST(PlanSet, RefusesWhatIsNoAnswer) {
  for (const char* const text :
       {"", "garbage", "[]", "{}", R"({"version":1})", R"({"plans":[]})",
        R"({"version":"1","plans":[]})", R"({"version":-1,"plans":[]})",
        R"({"version":1.5,"plans":[]})", R"({"version":1,"plans":{}})",
        R"({"version":1,"plans":[1]})", R"({"version":1,"plans":[{"rank":1}]})",
        R"({"version":1,"plans":[{"ranks":["a"]}]})", R"({"version":1,"plans":[{"ranks":[-1]}]})",
        R"({"version":1,"plans":[{"ranks":[0]}])"}) {
    EXPECT_FALSE(Parse(text)) << text;
  }
  EXPECT_FALSE(PlanSet::Parse(nullptr));
  EXPECT_TRUE(Parse(R"({"version":1,"plans":[]})"));
}

}  // namespace
}  // namespace perseus::relay
