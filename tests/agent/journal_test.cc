// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "agent/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/agent_testing.h"
#include "agent/peer.h"
#include "agent/release.h"
#include "common/file.h"
#include "common/temporary_directory.h"
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

// One agent a GPU; and root writes only where nobody else can.
namespace perseus::agent {
namespace {

using ::testing::HasSubstr;

constexpr const char* kClaimed = "GPU-fake-0";

TEST(GpuClaim, IsGoneWithItsHolder) {
  const TemporaryDirectory folder;
  {
    const auto claim = GpuClaim::Take(folder.Path("gpus"), kClaimed);
    ASSERT_TRUE(claim) << claim.error().message;
    EXPECT_FALSE(claim->marked());
    const auto second = GpuClaim::Take(folder.Path("gpus"), kClaimed);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kConflict);
    EXPECT_THAT(second.error().message, Mentions("process", std::to_string(::getpid())));
    EXPECT_TRUE(GpuClaim::Take(folder.Path("gpus"), "GPU-fake-1"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.Path("gpus")));
}

TEST(GpuClaim, RemembersAClockThatIsNotBack) {
  const TemporaryDirectory folder;
  GpuClaim::Take(folder.Path("."), kClaimed)->Mark(true);
  auto claim = GpuClaim::Take(folder.Path("."), kClaimed);
  ASSERT_TRUE(claim);
  EXPECT_TRUE(claim->marked());
  claim->Mark(false);
  std::optional<GpuClaim> last = *std::move(claim);
  last.reset();
  EXPECT_FALSE(GpuClaim::Take(folder.Path("."), kClaimed)->marked());
}

// Two agents, each with its own socket and journal, would undo each other's clocks.
TEST(GpuClaim, KeepsASecondAgentFromTheGpus) {
  TestAgent first;
  TestAgent second;
  second.options().gpu_locks = first.options().gpu_locks;
  ASSERT_TRUE(first.Start());
  const auto refused = second.Start();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, Mentions("GPU", "GPU-fake-0"));
  EXPECT_THAT(second.gpu(0).changes(), ::testing::IsEmpty());
  second.options().observe = true;
  ASSERT_TRUE(second.Start());
  ASSERT_TRUE(second.Stop());
  ASSERT_TRUE(first.Stop());
  second.options().observe = false;
  ASSERT_TRUE(second.Start());
}

// A name that leads elsewhere: what is there stays as it is.
class Trap : public ::testing::TestWithParam<bool> {
 protected:
  Trap() { EXPECT_TRUE(WriteFileAtomically(folder_.Path("precious"), "precious")); }
  void Set(const std::string& path) {
    const std::string target = folder_.Path("precious");
    if (GetParam()) {
      std::filesystem::create_symlink(target, path);
    } else {
      std::filesystem::create_hard_link(target, path);
    }
  }
  ~Trap() override {
    EXPECT_EQ(ReadWholeFile(folder_.Path("precious"), 100).value_or(""), "precious");
  }

  TemporaryDirectory folder_;
};

TEST_P(Trap, AGpuLockIsRefused) {
  Set(folder_.Path("GPU-fake-0.lock"));
  const auto claim = GpuClaim::Take(folder_.Path("."), kClaimed);
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, ErrorCode::kIo);
  EXPECT_THAT(claim.error().message, Mentions("--gpu-locks"));
}

TEST_P(Trap, AJournalsLockIsRefused) {
  Set(folder_.Path("journal.lock"));
  const auto journal = Journal::Open(folder_.Path("journal"));
  ASSERT_TRUE(journal) << journal.error().message;
  ASSERT_TRUE(journal->unwritable());
  EXPECT_THAT(journal->unwritable()->message, Mentions("journal.lock"));
}

TEST_P(Trap, AJournalIsReplacedNotWritten) {
  Set(folder_.Path("journal"));
  auto journal = Journal::Open(folder_.Path("journal"));
  ASSERT_TRUE(journal) << journal.error().message;
  EXPECT_TRUE(journal->corruption());
  EXPECT_TRUE(journal->Replace({}));
  EXPECT_THAT(ReadWholeFile(folder_.Path("journal"), 1000).value_or(""), Mentions("boot"));
}

INSTANTIATE_TEST_SUITE_P(Links, Trap, ::testing::Bool(), [](const auto& link) {
  return std::string(link.param ? "Symbolic" : "Hard");
});

TEST(SafePlace, RootWritesWhereOnlyRootCan) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const TemporaryDirectory folder;
  const std::string place = folder.Path("place");
  std::filesystem::create_directory(place);
  const auto refused = [&](const std::string& how) {
    const auto claim = GpuClaim::Take(place, kClaimed);
    const auto journal = Journal::Open(place + "/journal");
    const auto socket = ListeningSocket::Listen(place + "/socket");
    EXPECT_FALSE(claim);
    EXPECT_FALSE(journal);
    EXPECT_FALSE(socket);
    if (claim || journal || socket) return false;
    for (const Error& error : {claim.error(), journal.error(), socket.error()}) {
      EXPECT_THAT(error.message, HasSubstr(how));
    }
    return std::filesystem::is_empty(place);
  };
  ASSERT_EQ(::chmod(place.c_str(), 0777), 0);
  EXPECT_TRUE(refused("can be written by"));
  ASSERT_EQ(::chmod(place.c_str(), 01777), 0);  // As /tmp: only owners replace.
  EXPECT_TRUE(GpuClaim::Take(place, kClaimed));
  ASSERT_EQ(::chmod(place.c_str(), 0700), 0);
  ASSERT_EQ(::chown(place.c_str(), 1234, 1234), 0);
  EXPECT_TRUE(refused("does not belong to root"));
}

}  // namespace
}  // namespace perseus::agent

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
