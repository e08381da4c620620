// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Where profiles come from and how long they last: measured, reused, measured again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server/api/messages.h"
#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using store::JobState;

constexpr const char* kLabelled =
    R"({"schedule":"1f1b","microbatches":4,"stages":2,"data_parallel":2,"effort":0.05,)"
    R"("model":"gpt-13b"})";

class ProfileLifeTest : public ServiceTest {
 protected:
  // A job whose ranks have measured, with its best plan.
  std::shared_ptr<ManagedJob> Measured(const std::string& settings, const std::string& key) {
    auto job = Create(settings, "", key);
    RegisterAll(*job);
    EXPECT_TRUE(AwaitState(*job, JobState::kProfiling));
    for (int rank = 0; rank < 4; ++rank) EXPECT_TRUE(Measure(*job, Sweep(rank)));
    AwaitRefined(*job);
    EXPECT_EQ(job->View().record.state, JobState::kRunning) << job->View().record.reason;
    return job;
  }

  // The sweep of a rank that is slower than Sweep() says.
  static store::Measurements SlowSweep(int rank, double factor) {
    store::Measurements measured = Sweep(rank);
    for (store::MeasuredRow& row : measured.rows) {
      row.time_seconds *= factor;
      row.energy_joules *= factor;
    }
    return measured;
  }

  std::vector<std::string> Listen(const std::shared_ptr<ManagedJob>& job, const std::string& name,
                                  std::vector<std::string>* told) {
    service_->events().Listen(job->id(), [name, told](const Event* event) {
      if (event != nullptr && event->name() == name) told->push_back(event->data);
      return true;
    });
    return {};
  }
};

TEST_F(ProfileLifeTest, AJobSaysWhereItsProfileIsFrom) {
  const auto given = Create(kSmallSettings, kSmallProfile, "given");
  EXPECT_EQ(given->View().profile_source, "given");
  const auto unmeasured = Create(kUnmeasured, "", "unmeasured");
  EXPECT_EQ(JsonOf(kJob, unmeasured->View())["profile_source"], nullptr);
  const auto job = Measured(kUnmeasured, "measured");
  EXPECT_EQ(job->View().profile_source, "measured");
  Restart();
  EXPECT_EQ(Find(job)->View().profile_source, "measured");
}

TEST_F(ProfileLifeTest, AJobThatIsTheSameTakesTheProfileOver) {
  const auto first = Measured(kLabelled, "first");
  // Beyond the job and the process.
  const std::string id = first->id();
  ASSERT_TRUE(sync::Delete(*service_, id));
  Restart();
  const auto second = Create(kLabelled, "", "second");
  EXPECT_THAT(second->settings_json(), ::testing::Not(Mentions("model")));
  std::vector<std::string> told;
  Listen(second, "profiling", &told);
  RegisterAll(*second);
  AwaitRefined(*second);
  const JobView view = second->View();
  EXPECT_EQ(view.record.state, JobState::kRunning);
  EXPECT_THAT(view.profile_source, Mentions(id));
  service_->events().Settle();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], Mentions("model,", "GPUs;"));
  Restart();
  EXPECT_EQ(Find(second)->View().profile_source, view.profile_source);
  EXPECT_EQ(Find(second)->View().record.state, JobState::kRunning);
}

TEST_F(ProfileLifeTest, WhatIsNotTheSameInAllMeasures) {
  Measured(kLabelled, "first");
  const auto state_of = [&](const std::string& settings, const std::string& key,
                            const std::function<void(store::RankRecord*)>& change = {}) {
    const auto job = Create(settings, "", key);
    for (int rank = 0; rank < 4; ++rank) {
      store::RankRecord record = SmallRank(rank);
      if (change) change(&record);
      EXPECT_TRUE(Register(*job, record));
    }
    EXPECT_TRUE(Eventually([&] { return job->View().record.state != JobState::kRegistering; }));
    return job->View().profile_source.empty();
  };
  const auto with = [](std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
  };
  EXPECT_TRUE(state_of(kUnmeasured, "no label"));
  EXPECT_TRUE(state_of(with(kLabelled, "gpt-13b", "gpt-13B"), "label"));
  EXPECT_TRUE(state_of(with(kLabelled, "1f1b", "gpipe"), "schedule"));
  EXPECT_TRUE(state_of(with(kLabelled, "}", R"(,"microbatch_size":2})"), "size"));
  EXPECT_TRUE(state_of(with(kLabelled, "}", R"(,"reuse_profile":false})"), "no reuse"));
  EXPECT_TRUE(state_of(kLabelled, "gpu", [](auto* rank) { rank->gpu_name = "A40"; }));
  EXPECT_TRUE(state_of(kLabelled, "one gpu", [](auto* rank) {
    if (rank->rank == 3) rank->gpu_name.clear();
  }));
  EXPECT_TRUE(state_of(kLabelled, "clocks", [](auto* rank) { rank->clocks_mhz.pop_back(); }));
  // The order of clocks is no difference, nor is the number of microbatches.
  EXPECT_FALSE(state_of(kLabelled, "order", [](auto* rank) {
    std::reverse(rank->clocks_mhz.begin(), rank->clocks_mhz.end());
  }));
  EXPECT_FALSE(state_of(with(kLabelled, ":4,", ":8,"), "microbatches"));
}

TEST_F(ProfileLifeTest, TheLibraryKeepsWhatWasMeasured) {
  std::vector<AuditRecord> changes;
  ServiceOptions options;
  options.on_change = [&](const AuditRecord& change) {
    if (change.what == "profile") changes.push_back(change);
  };
  Restart(options);
  const auto job = Measured(kLabelled, "first");
  const auto profiles = service_->ListProfiles();
  ASSERT_TRUE(profiles);
  ASSERT_EQ(profiles->size(), 1U);
  EXPECT_EQ(profiles->front().model, "gpt-13b");
  EXPECT_EQ(profiles->front().job, job->id());
  const auto profile = service_->FindProfile(profiles->front().id);
  ASSERT_TRUE(profile);
  EXPECT_THAT(profile->profile_csv, Mentions("0,forward,1400,"));
  const auto metadata = nlohmann::json::parse(profile->metadata_json);
  EXPECT_EQ(metadata["gpus"], nlohmann::json::array({"A100"}));
  EXPECT_EQ(metadata["stages"], 2);
  EXPECT_EQ(metadata["rows"], 12);
  ASSERT_TRUE(service_->DeleteProfile(profile->id, {.token_name = "alice"}));
  EXPECT_EQ(service_->FindProfile(profile->id).error().code, FailureCode::kNotFound);
  EXPECT_EQ(service_->DeleteProfile(profile->id, {}).error().code, FailureCode::kNotFound);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].job, job->id());
  EXPECT_EQ(changes[0].before, profile->id);
  EXPECT_EQ(changes[0].after, "deleted");
  EXPECT_EQ(changes[0].token_name, "alice");
  service_.reset();
}

TEST_F(ProfileLifeTest, BadLibraryKeysAreRefusedWithASentence) {
  const auto error = [](const std::string& keys) {
    const auto spec =
        MakeJobSpec(R"({"schedule":"1f1b","microbatches":4,"stages":2,)" + keys + "}", "");
    return spec ? "" : spec.error().field + ": " + spec.error().message;
  };
  EXPECT_THAT(error(R"("model":7)"), Mentions("job.model", "'model'"));
  EXPECT_THAT(error(R"("model":"")"), Mentions("1", "256"));
  EXPECT_THAT(error(R"("microbatch_size":0)"), Mentions("'microbatch_size'", "0"));
  EXPECT_THAT(error(R"("reuse_profile":1)"), Mentions("true", "false"));
  EXPECT_EQ(error(R"("model":"x","microbatch_size":2.5,"reuse_profile":true)"), "");
}

TEST_F(ProfileLifeTest, ReprofilingKeepsThePlanUntilThereIsANewOne) {
  const auto job = Measured(kUnmeasured, "key");
  const auto before = job->board().Current();
  EXPECT_FALSE(before->profile_wanted);
  ASSERT_TRUE(sync::Reprofile(*job));
  EXPECT_EQ(job->View().record.state, JobState::kProfiling);
  EXPECT_TRUE(job->View().sweeps_again);
  // The same plan, of which ranks hear that they are to measure.
  const auto meanwhile = job->board().Current();
  EXPECT_GT(meanwhile->version.version, before->version.version);
  EXPECT_EQ(meanwhile->version.plan, before->version.plan);
  EXPECT_TRUE(meanwhile->profile_wanted);
  ASSERT_TRUE(sync::Reprofile(*job));
  EXPECT_EQ(job->board().version(), meanwhile->version.version);
  EXPECT_TRUE(job->RowsOf(0).rows.empty());

  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*job, SlowSweep(rank, 2)));
  ASSERT_TRUE(Eventually([&] {
    const JobView view = job->View();
    return !view.sweeps_again && view.refined;
  }));
  const auto after = job->board().Current();
  EXPECT_FALSE(after->profile_wanted);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  EXPECT_NEAR(after->curve->baseline_time_seconds(), 2 * before->curve->baseline_time_seconds(),
              1e-6);
  EXPECT_EQ(Measure(*job, Sweep(0)).error().code, FailureCode::kConflict);
  EXPECT_EQ(service_->ListProfiles()->size(), 2U);
  Restart();
  EXPECT_NEAR(Find(job)->board().Current()->curve->baseline_time_seconds(),
              2 * before->curve->baseline_time_seconds(), 1e-6);
}

// What a planner is at ends when the job no longer wants it, so that what it wants can begin.
TEST_F(ProfileLifeTest, AStepIsPastOnceTheJobWentOn) {
  const auto job = Measured(kUnmeasured, "key");
  AwaitRefined(*job);
  PlanningStep step;
  step.curve = job->Life().phase.built.curve;
  EXPECT_FALSE(job->IsPast(step));
  PlanningStep of_new_sweep = step;
  of_new_sweep.is_pending = true;
  EXPECT_TRUE(job->IsPast(of_new_sweep));
  PlanningStep of_old_curve = step;
  of_old_curve.curve = nullptr;
  EXPECT_TRUE(job->IsPast(of_old_curve));
  ASSERT_TRUE(sync::Finish(*job));
  EXPECT_TRUE(job->IsPast(step));
}

TEST_F(ProfileLifeTest, ARestartInTheMiddleOfReprofilingGoesOn) {
  const auto job = Measured(kUnmeasured, "key");
  const double baseline = job->board().Current()->curve->baseline_time_seconds();
  ASSERT_TRUE(sync::Reprofile(*job));
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(Measure(*job, SlowSweep(rank, 2)));
  Restart();
  const auto again = Find(job);
  EXPECT_EQ(again->View().record.state, JobState::kProfiling);
  EXPECT_EQ(again->View().ranks_measured, 3);
  EXPECT_EQ(again->RowsOf(0).rows.size(), 6U);
  EXPECT_TRUE(again->RowsOf(0).done);
  EXPECT_FALSE(again->RowsOf(3).done);
  EXPECT_NEAR(again->board().Current()->curve->baseline_time_seconds(), baseline, 1e-9);
  EXPECT_TRUE(again->board().Current()->profile_wanted);
  ASSERT_TRUE(Measure(*again, SlowSweep(3, 2)));
  // As at any moment of it.
  Restart();
  const auto last = Find(job);
  ASSERT_TRUE(Eventually([&] { return last->View().record.state == JobState::kRunning; }));
  EXPECT_NEAR(last->board().Current()->curve->baseline_time_seconds(), 2 * baseline, 1e-6);
}

TEST_F(ProfileLifeTest, WhatIsGivenMayBeMeasuredAfterAll) {
  const auto job = Create();
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kRunning));
  ASSERT_TRUE(sync::Reprofile(*job));
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*job, SlowSweep(rank, 3)));
  ASSERT_TRUE(AwaitState(*job, JobState::kRunning));
  EXPECT_EQ(job->View().profile_source, "measured");
}

TEST_F(ProfileLifeTest, ASweepThatMakesNoProfileOrIsCancelledLeavesTheOldOne) {
  const auto job = Measured(kUnmeasured, "key");
  const auto plan = job->board().Current()->version.plan;
  ASSERT_TRUE(sync::Reprofile(*job));
  ASSERT_TRUE(sync::CancelReprofile(*job));
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  EXPECT_FALSE(job->View().sweeps_again);
  EXPECT_FALSE(job->board().Current()->profile_wanted);
  EXPECT_EQ(job->board().Current()->version.plan, plan);
  ASSERT_TRUE(sync::CancelReprofile(*job));
  ASSERT_TRUE(sync::Reprofile(*job));
  // No rank measured stage 1.
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    for (store::MeasuredRow& row : measured.rows) row.stage = 0;
    ASSERT_TRUE(Measure(*job, measured));
  }
  ASSERT_TRUE(AwaitState(*job, JobState::kRunning));
  EXPECT_THAT(job->View().record.reason, Mentions("stays:"));
  EXPECT_EQ(job->board().Current()->version.plan, plan);
  Restart();
  EXPECT_EQ(Find(job)->board().Current()->version.plan, plan);
}

TEST_F(ProfileLifeTest, JobsThatCannotBeProfiledAgainSayWhy) {
  const auto job = Create(kUnmeasured, "", "key");
  EXPECT_THAT(sync::Reprofile(*job).error().message, Mentions("ranks"));
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  EXPECT_TRUE(sync::Reprofile(*job));  // It is at it.
  EXPECT_FALSE(job->View().sweeps_again);
  ASSERT_TRUE(sync::Finish(*job));
  EXPECT_THAT(sync::Reprofile(*job).error().message, Mentions("finished"));
}

TEST_F(ProfileLifeTest, NotesAndThrottlingAreToldAndShown) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  std::vector<std::string> told;
  Listen(job, "profiling", &told);
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    measured.notes = {"clock 1200 did not take"};
    measured.sweep = store::SweepCost{.iterations = 30, .seconds = 60, .joules = 100};
    for (store::MeasuredRow& row : measured.rows) row.throttled = row.clock_mhz == 1000;
    ASSERT_TRUE(Measure(*job, measured));
  }
  AwaitRefined(*job);
  service_->events().Settle();
  // Four notes; stages 0 and 1, forward and backward at 1000 MHz.
  EXPECT_EQ(told.size(), 8U);
  EXPECT_THAT(told[0], Mentions("1200"));
  EXPECT_THAT(told[7], Mentions("1000"));
  Restart();
  const auto json = JsonOf(kJob, Find(job)->View());
  EXPECT_EQ(json["profiling"]["notes"][0]["ranks"], 4);
  EXPECT_EQ(json["profiling"]["throttled"].size(), 4U);
  EXPECT_EQ(json["profiling"]["sweep"]["joules"], 400);
  EXPECT_EQ(json["profiling"]["blocking_power_w"][1], 20);
}

// Rows of waiting are in the job's profile and in what is shown; the one number that goes with them
// is not given, too, since a note would call it unused.
TEST_F(ProfileLifeTest, WaitingByClockIsInTheProfileAndShown) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    measured.waiting = {{.clock_mhz = 1400, .watts = 20, .std_watts = 1},
                        {.clock_mhz = 1000, .watts = 12, .std_watts = 3}};
    ASSERT_TRUE(Measure(*job, measured));
  }
  AwaitRefined(*job);
  for (const bool restarted : {false, true}) {
    if (restarted) Restart();
    const auto view = Find(job)->View();
    EXPECT_EQ(view.record.state, JobState::kRunning) << view.record.reason;
    const auto waiting = JsonOf(kJob, view)["profiling"]["waiting"];
    ASSERT_EQ(waiting.size(), 4U);  // Two clocks of two stages.
    EXPECT_EQ(waiting[0]["frequency"], 1000);
    EXPECT_EQ(waiting[0]["power_w"], 12);
    EXPECT_EQ(waiting[0]["doubtful"], true);
    EXPECT_EQ(waiting[1]["doubtful"], false);
    const auto plan = Find(job)->board().Current();
    EXPECT_TRUE(plan->curve->job().profile.SaysWaiting());
    EXPECT_TRUE(plan->curve->job().settings.blocking_power_watts.empty());
    EXPECT_DOUBLE_EQ(plan->curve->job().pipeline.rank_blocking_power_watts[0], 20);
  }
}

// What a rank measures that may not set clocks: its stage at the driver's.
store::Measurements AtDriverClocks(int rank) {
  store::Measurements measured = Sweep(rank);
  std::erase_if(measured.rows, [](const auto& row) { return row.clock_mhz != 1400; });
  measured.notes = {"its clock cannot be set"};
  return measured;
}

TEST_F(ProfileLifeTest, ARankWithoutClocksIsPlannedAndMeasuredAgainWhenItHasThem) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  // Stage 0 of both pipelines.
  for (const int rank : {0, 2}) ASSERT_TRUE(Measure(*job, AtDriverClocks(rank)));
  for (const int rank : {1, 3}) ASSERT_TRUE(Measure(*job, Sweep(rank)));
  AwaitRefined(*job);
  ASSERT_EQ(job->View().record.state, JobState::kRunning) << job->View().record.reason;
  const auto plan = job->board().Current();
  for (const auto& table : plan->curve->job().profile.tables) {
    EXPECT_EQ(table.options.size(), table.stage == 0 ? 1U : 3U);
  }
  const auto json = JsonOf(kJob, job->View());
  EXPECT_EQ(json["profiling"]["notes"][0]["first_ranks"], nlohmann::json::array({0, 2}));

  const auto hear = [&](int rank, const std::string& state, const std::string& error) {
    ASSERT_TRUE(sync::Report(*job, {}, {{.rank = rank, .state = state, .error = error}}));
  };
  hear(0, "released", "the clock was not set");
  hear(1, "following", "");
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  hear(0, "following", "");
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  EXPECT_TRUE(job->View().sweeps_again);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*job, Sweep(rank)));
  ASSERT_TRUE(AwaitState(*job, JobState::kRunning));
  EXPECT_EQ(job->board().Current()->curve->job().profile.tables.front().options.size(), 3U);
}

TEST_F(ProfileLifeTest, WhatIsDoubtfulIsMeasuredAgainButNotForEver) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  std::vector<std::string> told;
  Listen(job, "profiling", &told);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(AwaitState(*job, JobState::kProfiling)) << round;
    for (int rank = 0; rank < 4; ++rank) {
      store::Measurements measured = Sweep(rank);
      measured.blocking_power_watts = 90;  // At 1000 MHz computing draws 36 W.
      ASSERT_TRUE(Measure(*job, measured));
    }
    ASSERT_TRUE(Eventually([&] { return job->Life().phase.settled_round == round; }));
  }
  AwaitRefined(*job);
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  EXPECT_EQ(job->Life().phase.sweep_round, 2);
  service_->events().Settle();
  EXPECT_EQ(told.size(), 2U);
  EXPECT_GE(job->View().notes.front().severity, Severity::kImplausible);
}

TEST_F(ProfileLifeTest, ASweepThatBeganByItselfIsCancelledForGood) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    measured.blocking_power_watts = 90;  // At 1000 MHz computing draws 36 W.
    ASSERT_TRUE(Measure(*job, measured));
  }
  ASSERT_TRUE(Eventually([&] { return job->View().sweeps_again; }));
  ASSERT_TRUE(sync::CancelReprofile(*job));
  EXPECT_EQ(job->View().record.state, JobState::kRunning);
  Restart();
  EXPECT_EQ(Find(job)->View().record.state, JobState::kRunning);
  ASSERT_TRUE(sync::Reprofile(*Find(job)));
  EXPECT_TRUE(Find(job)->View().sweeps_again);
}

TEST_F(ProfileLifeTest, WithoutThePowerOfWaitingThereIsAPlanAndANote) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    measured.blocking_power_watts.reset();
    ASSERT_TRUE(Measure(*job, measured));
  }
  AwaitRefined(*job);
  EXPECT_EQ(job->View().record.state, JobState::kRunning) << job->View().record.reason;
  const auto& notes = job->View().notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const Note& note) {
    return note.text.find("'blocking_power'") != std::string::npos;
  }));
}

TEST_F(ProfileLifeTest, AFailedJobMeasuresAnew) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    for (store::MeasuredRow& row : measured.rows) row.stage = 0;  // None of stage 1.
    ASSERT_TRUE(Measure(*job, measured));
  }
  ASSERT_TRUE(AwaitState(*job, JobState::kFailed));
  ASSERT_TRUE(sync::Reprofile(*job));
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  Restart();
  const auto again = Find(job);
  EXPECT_EQ(again->View().record.state, JobState::kProfiling);
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*again, Sweep(rank)));
  AwaitRefined(*again);
  EXPECT_EQ(again->View().record.state, JobState::kRunning) << again->View().record.reason;
}

TEST_F(ProfileLifeTest, ASavingHasTheIntervalOfItsProfilesErrors) {
  const auto job = Create(kUnmeasured, "", "key");
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) {
    store::Measurements measured = Sweep(rank);
    for (store::MeasuredRow& row : measured.rows) {
      row.time_std_seconds = 0.001 * row.time_seconds;
      row.energy_std_joules = 0.01 * row.energy_joules;
      row.time_sources = {0.0005};
      row.power_sources = {0.001, -0.002};
    }
    ASSERT_TRUE(Measure(*job, measured));
  }
  AwaitRefined(*job);
  Restart();
  const auto plan = JsonOf(kJob, Find(job)->View())["plan"];
  const double saving = plan["saving_percent"];
  ASSERT_TRUE(plan.contains("saving_interval"));
  EXPECT_LT(plan["saving_interval"]["least_percent"], saving);
  EXPECT_GT(plan["saving_interval"]["most_percent"], saving);
  EXPECT_GT(plan["saving_interval"]["least_percent"], saving - 3);
  EXPECT_LT(plan["saving_interval"]["most_percent"], saving + 3);
}

TEST_F(ProfileLifeTest, TimesThatLeaveTheProfileAreDrift) {
  const auto job = Measured(kUnmeasured, "key");
  std::vector<std::string> told;
  Listen(job, "drift", &told);
  const auto report = [&](double seconds) {
    IterationReport iteration{.rank = 0, .plan_version = job->board().version(), .time_seconds = 1};
    iteration.kinds = {
        {.key = {.stage = 0, .clock_mhz = 1400}, .count = 60, .time_seconds = seconds}};
    ASSERT_TRUE(sync::Report(*job, {iteration}));
  };
  for (int i = 0; i < 5; ++i) report(1.0);
  EXPECT_TRUE(job->View().drifts.empty());
  for (int i = 0; i < 5; ++i) report(1.1);
  ASSERT_EQ(job->View().drifts.size(), 1U);
  const auto json = JsonOf(kJob, job->View())["drift"][0];
  EXPECT_EQ(json["stage"], 0);
  EXPECT_EQ(json["frequency"], 1400);
  EXPECT_NEAR(json["percent"].get<double>(), 10, 1e-6);
  service_->events().Settle();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], Mentions("reprofile'"));
  ASSERT_TRUE(sync::Reprofile(*job));
  EXPECT_TRUE(job->View().drifts.empty());
}

}  // namespace
}  // namespace perseus::server
