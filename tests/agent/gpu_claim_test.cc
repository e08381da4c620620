// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "agent/agent_testing.h"
#include "agent/journal.h"
#include "agent/peer.h"
#include "common/file.h"
#include "common/temporary_directory.h"
#include "support/mentions.h"

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
