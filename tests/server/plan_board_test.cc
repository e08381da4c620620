// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/plan_board.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace perseus::server {
namespace {

std::shared_ptr<const PublishedPlan> Version(std::int64_t version) {
  auto plan = std::make_shared<PublishedPlan>();
  plan->version.version = version;
  return plan;
}

// The versions that a waiter was told.
class Heard {
 public:
  PlanBoard::Waiter Waiter() {
    return [this](const std::shared_ptr<const PublishedPlan>& plan) {
      versions.push_back(plan->version.version);
    };
  }
  std::vector<std::int64_t> versions;
};

TEST(PlanBoardTest, AWaiterIsToldOnce) {
  PlanBoard board;
  Heard heard;
  board.Wait(0, 60, heard.Waiter());
  EXPECT_EQ(board.waiting(), 1);
  board.Publish(Version(1))();
  board.Publish(Version(2))();
  EXPECT_EQ(heard.versions, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(board.waiting(), 0);
}

TEST(PlanBoardTest, NewsThatAreThereAreToldAtOnce) {
  PlanBoard board;
  board.Publish(Version(5))();
  Heard heard;
  board.Wait(4, 60, heard.Waiter());
  board.Wait(5, 60, heard.Waiter());
  EXPECT_EQ(heard.versions, (std::vector<std::int64_t>{5}));
}

TEST(PlanBoardTest, NobodyGoesBackToAnEarlierVersion) {
  PlanBoard board;
  board.Publish(Version(5))();
  Heard heard;
  board.Wait(5, 60, heard.Waiter());
  board.Publish(Version(4))();
  EXPECT_EQ(board.version(), 5);
  board.Publish(Version(5))();
  EXPECT_TRUE(heard.versions.empty());
  board.Publish(Version(6))();
  EXPECT_EQ(heard.versions, (std::vector<std::int64_t>{6}));
}

// Its version is of another store, or of commits that the store lost.
TEST(PlanBoardTest, WhoKnowsMoreThanThereIsHearsWhatThereIs) {
  PlanBoard board;
  board.Publish(Version(5))();
  Heard more;
  Heard same;
  board.Wait(9, 60, more.Waiter());
  board.Wait(5, 60, same.Waiter());
  EXPECT_EQ(more.versions, (std::vector<std::int64_t>{5}));
  EXPECT_TRUE(same.versions.empty());
}

TEST(PlanBoardTest, WhoWaitedLongEnoughIsForgotten) {
  PlanBoard board;
  Heard heard;
  for (int i = 0; i < 5000; ++i) board.Wait(0, 0, heard.Waiter());
  EXPECT_EQ(board.waiting(), 0);
  board.Publish(Version(1))();
  EXPECT_TRUE(heard.versions.empty());
}

TEST(PlanBoardTest, WhoWentAwayIsForgottenAtOnce) {
  PlanBoard board;
  Heard heard;
  const auto kept = std::make_shared<int>(0);
  const std::int64_t ticket = board.Wait(0, 60, [kept](const auto&) {});
  board.Wait(0, 60, heard.Waiter());
  EXPECT_EQ(kept.use_count(), 2);
  board.Forget(ticket);
  EXPECT_EQ(kept.use_count(), 1);
  EXPECT_EQ(board.waiting(), 1);
  board.Forget(ticket);
  board.Publish(Version(1))();
  EXPECT_EQ(heard.versions, (std::vector<std::int64_t>{1}));
}

TEST(PlanBoardTest, AJobThatIsGoneAnswersEveryone) {
  PlanBoard board;
  auto gone = std::make_shared<PublishedPlan>();
  gone->gone = true;
  board.Publish(gone)();
  bool told = false;
  board.Wait(0, 60, [&](const auto& plan) { told = plan->gone; });
  EXPECT_TRUE(told);
}

TEST(PlanBoardTest, NobodyIsForgottenWhenThreadsMeet) {
  constexpr int kWaiters = 2000;
  PlanBoard board;
  std::atomic<int> told = 0;
  std::thread publisher([&] {
    for (int version = 1; version <= 50; ++version) board.Publish(Version(version))();
  });
  for (int i = 0; i < kWaiters; ++i) board.Wait(0, 60, [&](const auto&) { ++told; });
  publisher.join();
  EXPECT_EQ(told, kWaiters);
}

}  // namespace
}  // namespace perseus::server
