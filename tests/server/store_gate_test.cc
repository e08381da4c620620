// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/runtime/store_gate.h"

#include <gtest/gtest.h>

#include "server/planning/job_spec.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

using store::JobState;

store::StoredJob WithOneClock(JobState state) {
  const Outcome<JobSpec> spec = MakeJobSpec(
      kSmallSettings,
      "stage,instruction,frequency,time,energy\n"
      "0,forward,1400,1,100\n0,backward,1400,2,200\n1,forward,1400,1,100\n1,backward,1400,2,200\n");
  store::StoredJob stored;
  stored.job = {.id = "j-1", .state = state};
  if (!spec) return stored;
  stored.job.settings_json = spec->settings_json;
  stored.job.profile_csv = spec->profile_csv;
  stored.job.profile_source = "given";
  return stored;
}

TEST(StoreGateTest, ProfileAndNotesAreKnownBeforeTheFirstPlan) {
  const store::StoredJob stored = WithOneClock(JobState::kRegistering);
  const LoadedJob loaded = LifeOf(stored);
  const auto& job = loaded.life.phase.built.job;
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(loaded.life.phase.built.curve, nullptr);
  EXPECT_EQ(job->notes.size(), 1U);
  EXPECT_FALSE(job->profile.sha256.empty());
}

TEST(StoreGateTest, WhatHasNoProfileOrHasFinishedIsNotBuilt) {
  EXPECT_EQ(LifeOf(WithOneClock(JobState::kFinished)).life.phase.built.job, nullptr);
  store::StoredJob unmeasured = WithOneClock(JobState::kProfiling);
  unmeasured.job.profile_csv.clear();
  unmeasured.job.profile_source.clear();
  EXPECT_EQ(LifeOf(unmeasured).life.phase.built.job, nullptr);
}

}  // namespace
}  // namespace perseus::server
