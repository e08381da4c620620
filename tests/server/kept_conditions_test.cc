// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Conditions that one job measures, and a later job with the same profile begins with.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "perseus/job.h"
#include "server/api/messages.h"
#include "server/detect/conditions_watch.h"
#include "server/domain/decide.h"
#include "server/planning/conditions_state.h"
#include "server/service_testing.h"
#include "support/mentions.h"

namespace perseus::server {
namespace {

using store::JobState;

constexpr const char* kSettings =
    R"({"schedule":"1f1b","microbatches":2,"data_parallel":2,"effort":0.001,"stages":2,)"
    R"("model":"gpt-13b","conditions":{"max_slowdown":0.002}})";
constexpr double kNoise = 0.004;
constexpr double kLatency = 0.05;

RankConditions Told(double latency) {
  return {.noise_variance = RankFigure{kNoise * kNoise, 1e-7},
          .rank_noise_variance = RankFigure{0, 1e-7},
          .noise_correlation = RankFigure{0, 0.03},
          .latency_seconds = RankFigure{latency, 0.0003},
          .latency_spread_seconds = RankFigure{0.001, 0.0001},
          .iterations = 100,
          .computations = 3000,
          .calls = 64};
}

void MeasureAll(const std::shared_ptr<ManagedJob>& job) {
  RegisterAll(*job);
  ASSERT_TRUE(AwaitState(*job, JobState::kProfiling));
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*job, Sweep(rank)));
  AwaitRefined(*job);
}

void Report(const std::shared_ptr<ManagedJob>& job, const RankConditions& told) {
  std::vector<ClientReport> clients;
  for (int rank = 0; rank < 4; ++rank) {
    clients.push_back({.rank = rank, .state = "following"});
    clients.back().conditions = told;
  }
  ASSERT_TRUE(sync::Report(*job, {}, clients).has_value());
}

bool Settles(const ManagedJob& job) {
  return Eventually([&] {
    const JobView view = job.View();
    return view.conditions && view.conditions->plan.any_measured() && !view.conditions->next &&
           view.refined;
  });
}

Conditions Planned(ManagedJob& job) {
  return ConditionsOf(job.board().Current()->curve->job().settings);
}

KeptConditions Kept() {
  KeptConditions kept{.job = "j-1", .at_seconds = 1.7e9};
  kept.measured.figures = {MeasuredCondition{kNoise, 1e-5, 4}, {}, {}, {kLatency, 0.001, 4}, {}};
  kept.measured.iterations = 100;
  kept.measured.calls = 256;
  return kept;
}

TEST(KeptConditions, AreReadAsTheyWereWritten) {
  const KeptConditions kept = Kept();
  EXPECT_EQ(ParseKeptConditions(FormatKeptConditions(kept)), kept);
  ConditionsState state{.profile = "p-1", .start = kept};
  EXPECT_EQ(ParseConditionsState(FormatConditionsState(state)), state);
}

TEST(KeptConditions, OldAndWrongOnesAreAsNone) {
  const auto with = [](Condition which, double value) {
    KeptConditions kept = Kept();
    kept.measured.figures[static_cast<std::size_t>(which)] = {value, 0.001, 4};
    return FormatKeptConditions(kept);
  };
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("{\"job\":\"j-1\"}"),
        with(Condition::kNoise, 0.3), with(Condition::kRankNoise, 7),
        with(Condition::kNoiseCorrelation, 1), with(Condition::kLatency, -0.01)}) {
    EXPECT_EQ(ParseKeptConditions(text), std::nullopt) << text;
    const ConditionsState state = StartedFrom({.id = "p-1", .conditions_json = text}, {});
    EXPECT_EQ(state, (ConditionsState{.profile = "p-1"})) << text;
    EXPECT_TRUE(JsonOf(kProfileRecord, {.conditions_json = text})["conditions"].is_null());
  }
}

TEST(KeptConditions, OnlyWhatWasMeasuredReplacesWhatIsAssumed) {
  const ConditionsState state =
      StartedFrom({.id = "p-1", .conditions_json = FormatKeptConditions(Kept())}, {});
  const PlannedConditions assumed;
  EXPECT_EQ(state.plan.Of(Condition::kNoise), kNoise);
  EXPECT_EQ(state.plan.Of(Condition::kLatency), kLatency);
  EXPECT_EQ(state.plan.Of(Condition::kLatencySpread), assumed.Of(Condition::kLatencySpread));
  EXPECT_TRUE(state.IsFromStart(Condition::kNoise));
  EXPECT_FALSE(state.IsFromStart(Condition::kLatencySpread));
  // What the ranks then measure is planned for at once.
  EXPECT_FALSE(state.plan.any_measured());
}

class KeptConditionsTest : public ServiceTest {};

TEST_F(KeptConditionsTest, TheNextJobBeginsWithWhatTheLastOneMeasured) {
  now_ = 1.7e9;
  auto first = Create(kSettings, "", "first");
  MeasureAll(first);
  // The profile is there before anything else was measured.
  ASSERT_EQ(service_->ListProfiles()->size(), 1U);
  EXPECT_EQ(service_->ListProfiles()->front().conditions_json, "");
  Report(first, Told(kLatency));
  ASSERT_TRUE(Settles(*first));
  const std::string id = first->id();
  const auto kept = ParseKeptConditions(service_->ListProfiles()->front().conditions_json);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->job, id);
  EXPECT_EQ(kept->measured.Of(Condition::kLatency).value, kLatency);
  EXPECT_EQ(kept->measured.calls, 256);
  ASSERT_TRUE(sync::Delete(*service_, id));
  first.reset();
  Restart();

  now_ = 1.7e9 + 1000;
  auto second = Create(kSettings, "", "second");
  RegisterAll(*second);
  AwaitRefined(*second);
  const auto is_begun = [&](ManagedJob& job) {
    const nlohmann::ordered_json json = JsonOf(kJob, job.View())["conditions"];
    EXPECT_EQ(json["source"], "library");
    EXPECT_EQ(json["from"]["job"], id);
    EXPECT_EQ(json["from"]["at"], 1.7e9);
    EXPECT_EQ(json["figures"][3]["planned"], kLatency);
    EXPECT_EQ(json["figures"][3]["library"], true);
    EXPECT_EQ(json["figures"][3]["assumed"], false);
    EXPECT_EQ(json["figures"][3]["measured"], nullptr);
    EXPECT_EQ(Planned(job).switching.latency_seconds, kLatency);
    EXPECT_NEAR(Planned(job).noise.per_computation, kNoise, 1e-6);
  };
  is_begun(*second);
  const std::string second_id = second->id();
  const std::int64_t version = second->board().Current()->version.version;
  second.reset();
  Restart();
  second = sync::Find(*service_, second_id);
  ASSERT_NE(second, nullptr);
  is_begun(*second);
  EXPECT_EQ(second->board().Current()->version.version, version);

  // Its own count as soon as it has them, and for the job after it.
  Report(second, Told(0.1));
  ASSERT_TRUE(Settles(*second));
  EXPECT_EQ(JsonOf(kJob, second->View())["conditions"]["source"], "measured");
  EXPECT_EQ(Planned(*second).switching.latency_seconds, 0.1);
  const auto newer = ParseKeptConditions(service_->ListProfiles()->front().conditions_json);
  ASSERT_TRUE(newer);
  EXPECT_EQ(newer->job, second_id);
  EXPECT_EQ(newer->measured.Of(Condition::kLatency).value, 0.1);
}

TEST_F(KeptConditionsTest, AJobThatMeasuredLessReplacesNothing) {
  const auto first = Create(kSettings, "", "first");
  MeasureAll(first);
  Report(first, Told(kLatency));
  ASSERT_TRUE(Settles(*first));
  const std::string kept = service_->ListProfiles()->front().conditions_json;
  const auto second = Create(kSettings, "", "second");
  RegisterAll(*second);
  AwaitRefined(*second);
  // It changes no clock, so that no latency is ever seen.
  RankConditions told = Told(0);
  told.latency_seconds.reset();
  told.latency_spread_seconds.reset();
  told.noise_variance = RankFigure{4e-4, 1e-6};
  told.iterations = 10'000;
  Report(second, told);
  ASSERT_TRUE(Settles(*second));
  EXPECT_NEAR(Planned(*second).noise.per_computation, 0.02, 1e-6);
  EXPECT_EQ(Planned(*second).switching.latency_seconds, kLatency);
  EXPECT_EQ(service_->ListProfiles()->front().conditions_json, kept);
}

TEST_F(KeptConditionsTest, TooFewIterationsAreNotKept) {
  const auto job = Create(kSettings, "", "first");
  MeasureAll(job);
  RankConditions told = Told(kLatency);
  told.iterations = 39;
  Report(job, told);
  ASSERT_TRUE(Eventually([&] { return job->View().conditions->measured.iterations == 39; }));
  EXPECT_EQ(service_->ListProfiles()->front().conditions_json, "");
}

// The sweep that measures again makes a profile of its own, for the same conditions.
TEST_F(KeptConditionsTest, AProfileThatIsMeasuredAgainHasThemToo) {
  const auto job = Create(kSettings, "", "first");
  MeasureAll(job);
  Report(job, Told(kLatency));
  ASSERT_TRUE(Settles(*job));
  now_ = now_ + 1;
  ASSERT_TRUE(sync::Reprofile(*job));
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*job, Sweep(rank)));
  ASSERT_TRUE(Eventually([&] { return service_->ListProfiles()->size() == 2; }));
  const auto profiles = service_->ListProfiles();
  for (const store::ProfileRecord& profile : *profiles) {
    const auto kept = ParseKeptConditions(profile.conditions_json);
    ASSERT_TRUE(kept) << profile.id;
    EXPECT_EQ(kept->measured.Of(Condition::kLatency).value, kLatency);
  }
}

// The figures came with the profile that the job began with, whatever its ranks measure later.
TEST(KeptConditions, TheirProfileIsNamedAlsoAfterRanksMeasuredAgain) {
  JobView view;
  view.conditions = StartedFrom({.id = "p-1", .conditions_json = FormatKeptConditions(Kept())}, {});
  EXPECT_EQ(JsonOf(kJob, view)["conditions"]["from"]["profile"], "p-1");
  view.conditions->profile = "p-2";
  view.conditions = ParseConditionsState(FormatConditionsState(*view.conditions));
  ASSERT_TRUE(view.conditions);
  EXPECT_EQ(view.conditions->profile, "p-2");
  EXPECT_EQ(JsonOf(kJob, view)["conditions"]["from"]["profile"], "p-1");
}

}  // namespace
}  // namespace perseus::server
