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
  watch.Look(now);
  EXPECT_TRUE(watch.is_up());
  now.last_error = "the disk is full";
  now.is_failing = true;
  for (int i = 0; i < 3; ++i) watch.Look(now);
  EXPECT_FALSE(watch.is_up());
  // Nobody wrote for a while: it is not known to be back.
  now.is_failing = false;
  watch.Look(now);
  EXPECT_FALSE(watch.is_up());
  ++now.commits;
  for (int i = 0; i < 3; ++i) watch.Look(now);
  EXPECT_TRUE(watch.is_up());
  log.Flush(std::chrono::seconds(20));
  EXPECT_THAT(lines, ElementsAre(HasSubstr("event=store_away message=\"the disk is full\""),
                                 Mentions("event=store_back")));
}

}  // namespace
}  // namespace perseus::server
