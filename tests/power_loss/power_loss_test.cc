// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The power is cut while something is written: what was acknowledged is there.

#include "support/power_loss.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "agent/journal.h"
#include "common/file.h"
#include "common/temporary_directory.h"
#include "server/store/store.h"

namespace perseus {
namespace {

using ::testing::Each;
using ::testing::Ge;

// Rank after rank, with so many bytes that the log is moved into the database twice.
TEST(PowerLossProgram, DISABLED_Store) {
  const auto store = store::Store::Open("sqlite:" + PowerLossRoot() + "/jobs.db");
  ASSERT_TRUE(store) << store.error().message;
  ASSERT_TRUE((*store)->Write({store::JobRecord{.id = "a", .settings_json = "{}"}}));
  for (int rank = 0; rank < 100'000; ++rank) {
    const store::RankRecord record = {
        .job = "a", .rank = rank, .dp_rank = rank, .node = std::string(30'000, 'n')};
    ASSERT_TRUE((*store)->Write({record}));
    TellDone(rank + 1);
  }
}

TEST(PowerLossProgram, DISABLED_Journal) {
  auto journal = agent::Journal::Open(PowerLossRoot() + "/agent.journal");
  ASSERT_TRUE(journal) << journal.error().message;
  for (int gpu = 1; gpu < 1000; ++gpu) {
    ASSERT_TRUE(journal->Add(fmt::format("GPU-{}", gpu)));
    TellDone(gpu);
  }
}

// One set after the other, into a folder whose parents are new, too.
TEST(PowerLossProgram, DISABLED_Folder) {
  for (int set = 1; set < 100'000; ++set) {
    const std::string text = std::to_string(set);
    const auto written = WriteFilesAtomically(PowerLossRoot() + "/new/deep/out",
                                              {{"plan.json", text}, {"report.html", text}});
    ASSERT_TRUE(written) << written.error().message;
    TellDone(set);
  }
}

class PowerLossTest : public ::testing::TestWithParam<Names> {
 protected:
  // How many ranks are in the store that is left; 0: there is none.
  int StoredRanks(const PowerLoss& power) const {
    power.Restore(GetParam(), left_.Path());
    const auto store = store::Store::Open("sqlite:" + left_.Path("jobs.db"));
    if (!store) return 0;
    const auto job = (*store)->LoadJob("a");
    return job && *job ? static_cast<int>((*job)->ranks.size()) : 0;
  }
  std::set<std::string> NamedGpus(const PowerLoss& power) const {
    power.Restore(GetParam(), left_.Path());
    const auto journal = agent::ParseJournal(left_.Get("agent.journal"), "the journal");
    return journal ? journal->gpus : std::set<std::string>{};
  }
  // The number of the set in each file that is left, as whoever writes next finds it.
  std::vector<int> FoundSets(const PowerLoss& power) const {
    power.Restore(GetParam(), left_.Path());
    const std::vector<std::string> names = {"plan.json", "report.html"};
    const std::string folder = left_.Path("new/deep/out");
    if (!std::filesystem::exists(folder)) return {0};
    if (!CheckWritable(folder, names)) return {0};
    std::vector<int> sets;
    for (const std::string& name : names) {
      sets.push_back(std::atoi(left_.Get("new/deep/out/" + name).c_str()));
    }
    return sets;
  }

  const TemporaryDirectory left_;
};

INSTANTIATE_TEST_SUITE_P(Names, PowerLossTest, ::testing::Values(Names::kFlushed, Names::kAll),
                         [](const auto& names) {
                           return names.param == Names::kFlushed ? "Flushed" : "All";
                         });

TEST_P(PowerLossTest, TheStoreHasWhatItAcknowledged) {
  const PowerLoss power("PowerLossProgram.DISABLED_Store");
  const int acknowledged = power.RunUntil(300);
  ASSERT_GE(acknowledged, 300);
  EXPECT_GE(StoredRanks(power), acknowledged);
}

TEST_P(PowerLossTest, TheStoreHasTheJobAndTheFirstRank) {
  const PowerLoss power("PowerLossProgram.DISABLED_Store");
  EXPECT_GE(power.RunUntil(1), 1);
  EXPECT_GE(StoredRanks(power), 1);
}

TEST_P(PowerLossTest, TheJournalNamesEachGpuThatMayBeLocked) {
  const PowerLoss power("PowerLossProgram.DISABLED_Journal");
  const int acknowledged = power.RunUntil(20);
  ASSERT_GE(acknowledged, 20);
  const std::set<std::string> gpus = NamedGpus(power);
  for (int gpu = 1; gpu <= acknowledged; ++gpu) {
    EXPECT_TRUE(gpus.contains(fmt::format("GPU-{}", gpu))) << gpu;
  }
}

TEST_P(PowerLossTest, AFolderHasTheLastSetWhole) {
  for (const int steps : {1, 2, 20}) {
    const PowerLoss power("PowerLossProgram.DISABLED_Folder");
    const int acknowledged = power.RunUntil(steps);
    ASSERT_GE(acknowledged, steps);
    std::filesystem::remove_all(left_.Path("new"));
    const std::vector<int> sets = FoundSets(power);
    EXPECT_THAT(sets, Each(Ge(acknowledged)));
    EXPECT_THAT(sets, Each(sets.front()));
  }
}

// The tests above can fail: where nothing is flushed, all is lost.
TEST_P(PowerLossTest, WhatIsNotFlushedIsLost) {
  {
    const PowerLoss power("PowerLossProgram.DISABLED_Store");
    ASSERT_GE(power.RunUntil(5, /*disk_lies=*/true), 5);
    EXPECT_EQ(StoredRanks(power), 0);
  }
  {
    const PowerLoss power("PowerLossProgram.DISABLED_Journal");
    ASSERT_GE(power.RunUntil(5, /*disk_lies=*/true), 5);
    EXPECT_TRUE(NamedGpus(power).empty());
  }
  {
    const PowerLoss power("PowerLossProgram.DISABLED_Folder");
    ASSERT_GE(power.RunUntil(5, /*disk_lies=*/true), 5);
    EXPECT_THAT(FoundSets(power), Each(0));
  }
}

}  // namespace
}  // namespace perseus
