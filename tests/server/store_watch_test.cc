// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/ops/store_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/mentions.h"

namespace perseus::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StoreWatch, SaysOnceThatTheStoreIsAwayAndOnceThatItIsBack) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); });
  StoreWatch watch(&log);
  store::StoreCounters now;
  now.commits = 7;
  EXPECT_FALSE(watch.Look(now));
  EXPECT_TRUE(watch.is_up());
  now.last_error = "the disk is full";
  now.is_failing = true;
  const auto away = watch.Look(now);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watch.Look(now));
  EXPECT_FALSE(watch.is_up());
  ASSERT_TRUE(away);
  EXPECT_EQ(away->kind, EventKind::kStore);
  EXPECT_EQ(away->data, R"({"is_up":false,"sentence":"the disk is full"})");
  // Nobody wrote for a while: it is not known to be back.
  now.is_failing = false;
  EXPECT_FALSE(watch.Look(now));
  EXPECT_FALSE(watch.is_up());
  ++now.commits;
  const auto back = watch.Look(now);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(watch.Look(now));
  ASSERT_TRUE(back);
  EXPECT_THAT(back->data, HasSubstr(R"("is_up":true)"));
  EXPECT_TRUE(watch.is_up());
  log.Flush(std::chrono::seconds(20));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("event=store_away message=\"the disk is full\""),
                                 Mentions("event=store_back")));
}

}  // namespace
}  // namespace perseus::server
