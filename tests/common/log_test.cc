// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "common/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace perseus {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
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
    std::string last;
  };
  const auto gate = std::make_shared<Gate>();
  {
    Log log([gate](const std::string& line) {
      std::unique_lock lock(gate->mutex);
      gate->changed.wait(lock, [&] { return gate->open; });
      ++gate->lines;
      if (line.find("left_out") != std::string::npos) gate->last = line;
      gate->changed.notify_all();
    });
    for (int i = 0; i < 5'000; ++i) log.Write(LogLevel::kError, "restore_failed", {});
  }
  std::unique_lock lock(gate->mutex);
  gate->open = true;
  gate->changed.notify_all();
  EXPECT_TRUE(gate->changed.wait_for(lock, kPatience, [&] { return !gate->last.empty(); }));
  // One was in the sink, and the last one says how many were lost.
  EXPECT_LE(gate->lines, 1'002);
  EXPECT_THAT(gate->last, HasSubstr("event=log_lines_left_out lines=" +
                                    std::to_string(5'000 - (gate->lines - 1))));
}

TEST(Log, AServersLinesHaveTheirTimeAndNoLimit) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); },
          {.format = LogFormat::kText, .lines_per_second = 0});
  log.Write(LogLevel::kDebug, "request", {{"status", 200}});
  for (int i = 0; i < 500; ++i) log.Write(LogLevel::kInfo, "request", {{"status", 200}});
  log.Flush(kPatience);
  ASSERT_THAT(lines, SizeIs(500));
  EXPECT_THAT(lines[0], MatchesRegex("20..-..-..T..:..:..[.]...Z info request status=200\n"));
}

TEST(Log, ItsJsonKeepsTypesAndShowsNoControls) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); }, {.format = LogFormat::kJson});
  const nlohmann::ordered_json list = {1, "\u202e"};
  log.Write(LogLevel::kWarning, "state",
            {{"name", "a\u009b\xff"}, {"seconds", 0.25}, {"is_new", true}, {"list", list}});
  log.Flush(kPatience);
  ASSERT_THAT(lines, SizeIs(1));
  const auto line = nlohmann::ordered_json::parse(lines[0]);
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["name"], "a\u009b\ufffd");
  EXPECT_EQ(line["seconds"], 0.25);
  EXPECT_EQ(line["is_new"], true);
  EXPECT_EQ(line["list"], list);
  EXPECT_THAT(lines[0], HasSubstr("a\\u009b"));
  EXPECT_THAT(lines[0], HasSubstr("\\u202e"));
}

TEST(Log, TextsOfOthersStayOnTheirLine) {
  std::vector<std::string> lines;
  Log log([&](const std::string& line) { lines.push_back(line); });
  log.Write(LogLevel::kInfo, "lease", {{"client", "\u202elevel=error\u009b\n"}});
  log.Flush(kPatience);
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0], "level=info event=lease client=\"\\u202elevel=error\\u009b\\n\"\n");
}

}  // namespace
}  // namespace perseus
