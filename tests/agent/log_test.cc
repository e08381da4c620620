// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace perseus::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr auto kPatience = std::chrono::seconds(20);

TEST(Log, QuotesWhatIsNoWord) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); });
  log.Write(LogLevel::kInfo, "lease",
            {{"gpu", "GPU-1"}, {"client", "a \"name\"\nlevel=error"}, {"empty", ""}});
  log.Flush(kPatience);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(
      lines[0],
      "level=info event=lease gpu=GPU-1 client=\"a \\\"name\\\"\\nlevel=error\" empty=\"\"\n");
}

TEST(Log, LeavesOutFloodsButNoErrorAndSaysSo) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); });
  for (int i = 0; i < 10'000; ++i) log.Write(LogLevel::kInfo, "lease", {});
  log.Flush(kPatience);
  // The burst, and what a few seconds of a slow machine add.
  EXPECT_LT(lines.size(), 1'000U);
  const std::size_t before = lines.size();
  log.Write(LogLevel::kError, "restore_failed", {});
  log.Flush(kPatience);
  ASSERT_EQ(lines.size(), before + 1);
  EXPECT_THAT(lines.back(), HasSubstr("lines_left_out="));
}

// A sink that hangs (a full pipe) holds up nobody who logs, and takes no memory
// without bound.
TEST(Log, NobodyWaitsForASinkThatHangs) {
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
    int lines = 0;
  };
  const auto gate = std::make_shared<Gate>();
  {
    Log log([gate](const std::string&) {
      std::unique_lock lock(gate->mutex);
      gate->changed.wait(lock, [&] { return gate->open; });
      ++gate->lines;
      gate->changed.notify_all();
    });
    for (int i = 0; i < 5'000; ++i) log.Write(LogLevel::kError, "restore_failed", {});
  }
  std::unique_lock lock(gate->mutex);
  gate->open = true;
  gate->changed.notify_all();
  EXPECT_TRUE(gate->changed.wait_for(lock, kPatience, [&] { return gate->lines >= 1'000; }));
  EXPECT_LE(gate->lines, 1'001);
}

}  // namespace
}  // namespace perseus::agent
