// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "server/store/store.h"
#include "store/facts_testing.h"
#include "store/testing_stores.h"

namespace perseus::store {
namespace {

constexpr double kLongSeconds = 1000;

class WorkQueueTest : public AnyStoreTest {
 protected:
  void SetUp() override {
    AnyStoreTest::SetUp();
    if (IsSkipped()) return;
    store_ = Open();
    for (const char* const job : {"a", "b"}) {
      ASSERT_TRUE(store_->Write({SampleJob(job), WorkWanted{job}}));
    }
  }
  std::optional<std::string> Claimed(double seconds = kLongSeconds) const {
    return store_->ClaimWork(seconds).value();
  }

  std::unique_ptr<Store> store_;
};

INSTANTIATE_TEST_SUITE_P(On, WorkQueueTest, ::testing::Values(Kind::kSqlite, Kind::kPostgresql),
                         KindName);

TEST_P(WorkQueueTest, WhoWaitedLongestComesFirstAndNobodyTwice) {
  EXPECT_EQ(Claimed(), "a");
  EXPECT_EQ(Claimed(), "b");
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_P(WorkQueueTest, WhatIsUrgentComesFirst) {
  ASSERT_TRUE(store_->Write({WorkWanted{.job = "b", .urgent = true}}));
  EXPECT_EQ(Claimed(), "b");
  // It is no more when it is wanted again.
  ASSERT_TRUE(store_->Write({WorkWanted{.job = "b"}}));
  ASSERT_TRUE(store_->FinishWork("b"));
  EXPECT_EQ(Claimed(), "a");
  EXPECT_EQ(Claimed(), "b");
}

TEST_P(WorkQueueTest, EachKindIsClaimedAlone) {
  EXPECT_EQ(store_->ClaimWork(kLongSeconds, WorkKind::kUrgent).value(), std::nullopt);
  ASSERT_TRUE(store_->Write({WorkWanted{.job = "a", .urgent = true}}));
  EXPECT_EQ(store_->ClaimWork(kLongSeconds, WorkKind::kOther).value(), "b");
  EXPECT_EQ(store_->ClaimWork(kLongSeconds, WorkKind::kOther).value(), std::nullopt);
  EXPECT_EQ(store_->ClaimWork(kLongSeconds, WorkKind::kUrgent).value(), "a");
}

TEST_P(WorkQueueTest, WhatIsDoneIsGone) {
  EXPECT_EQ(Claimed(), "a");
  ASSERT_TRUE(store_->FinishWork("a"));
  EXPECT_EQ(Claimed(), "b");
  ASSERT_TRUE(store_->FinishWork("b"));
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_P(WorkQueueTest, WhatIsWantedMeanwhileStays) {
  EXPECT_EQ(Claimed(), "a");
  ASSERT_TRUE(store_->Write({WorkWanted{"a"}}));
  EXPECT_EQ(Claimed(), "b");
  EXPECT_EQ(Claimed(), std::nullopt);
  ASSERT_TRUE(store_->FinishWork("a"));
  EXPECT_EQ(Claimed(), "a");
  ASSERT_TRUE(store_->FinishWork("a"));
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_P(WorkQueueTest, ALeaseThatEndedIsTakenOver) {
  EXPECT_EQ(Claimed(-1), "a");
  EXPECT_EQ(Claimed(), "a");
  EXPECT_TRUE(store_->RenewWork("a", kLongSeconds).value());
  EXPECT_FALSE(store_->RenewWork("b", kLongSeconds).value());
  EXPECT_EQ(Claimed(), "b");
}

TEST_P(WorkQueueTest, AJobThatGoesTakesItsWorkAlong) {
  ASSERT_TRUE(store_->Write({JobGone{"a"}}));
  EXPECT_EQ(Claimed(), "b");
  EXPECT_EQ(Claimed(), std::nullopt);
}

TEST_P(WorkQueueTest, TheOnlyProcessThatDiedLeavesNoLease) {
  if (store_->is_shared()) GTEST_SKIP() << "there may be others";
  EXPECT_EQ(Claimed(), "a");
  store_.reset();
  store_ = Open();
  EXPECT_EQ(Claimed(), "a");
}

}  // namespace
}  // namespace perseus::store
