// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/nearest_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perseus {
namespace {

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

}  // namespace
}  // namespace perseus
