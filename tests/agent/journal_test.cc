// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "agent/agent_testing.h"
#include "common/file.h"
#include "support/mentions.h"

namespace perseus::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string TextOf(const std::string& path) { return ReadWholeFile(path, 1 << 20).value_or(""); }

TEST(Journal, NamesTheGpusThatAnEarlierAgentChanged) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("deep/agent.journal");
  {
    auto journal = Journal::Open(path);
    ASSERT_TRUE(journal) << journal.error().message;
    EXPECT_THAT(journal->found(), IsEmpty());
    ASSERT_TRUE(journal->Add("GPU-1"));
    ASSERT_TRUE(journal->Add("GPU-2"));
    ASSERT_TRUE(journal->Add("GPU-2"));
    ASSERT_TRUE(journal->Remove("GPU-1"));
  }
  auto journal = Journal::Open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_FALSE(journal->corruption());
  EXPECT_THAT(journal->found(), ElementsAre("GPU-2"));
  // It stays named until it is given back.
  EXPECT_THAT(TextOf(path), Mentions("locked", "GPU-2"));
  ASSERT_TRUE(journal->Remove("GPU-2"));
  EXPECT_THAT(TextOf(path), ::testing::Not(HasSubstr("locked")));
}

TEST(Journal, ForgetsWhatWasBeforeABoot) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.journal");
  ASSERT_TRUE(WriteFileAtomically(path, FormatJournal({"another-boot", {"GPU-1"}})));
  auto journal = Journal::Open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_THAT(journal->found(), IsEmpty());
  EXPECT_FALSE(journal->corruption());
}

TEST(Journal, IsForOneAgent) {
  const TemporaryDirectory folder;
  const auto first = Journal::Open(folder.Path("agent.journal"));
  ASSERT_TRUE(first);
  const auto second = Journal::Open(folder.Path("agent.journal"));
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, Mentions("another", "journal;"));
}

// Every torn beginning and every changed byte is noticed.
TEST(Journal, NoticesEveryChange) {
  const std::string text = FormatJournal({"boot-id", {"GPU-1", "GPU-2"}});
  ASSERT_TRUE(ParseJournal(text, "j"));
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseJournal(text.substr(0, size), "j")) << size;
  }
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char c : {'\0', '\n', 'x'}) {
      std::string changed = text;
      if (changed[at] == c) continue;
      changed[at] = c;
      EXPECT_FALSE(ParseJournal(changed, "j")) << at;
    }
  }
}

TEST(Journal, KeepsACorruptFileAside) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.journal");
  ASSERT_TRUE(WriteFileAtomically(path, "perseus-agent-journal 1\nboot"));
  auto journal = Journal::Open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  ASSERT_TRUE(journal->corruption());
  EXPECT_THAT(*journal->corruption(), Mentions("line", "2"));
  ASSERT_TRUE(journal->Replace({"GPU-1", "GPU-2"}));
  EXPECT_EQ(TextOf(path + ".corrupt"), "perseus-agent-journal 1\nboot");
  ASSERT_TRUE(journal->Remove("GPU-1"));
  EXPECT_THAT(TextOf(path), Mentions("locked", "GPU-2"));
}

TEST(Journal, KeepsACorruptFileInItsPlaceWhereTheDiskIsFull) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.journal");
  ASSERT_TRUE(WriteFileAtomically(path, "torn"));
  ASSERT_TRUE(WriteFileAtomically(path + ".corrupt", "an older one"));
  auto journal = Journal::Open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  {
    const FullDisk full;
    EXPECT_FALSE(journal->Replace({"GPU-1"}));
  }
  EXPECT_EQ(TextOf(path), "torn");
  ASSERT_TRUE(journal->Replace({"GPU-1"}));
  EXPECT_EQ(TextOf(path + ".corrupt"), "torn");
}

TEST(Journal, CanBeReadWhereItCannotBeWritten) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.journal");
  ASSERT_TRUE(Journal::Open(path)->Add("GPU-1"));
  ForbidWriting(path);
  const auto journal = Journal::Open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_THAT(journal->found(), ElementsAre("GPU-1"));
  ASSERT_TRUE(journal->unwritable());
  EXPECT_THAT(journal->unwritable()->message, Mentions("--journal"));
  EXPECT_FALSE(Journal::Open(path));  // Still one at a time.
}

TEST(Journal, ThatTheDiskDoesNotGiveIsCorrupt) {
  const TemporaryDirectory folder;
  const std::string path = folder.Path("agent.journal");
  std::filesystem::create_directories(path + "/full");
  const auto journal = Journal::Open(path);
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_TRUE(journal->corruption());
}

TEST(Journal, SaysWhereItCannotBeWritten) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(WriteFileAtomically(folder.Path("file"), "x"));
  const auto journal = Journal::Open(folder.Path("file/agent.journal"));
  ASSERT_FALSE(journal);
  EXPECT_THAT(journal.error().message, Mentions("--journal"));
}

}  // namespace
}  // namespace perseus::agent
