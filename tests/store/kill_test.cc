// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// A process writes facts, tells of each that was acknowledged, and is killed
// at a random moment: what it told of must be there.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/temporary_directory.h"
#include "server/store/store.h"
#include "store/facts_testing.h"

namespace perseus::store {
namespace {

constexpr int kKills = 40;
constexpr int kAtOnce = 8;

// Registers rank after rank from `first` on, several at once, and writes each
// acknowledged number to `out`.
[[noreturn]] void RegisterForEver(const std::string& file, std::int32_t first, int out) {
  const auto store = OpenOrThrow(file);
  std::atomic<int> under_way = 0;
  for (std::int32_t rank = first;; ++rank) {
    while (under_way >= kAtOnce) std::this_thread::yield();
    ++under_way;
    RankRecord record = SampleRank("a", rank);
    record.dp_rank = rank;
    store->Add({record}, [&under_way, rank, out](const Result<JobMarks>& written) {
      --under_way;
      if (!written || ::write(out, &rank, sizeof rank) != sizeof rank) ::_exit(1);
    });
  }
}

TEST(StoreKillTest, NothingAcknowledgedIsLost) {
  const TemporaryDirectory directory;
  const std::string file = directory.Path("store.sqlite");
  { ASSERT_TRUE(OpenOrThrow(file)->Write({SampleJob("a")})); }
  std::mt19937 random(7);
  std::vector<std::int32_t> acknowledged;
  std::int32_t next = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    std::array<int, 2> ends = {};
    ASSERT_EQ(::pipe(ends.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) RegisterForEver(file, next, ends[1]);
    ::close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::int32_t rank = 0;
    while (::read(ends[0], &rank, sizeof rank) == sizeof rank) acknowledged.push_back(rank);
    ::close(ends[0]);

    std::vector<std::int32_t> stored;
    for (const RankRecord& record : JobOrThrow(*OpenOrThrow(file), "a").ranks)
      stored.push_back(record.rank);
    std::sort(acknowledged.begin(), acknowledged.end());
    ASSERT_TRUE(
        std::includes(stored.begin(), stored.end(), acknowledged.begin(), acknowledged.end()))
        << "after kill " << kill;
    next = stored.empty() ? 0 : stored.back() + 1;
  }
  EXPECT_GT(acknowledged.size(), kKills);
}

}  // namespace
}  // namespace perseus::store
