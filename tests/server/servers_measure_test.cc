// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Ranks that measure at several servers make one profile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/servers_testing.h"

namespace perseus::server {
namespace {

using store::JobState;
using ServersMeasureTest = ServersTest;

TEST_F(ServersMeasureTest, TheProfileHoldsTheRowsOfAllServers) {
  const auto job = Create(kUnmeasured, "");
  const auto other = Other(job);
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(Register(rank % 2 == 0 ? *job : *other, SmallRank(rank)));
  }
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  ASSERT_TRUE(AwaitState(*other, JobState::kProfiling));
  // A clock that each rank measured alone.
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      store::Measurements measured = Sweep(rank);
      for (store::MeasuredRow row : {measured.rows[4], measured.rows[5]}) {
        row.clock_mhz = 900 + rank;
        row.time_seconds *= 1.1;
        row.energy_joules *= 0.9;
        measured.rows.push_back(row);
      }
      EXPECT_TRUE(Measure(rank < 2 ? *job : *other, measured));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& one : {job, other}) {
    AwaitRefined(*one);
    EXPECT_EQ(one->View().record.state, JobState::kRunning);
    ASSERT_TRUE(sync::Refresh(*one));
    EXPECT_EQ(one->View().ranks_measured, 4);
  }
  const std::string profile =
      postgres_->Ask("SELECT profile FROM jobs WHERE id = '" + job->id() + "'", database_);
  for (const char* const clock : {",900,", ",901,", ",902,", ",903,"}) {
    EXPECT_THAT(profile, ::testing::HasSubstr(clock));
  }
  EXPECT_EQ(Measure(*other, Sweep(0)).error().code, FailureCode::kConflict);
}

}  // namespace
}  // namespace perseus::server
