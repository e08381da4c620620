// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perseus::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(Log, QuotesWhatIsNoWord) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); });
  log.Write(LogLevel::kInfo, "lease",
            {{"gpu", "GPU-1"}, {"client", "a \"name\"\nlevel=error"}, {"empty", ""}});
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(
      lines[0],
      "level=info event=lease gpu=GPU-1 client=\"a \\\"name\\\"\\nlevel=error\" empty=\"\"\n");
}

TEST(Log, LeavesOutFloodsButNoErrorAndSaysSo) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 10'000; ++i) log.Write(LogLevel::kInfo, "lease", {});
  // The burst, and what a few seconds of a slow machine add.
  EXPECT_LT(lines.size(), 1'000U);
  const std::size_t before = lines.size();
  log.Write(LogLevel::kError, "restore_failed", {});
  ASSERT_EQ(lines.size(), before + 1);
  EXPECT_THAT(lines.back(), HasSubstr("lines_left_out="));
}

}  // namespace
}  // namespace perseus::agent
