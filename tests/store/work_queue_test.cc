// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "common/temporary_directory.h"
#include "store/facts_testing.h"
#include "store/store.h"

namespace perseus::store {
namespace {

constexpr double kLongSeconds = 1000;

class WorkQueueTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* const job : {"a", "b"}) {
      ASSERT_TRUE(store_->Write({SampleJob(job), WorkWanted{job}}));
    }
  }
  std::optional<std::string> Claimed(double seconds = kLongSeconds) const {
    return store_->ClaimWork(seconds).value();
  }

  TemporaryDirectory directory_;
  std::string file_ = directory_.Path("store.sqlite");
  std::unique_ptr<Store> store_ = OpenOrThrow(file_);
};

TEST_F(WorkQueueTest, WhoWaitedLongestComesFirstAndNobodyTwice) {
  EXPECT_EQ(Claimed(), "a");
  EXPECT_EQ(Claimed(), "b");
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_F(WorkQueueTest, WhatIsDoneIsGone) {
  EXPECT_EQ(Claimed(), "a");
  ASSERT_TRUE(store_->FinishWork("a"));
  EXPECT_EQ(Claimed(), "b");
  ASSERT_TRUE(store_->FinishWork("b"));
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_F(WorkQueueTest, WhatIsWantedMeanwhileStays) {
  EXPECT_EQ(Claimed(), "a");
  ASSERT_TRUE(store_->Write({WorkWanted{"a"}}));
  EXPECT_EQ(Claimed(), "b");
  EXPECT_EQ(Claimed(), std::nullopt);
  ASSERT_TRUE(store_->FinishWork("a"));
  EXPECT_EQ(Claimed(), "a");
  ASSERT_TRUE(store_->FinishWork("a"));
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_F(WorkQueueTest, ALeaseThatEndedIsTakenOver) {
  EXPECT_EQ(Claimed(-1), "a");
  EXPECT_EQ(Claimed(), "a");
  EXPECT_TRUE(store_->RenewWork("a", kLongSeconds).value());
  EXPECT_FALSE(store_->RenewWork("b", kLongSeconds).value());
  EXPECT_EQ(Claimed(), "b");
}

TEST_F(WorkQueueTest, AJobThatGoesTakesItsWorkAlong) {
  ASSERT_TRUE(store_->Write({JobGone{"a"}}));
  EXPECT_EQ(Claimed(), "b");
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_F(WorkQueueTest, TheOnlyProcessThatDiedLeavesNoLease) {
  EXPECT_EQ(Claimed(), "a");
  store_.reset();
  store_ = OpenOrThrow(file_);
  EXPECT_EQ(Claimed(), "a");
}

}  // namespace
}  // namespace perseus::store
