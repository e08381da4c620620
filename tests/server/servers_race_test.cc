// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Several servers at the same moment: time, work, and stores that forget.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/runtime/job_service.h"
#include "server/servers_testing.h"

namespace perseus::server {
namespace {

using store::JobState;
using ServersRaceTest = ServersTest;

TEST_F(ServersRaceTest, KeysThatRaceMakeOneJob) {
  for (int round = 0; round < 5; ++round) {
    const std::string key = fmt::format("key {}", round);
    std::vector<std::string> ids(4);
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const auto created = CreateAt(i % 2, kUnmeasured, "", key);
        if (!created) return;
        ids[i] = created->job->id();
        made += created->is_new ? 1 : 0;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
    for (const std::string& id : ids) EXPECT_EQ(id, ids[0]);
  }
}

TEST_F(ServersRaceTest, RanksThatRaceForAPositionLeaveOne) {
  const auto job = Create(kUnmeasured, "");
  const auto other = Other(job);
  std::atomic<int> accepted = 0;
  std::atomic<int> answered = 0;
  std::atomic<int> winner = -1;
  for (int rank = 0; rank < 4; ++rank) {
    store::RankRecord same = SmallRank(0);
    same.rank = rank;
    (rank % 2 == 0 ? job : other)->Do(RegisterRank{same}, {}, [&, rank](const auto& outcome) {
      if (outcome) {
        winner = rank;
        ++accepted;
      } else {
        EXPECT_EQ(outcome.error().code, FailureCode::kConflict) << outcome.error().message;
      }
      ++answered;
    });
  }
  ASSERT_TRUE(Eventually([&] { return answered == 4; }));
  EXPECT_EQ(accepted, 1);
  ASSERT_TRUE(sync::Refresh(*other));
  ASSERT_EQ(other->Ranks().size(), 1);
  EXPECT_EQ(other->Ranks()[0].rank, winner);
}

TEST_F(ServersRaceTest, NoChangeOfTwoServersIsLost) {
  MakeRunning();
  constexpr int kEach = 15;
  std::vector<std::thread> threads;
  std::array<std::vector<std::int64_t>, 2> added;
  for (int server = 0; server < 2; ++server) {
    threads.emplace_back([&, server] {
      for (int i = 0; i < kEach; ++i) {
        const auto id = sync::AddStraggler(
            *jobs_[server], {.pipeline = (server + i) % 2, .factor = 1 + 0.01 * (i + 1)});
        EXPECT_TRUE(id) << id.error().message;
        if (id) added[server].push_back(*id);
        if (i % 3 == 2 && id) {
          EXPECT_TRUE(sync::ClearStraggler(*jobs_[server], *id));
          added[server].pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::int64_t> all(added[0].begin(), added[0].end());
  all.insert(added[1].begin(), added[1].end());
  EXPECT_EQ(all.size(), 2 * (kEach - kEach / 3));
  for (const auto& job : jobs_) {
    ASSERT_TRUE(sync::Refresh(*job));
    std::set<std::int64_t> there;
    for (const auto& straggler : job->View().stragglers) there.insert(straggler.id);
    EXPECT_EQ(there, all);
  }
  EXPECT_TRUE(AgreesOn(VersionOf(*jobs_[0])));
}

TEST_F(ServersRaceTest, WorkOfAServerThatDiedIsTakenOver) {
  // One that claims and is never heard of again.
  services_[0].reset();
  services_[1].reset();
  const auto dead = OpenStore();
  const auto spec = MakeJobSpec(kSmallSettings, kSmallProfile);
  ASSERT_TRUE(spec);
  const store::JobRecord record{.id = "j-00000000000000aa",
                                .client_key = "key",
                                .pipeline_parallel = 2,
                                .data_parallel = 2,
                                .settings_json = spec->settings_json,
                                .profile_csv = spec->profile_csv,
                                .profile_source = "given"};
  ASSERT_TRUE(dead->Write({record, store::WorkWanted{.job = record.id, .urgent = true}}));
  ASSERT_EQ(dead->ClaimWork(1).value(), record.id);
  Start(1);
  const auto job = sync::Find(*services_[1], record.id);
  ASSERT_NE(job, nullptr);
  AwaitRefined(*job);
  EXPECT_FALSE(dead->RenewWork(record.id, 1).value_or(false));
}

TEST_F(ServersRaceTest, WhatIsShownWithoutTheDatabaseIsMarked) {
  MakeRunning();
  const std::string id = jobs_[0]->id();
  const auto is_stale = [&] {
    bool of_job = false;
    bool of_list = false;
    EXPECT_TRUE(sync::GetFresh(*services_[0], id, &of_job));
    EXPECT_EQ(sync::List(*services_[0], &of_list).size(), 1);
    EXPECT_EQ(of_job, of_list);
    return of_job;
  };
  EXPECT_FALSE(is_stale());
  postgres_->Kill();
  EXPECT_TRUE(is_stale());
  postgres_->Start();
  EXPECT_TRUE(Eventually([&] {
    bool is_again = true;
    return sync::GetFresh(*services_[0], id, &is_again) && !is_again;
  }));
}

// Whether it is registered at the other server nobody can say then: not that it is not.
TEST_F(ServersRaceTest, ARankOfTheOtherServerIsNotDeniedWhenTheDatabaseDies) {
  jobs_[0] = Create();
  jobs_[1] = Other(jobs_[0]);
  ASSERT_TRUE(Register(*jobs_[0], SmallRank(2)));
  postgres_->Kill();
  const auto found = sync::FindRank(*jobs_[1], 2);
  // It may have been read just before.
  if (!found) {
    EXPECT_EQ(found.error().code, FailureCode::kUnavailable) << found.error().message;
  }
  EXPECT_EQ(sync::FindRank(*jobs_[1], 3).error().code, FailureCode::kUnavailable);
  postgres_->Start();
}

TEST_F(ServersRaceTest, ADatabaseThatIsKilledLosesNothingAndComesBack) {
  MakeRunning();
  std::atomic<bool> stopping = false;
  std::array<std::set<std::int64_t>, 2> acknowledged;
  std::vector<std::thread> threads;
  for (int server = 0; server < 2; ++server) {
    threads.emplace_back([&, server] {
      while (!stopping) {
        const auto id = sync::AddStraggler(*jobs_[server], {.pipeline = server, .factor = 1.2});
        if (id) {
          acknowledged[server].insert(*id);
        } else {
          // Or the other server was faster all the time.
          EXPECT_TRUE(id.error().code == FailureCode::kUnavailable ||
                      id.error().code == FailureCode::kStale)
              << id.error().message;
        }
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    postgres_->Kill();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    postgres_->Start();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  stopping = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(acknowledged[0].size() + acknowledged[1].size(), 5);
  for (const auto& job : jobs_) {
    ASSERT_TRUE(Eventually([&] { return sync::Refresh(*job).has_value(); }));
    std::set<std::int64_t> there;
    for (const auto& straggler : job->View().stragglers) there.insert(straggler.id);
    for (const auto& ids : acknowledged) {
      for (const std::int64_t id : ids) EXPECT_TRUE(there.contains(id)) << id;
    }
  }
  EXPECT_TRUE(Eventually([&] { return sync::ClearStragglers(*jobs_[0]).has_value(); }));
  ASSERT_TRUE(Eventually([&] { return VersionOf(*jobs_[0]) == VersionOf(*jobs_[1]); }));
  EXPECT_TRUE(AgreesOn(VersionOf(*jobs_[0])));
}

}  // namespace
}  // namespace perseus::server
