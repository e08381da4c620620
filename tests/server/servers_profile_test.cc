// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Several servers that share a job which is profiled anew, and the library.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/servers_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using store::JobState;
using ServersProfileTest = ServersTest;

store::Measurements SlowSweep(int rank) {
  store::Measurements measured = Sweep(rank);
  for (store::MeasuredRow& row : measured.rows) {
    row.time_seconds *= 2;
    row.energy_joules *= 2;
  }
  return measured;
}

TEST_F(ServersProfileTest, AJobIsProfiledAgainByRanksOfBothServers) {
  MakeRunning();
  const double baseline = jobs_[0]->board().Current()->curve->baseline_time_seconds();
  // Both are asked at once: one sweep.
  std::thread other([&] { EXPECT_TRUE(sync::Reprofile(*jobs_[1])); });
  EXPECT_TRUE(sync::Reprofile(*jobs_[0]));
  other.join();
  for (const auto& job : jobs_) {
    ASSERT_TRUE(Eventually([&] { return job->board().Current()->profile_wanted; }));
    EXPECT_EQ(job->View().record.state, JobState::kProfiling);
  }
  EXPECT_EQ(postgres_->Ask("SELECT sweep_round FROM jobs", database_), "1");
  for (int rank = 0; rank < 4; ++rank) {
    ASSERT_TRUE(Measure(*jobs_[static_cast<std::size_t>(rank % 2)], SlowSweep(rank)));
  }
  for (const auto& job : jobs_) {
    ASSERT_TRUE(Eventually([&] {
      const JobView view = job->View();
      return view.record.state == JobState::kRunning && view.refined && !view.sweeps_again;
    }));
    const auto plan = job->board().Current();
    EXPECT_FALSE(plan->profile_wanted);
    // Each has built the new profile, and the curve on it.
    EXPECT_NEAR(plan->curve->baseline_time_seconds(), 2 * baseline, 1e-6);
    const OptionTable& table = plan->curve->job().profile.tables[0];
    EXPECT_NEAR(table.options[static_cast<std::size_t>(table.baseline)].time_seconds, 2, 1e-9);
    EXPECT_EQ(job->View().profile_source, "measured");
  }
}

TEST_F(ServersProfileTest, WhatAnotherServerBeganIsKnownToWhoMeasuresHere) {
  MakeRunning();
  ASSERT_TRUE(sync::Reprofile(*jobs_[0]));
  ASSERT_TRUE(Measure(*jobs_[1], SlowSweep(0)));
  ASSERT_TRUE(sync::Refresh(*jobs_[0]));
  EXPECT_TRUE(jobs_[0]->RowsOf(0).done);
  ASSERT_TRUE(sync::CancelReprofile(*jobs_[0]));
  // Late, at a server that has not heard of the end: refused, as by one that has.
  EXPECT_EQ(Measure(*jobs_[1], SlowSweep(1)).error().code, FailureCode::kConflict);
  EXPECT_FALSE(jobs_[1]->View().sweeps_again);
  // What was measured then is none of the next sweep.
  ASSERT_TRUE(sync::Reprofile(*jobs_[1]));
  EXPECT_TRUE(jobs_[1]->RowsOf(0).rows.empty());
  ASSERT_TRUE(sync::Refresh(*jobs_[0]));
  EXPECT_TRUE(jobs_[0]->RowsOf(0).rows.empty());
}

TEST_F(ServersProfileTest, OneServerEndsTheSweepThatAnotherBegan) {
  MakeRunning();
  const std::string id = jobs_[0]->id();
  ASSERT_TRUE(sync::Reprofile(*jobs_[0]));
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(Measure(*jobs_[0], SlowSweep(rank)));
  jobs_[0].reset();
  services_[0].reset();
  ASSERT_TRUE(Measure(*jobs_[1], SlowSweep(3)));
  ASSERT_TRUE(Eventually([&] { return !jobs_[1]->View().sweeps_again; }));
  EXPECT_EQ(jobs_[1]->View().profile_source, "measured");
}

TEST_F(ServersProfileTest, TheLibraryIsOneForAll) {
  std::string labelled = kUnmeasured;
  labelled.replace(labelled.rfind('}'), 1, R"(,"model":"m"})");
  const auto first = Create(labelled, "", "first");
  RegisterAll(*first);
  ASSERT_TRUE(AwaitState(*first, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*first, Sweep(rank)));
  ASSERT_TRUE(AwaitState(*first, JobState::kRunning));
  const auto second = CreateAt(1, labelled, "", "second");
  ASSERT_TRUE(second);
  RegisterAll(*second->job);
  ASSERT_TRUE(AwaitState(*second->job, JobState::kRunning));
  EXPECT_THAT(second->job->View().profile_source, Mentions(first->id()));
  const auto other = sync::GetFresh(*services_[0], second->job->id());
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->View().profile_source, second->job->View().profile_source);
}

}  // namespace
}  // namespace perseus::server
