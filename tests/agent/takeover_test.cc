// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "agent/agent_testing.h"
#include "agent/journal.h"
#include "agent/release.h"
#include "common/file.h"
#include "support/mentions.h"

// What becomes of the clocks that an agent which was killed left locked.
namespace perseus::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kFirstHolder = "GPU-fake-0";
constexpr const char* kSecondHolder = "GPU-fake-1";

TEST(Takeover, RestoresAllGpusOfACorruptJournal) {
  TestAgent agent(3);
  ASSERT_TRUE(WriteFileAtomically(agent.options().journal_path, "torn"));
  ASSERT_TRUE(agent.gpu(1).LockClock(600));
  ASSERT_TRUE(agent.Start());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(Eventually([&] {
      const auto changes = agent.gpu(i).changes();
      return !changes.empty() && changes.back() == "release";
    }));
  }
  EXPECT_EQ(agent.log().Count("event=journal_corrupt"), 1);
}

// It cannot start, but no clock has to wait for the disk.
TEST(Takeover, RestoresAllGpusOfACorruptJournalThatCannotBeReplaced) {
  TestAgent agent;
  ASSERT_TRUE(WriteFileAtomically(agent.options().journal_path, "torn"));
  ASSERT_TRUE(agent.gpu(1).LockClock(600));
  {
    const FullDisk full;
    EXPECT_FALSE(agent.Start());
  }
  EXPECT_THAT(agent.gpu(0).changes(), ElementsAre("release"));
  EXPECT_THAT(agent.gpu(1).changes(), ElementsAre("lock 600", "release"));
}

TEST(Takeover, RestoresWhatAnUnwritableJournalNames) {
  TestAgent agent;
  const std::string& path = agent.options().journal_path;
  ASSERT_TRUE(Journal::Open(path)->Add(kFirstHolder));
  ForbidWriting(path);
  ASSERT_TRUE(agent.gpu(0).LockClock(600));
  const auto started = agent.Start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, Mentions("--journal"));
  EXPECT_THAT(agent.gpu(0).changes(), ElementsAre("lock 600", "release"));
  EXPECT_THAT(agent.gpu(1).changes(), IsEmpty());
  EXPECT_EQ(agent.log().Count("event=restored"), 1);
}

// `perseus agent release --journaled`, as the unit runs it.
TEST(Takeover, ReleasesWhatAnUnwritableJournalNames) {
  TestAgent agent;
  const std::string& path = agent.options().journal_path;
  ASSERT_TRUE(Journal::Open(path)->Add(kSecondHolder));
  ForbidWriting(path);
  const auto named = JournalNamesGpus(path);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_TRUE(*named);
  const auto driver = std::make_shared<FakeDriver>(2);
  const ReleaseScope scope = {.gpu = "", .journaled = true};
  const auto released = ReleaseDirectly(driver, path, scope, std::chrono::seconds(20));
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(released->released, 1);
  EXPECT_THAT(driver->gpu(1).changes(), ElementsAre("release"));
}

// Somebody took the journal away while no agent ran.
class LostJournal : public ::testing::TestWithParam<bool> {
 protected:
  LostJournal() {
    const std::string& path = agent_.options().journal_path;
    EXPECT_TRUE(Journal::Open(path)->Add(kSecondHolder));
    std::filesystem::remove(path);
    if (GetParam()) std::filesystem::create_symlink("/nonexistent/journal", path);
  }

  TestAgent agent_;
};

TEST_P(LostJournal, HasAllGpusRestored) {
  ASSERT_TRUE(agent_.gpu(1).LockClock(600));
  ASSERT_TRUE(agent_.Start());
  EXPECT_TRUE(agent_.gpu(0).WaitForCalls(1));
  EXPECT_TRUE(agent_.gpu(1).WaitForLocked(std::nullopt));
  EXPECT_EQ(agent_.log().Count("event=journal_corrupt"), 1);
}

// `perseus agent release --journaled`, as the unit runs it.
TEST_P(LostJournal, IsToldToTheServiceManager) {
  const std::string& path = agent_.options().journal_path;
  const auto named = JournalNamesGpus(path);
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_TRUE(*named);
  const auto driver = std::make_shared<FakeDriver>(2);
  const ReleaseScope scope = {.gpu = "", .journaled = true};
  const auto released = ReleaseDirectly(driver, path, scope, std::chrono::seconds(20));
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(released->released, 2);
  EXPECT_FALSE(JournalNamesGpus(path).value_or(true));
}

INSTANTIATE_TEST_SUITE_P(Ways, LostJournal, ::testing::Bool(), [](const auto& way) {
  return std::string(way.param ? "ADanglingLink" : "Deleted");
});

// Its whole folder is gone, or the next agent writes another one.
TEST(Takeover, RestoresWhatAGpuLockNames) {
  TestAgent agent;
  GpuClaim::Take(agent.options().gpu_locks, kSecondHolder)->Mark(true);
  ASSERT_TRUE(agent.gpu(1).LockClock(600));
  ASSERT_TRUE(agent.Start());
  EXPECT_TRUE(agent.gpu(1).WaitForLocked(std::nullopt));
  EXPECT_EQ(agent.log().Count("event=restore_from_gpu_lock"), 1);
  EXPECT_THAT(agent.gpu(0).changes(), IsEmpty());
  ASSERT_TRUE(agent.Stop());
}

TEST(Takeover, KeepsAGpuInTheJournalThatIsNotThere) {
  TestAgent agent(1);
  {
    auto journal = Journal::Open(agent.options().journal_path);
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->Add(kFirstHolder));
    ASSERT_TRUE(journal->Add("GPU-lost"));
  }
  ASSERT_TRUE(agent.Start());
  EXPECT_TRUE(agent.gpu(0).WaitForCalls(1));
  ASSERT_TRUE(agent.Stop());
  const std::string text = ReadWholeFile(agent.options().journal_path, 1 << 20).value_or("");
  EXPECT_THAT(text, HasSubstr("locked GPU-lost\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr(kFirstHolder)));
  EXPECT_EQ(agent.log().Count("event=journal_names_missing_gpu"), 1);
}

}  // namespace
}  // namespace perseus::agent
