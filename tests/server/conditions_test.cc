// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// What the server makes of the conditions that ranks measure: one set for the job, and other plans,
// seldom.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "perseus/costed_pipeline.h"
#include "perseus/job.h"
#include "perseus/pipeline.h"
#include "server/domain/decide.h"
#include "server/domain/reading.h"
#include "server/planning/job_spec.h"
#include "server/service_testing.h"
#include "server/watch/conditions_watch.h"

namespace perseus::server {
namespace {

constexpr double kLater = 1e6;  // Seconds since the last plans.

// As SmallSettings; noise and latency are measured.
constexpr const char* kMeasuring =
    R"({"schedule":"1f1b","microbatches":2,"data_parallel":2,"blocking_power":20,)"
    R"("effort":0.001,"stages":2,"conditions":{"max_slowdown":0.002}})";

RankConditions Measured(double noise, double latency) {
  return {.noise_variance = RankFigure{noise * noise, 0.1 * noise * noise},
          .rank_noise_variance = RankFigure{0, 0.01 * noise * noise},
          .noise_correlation = RankFigure{0, 0.03},
          .latency_seconds = RankFigure{latency, 0.0003},
          .latency_spread_seconds = RankFigure{0.001, 0.0001},
          .iterations = 100,
          .computations = 3000,
          .calls = 64};
}

TEST(ConditionsWatch, ItsIntervalsHoldTheTruth) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  int noise_held = 0;
  int latency_held = 0;
  int none_held = 0;
  constexpr int kTries = 300;
  for (int i = 0; i < kTries; ++i) {
    ConditionsWatch watch;
    for (int rank = 0; rank < 16; ++rank) {
      RankConditions told = Measured(0.01, 0.02 + 0.0003 * normal(random));
      told.noise_variance->value += told.noise_variance->error * normal(random);
      told.rank_noise_variance->value += told.rank_noise_variance->error * normal(random);
      // One rank hangs on another switch, and one has a broken clock.
      if (rank == 4) told.latency_seconds->value = 0.3;
      if (rank == 9) told.noise_variance->value = 1;
      watch.Take(rank, told);
    }
    const MeasuredConditions all = watch.Combined();
    const auto holds = [&](Condition which, double truth) {
      const MeasuredCondition& figure = all.Of(which);
      return std::abs(figure.value - truth) <= 2 * figure.error ? 1 : 0;
    };
    noise_held += holds(Condition::kNoise, 0.01);
    none_held += holds(Condition::kRankNoise, 0);
    latency_held += holds(Condition::kLatency, 0.02);
    EXPECT_EQ(all.Of(Condition::kNoise).ranks, 16);
    EXPECT_LT(all.Of(Condition::kNoise).error, 0.0005);
  }
  EXPECT_GE(noise_held, 0.9 * kTries);
  EXPECT_GE(none_held, 0.9 * kTries);
  EXPECT_GE(latency_held, 0.9 * kTries);
}

// 1.5 % of all computations take 5 % longer in the mean: what these add to the variance says that.
TEST(ConditionsWatch, RareComputationsAreShareAndLength) {
  constexpr double kLength = 0.05;
  constexpr double kShare = 0.015;
  constexpr double kVariance = kShare * 1.8 * kLength * kLength;
  ConditionsWatch watch;
  for (int rank = 0; rank < 4; ++rank) {
    RankConditions told = Measured(0.01, 0.02);
    told.rare_noise_variance = RankFigure{kVariance, 0.1 * kVariance};
    told.rare_noise_share = RankFigure{kShare, 0.1 * kShare};
    watch.Take(rank, told);
  }
  const MeasuredConditions all = watch.Combined();
  EXPECT_NEAR(all.Of(Condition::kRareNoise).value, kLength, 1e-12);
  EXPECT_NEAR(all.Of(Condition::kRareNoise).error, 0.1 / std::sqrt(2.0) / 2 * kLength, 1e-12);
  EXPECT_NEAR(all.Of(Condition::kRareNoiseShare).value, kShare, 1e-12);
  EXPECT_EQ(all.Of(Condition::kRareNoise).ranks, 4);
  const PlannedConditions plan = PlannedFor({}, all);
  JobFile settings;
  SetConditions(plan, &settings);
  EXPECT_NEAR(*settings.rare_noise, kLength, 1e-12);
  EXPECT_NEAR(*settings.rare_noise_share, kShare, 1e-12);
  JobFile on_paper;
  SetMeasured(all, &on_paper);
  EXPECT_EQ(on_paper.rare_noise_share, settings.rare_noise_share);
  JobFile given;
  given.rare_noise = given.rare_noise_share = 0.1;
  SetMeasured(all, &given);
  EXPECT_EQ(given.rare_noise, 0.1);
}

// Too few to tell: a share of none, and so no length either, which nobody could plan for alone.
TEST(ConditionsWatch, FewRareComputationsAreNone) {
  ConditionsWatch watch;
  RankConditions told = Measured(0.01, 0.02);
  told.rare_noise_variance = RankFigure{1e-8, 1e-9};
  told.rare_noise_share = RankFigure{1e-4, 1e-4};
  watch.Take(0, told);
  JobFile settings;
  const PlannedConditions plan = PlannedFor({}, watch.Combined());
  SetConditions(plan, &settings);
  EXPECT_EQ(settings.rare_noise, 0);
  EXPECT_EQ(settings.rare_noise_share, 0);
  // Those few being longer asks for no other plan; many of them do.
  told.rare_noise_variance = RankFigure{1e-6, 1e-7};
  told.rare_noise_share = RankFigure{1e-4, 0.55e-4};
  watch.Take(0, told);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), kLater));
  told.rare_noise_share = RankFigure{0.01, 1e-4};
  told.rare_noise_variance = RankFigure{1e-4, 1e-5};
  watch.Take(0, told);
  EXPECT_TRUE(HaveMoved(plan, watch.Combined(), kLater));
  // And a rank that tells nonsense asks for nothing that a plan could not be made for.
  told.rare_noise_variance = RankFigure{1e12, 0};
  told.rare_noise_share = RankFigure{1, 0};
  watch.Take(0, told);
  const MeasuredConditions all = watch.Combined();
  EXPECT_LE(all.Of(Condition::kRareNoise).value, 0.25);
  EXPECT_LE(all.Of(Condition::kRareNoiseShare).value, 0.25);
}

TEST(ConditionsWatch, SaysWhatIsNotKnown) {
  ConditionsWatch watch;
  EXPECT_FALSE(watch.TakeNews());
  EXPECT_EQ(watch.Combined(), MeasuredConditions());
  watch.Take(3, {.latency_seconds = RankFigure{0.02, 0.001}, .calls = 20});
  EXPECT_TRUE(watch.TakeNews());
  EXPECT_FALSE(watch.TakeNews());
  const MeasuredConditions all = watch.Combined();
  EXPECT_EQ(all.Of(Condition::kNoise).ranks, 0);
  EXPECT_EQ(all.Of(Condition::kLatency), (MeasuredCondition{0.02, 0.001, 1}));
  EXPECT_EQ(all.ranks(), 1);
  EXPECT_EQ(all.calls, 20);
}

// As Measured() measures it with a noise of 1 %.
const PlannedConditions kMeasuredPlan = {.values = {0.01, 0, 0, 0.02, 0.001},
                                         .measured = {true, true, true, true, true}};

// A job's reports, one after the other, and how often plans are made anew for them.
int PlansFor(const std::vector<double>& noise, PlannedConditions* plan) {
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  int plans = 0;
  for (const double truth : noise) {
    ConditionsWatch watch;
    for (int rank = 0; rank < 4; ++rank) {
      RankConditions told = Measured(truth, 0.02);
      told.noise_variance->value += told.noise_variance->error * normal(random);
      watch.Take(rank, told);
    }
    const MeasuredConditions measured = watch.Combined();
    if (!HaveMoved(*plan, measured, kLater)) continue;
    ++plans;
    *plan = PlannedFor(*plan, measured);
    EXPECT_FALSE(HaveMoved(*plan, measured, kLater));
  }
  return plans;
}

TEST(Hysteresis, WhatStaysAsItIsAsksForNoOtherPlan) {
  for (const double noise : {0.0005, 0.002, 0.01, 0.05}) {
    PlannedConditions plan;
    EXPECT_LE(PlansFor({noise, noise}, &plan), 1) << noise;
    EXPECT_EQ(PlansFor(std::vector<double>(5000, noise), &plan), 0) << noise;
  }
}

TEST(Hysteresis, AStepAsksForOne) {
  PlannedConditions plan = kMeasuredPlan;
  std::vector<double> noise(200, 0.01);
  noise.insert(noise.end(), 1000, 0.02);
  EXPECT_EQ(PlansFor(noise, &plan), 1);
  EXPECT_NEAR(plan.Of(Condition::kNoise), 0.02, 0.002);
  EXPECT_TRUE(plan.IsMeasured(Condition::kNoise));
}

// Each plan is for another value by a third at least, however the truth wanders.
TEST(Hysteresis, ARandomWalkAsksForFew) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (int walk = 0; walk < 20; ++walk) {
    std::vector<double> noise = {0.01};
    double steps = 0;
    for (int i = 0; i < 2000; ++i) {
      const double step = 0.01 * normal(random);
      steps += std::abs(step);
      noise.push_back(noise.back() * std::exp(step));
    }
    PlannedConditions plan = kMeasuredPlan;
    const int plans = PlansFor(noise, &plan);
    // To leave the band takes a third of the way at once, or wandering that is as long.
    EXPECT_LE(plans, static_cast<int>(steps / (2 * std::log(4.0 / 3)))) << walk;
    EXPECT_LE(plans, 12) << walk;
  }
}

TEST(Hysteresis, WhatIsNotSureIsNotPlannedFor) {
  const PlannedConditions plan = kMeasuredPlan;
  ConditionsWatch watch;
  RankConditions told = Measured(0.05, 0.1);
  told.noise_variance->error = 1;
  told.latency_seconds->error = 0.2;
  watch.Take(0, told);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), kLater));
  EXPECT_EQ(PlannedFor(plan, watch.Combined()).Of(Condition::kNoise), 0.01);
  // What cannot be told from none is planned for as none.
  told = Measured(0.05, 0.1);
  told.rank_noise_variance = RankFigure{1e-5, 1e-5};
  watch.Take(0, told);
  EXPECT_EQ(PlannedFor(plan, watch.Combined()).Of(Condition::kRankNoise), 0);
  told.rank_noise_variance = RankFigure{1e-4, 1e-5};
  watch.Take(0, told);
  EXPECT_EQ(PlannedFor(plan, watch.Combined()).Of(Condition::kRankNoise), 0.01);
}

// The first plans for measured conditions may come while some figures are not sure.
TEST(Hysteresis, WhatBecomesSureIsPlannedForAtOnceAndOnlyOnce) {
  PlannedConditions plan;
  ConditionsWatch watch;
  RankConditions told = Measured(0.03, 0.05);
  told.rank_noise_variance = RankFigure{4e-4, 4e-4};
  watch.Take(0, told);
  ASSERT_TRUE(HaveMoved(plan, watch.Combined(), 1));
  plan = PlannedFor(plan, watch.Combined());
  EXPECT_TRUE(plan.IsMeasured(Condition::kLatency));
  EXPECT_FALSE(plan.IsMeasured(Condition::kRankNoise));
  EXPECT_EQ(plan.Of(Condition::kRankNoise), 0);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), 1));
  told.rank_noise_variance = RankFigure{4e-4, 1e-5};
  watch.Take(0, told);
  ASSERT_TRUE(HaveMoved(plan, watch.Combined(), 1));
  plan = PlannedFor(plan, watch.Combined());
  EXPECT_NEAR(plan.Of(Condition::kRankNoise), 0.02, 1e-9);
  told.rank_noise_variance = RankFigure{16e-4, 1e-5};
  watch.Take(0, told);
  EXPECT_FALSE(HaveMoved(plan, watch.Combined(), 1));
  EXPECT_TRUE(HaveMoved(plan, watch.Combined(), kLater));
}

TEST(ConditionsState, IsReadAsItWasWritten) {
  ConditionsState state;
  EXPECT_EQ(ParseConditionsState(FormatConditionsState(state)), state);
  state.plan = {.values = {0.01, 0.002, 0.3, 0.0151, 1.0 / 3, 0.0001, 0.05, 0.015}};
  state.next = {.values = {0.1, 0, 0, 0.5, 0}, .measured = {true, false, false, true, false}};
  state.planned_at_seconds = 1.7e9;
  state.measured.figures[2] = {0.1, 0.02, 64};
  state.measured.iterations = 256;
  state.measured.calls = 4096;
  state.plan.times = {{1, ComputationType::kBackwardInput, 1410, 0.25, 1.0 / 3, 512}};
  state.plan.transfers = {{2, 0.0003, 1.0 / 3, 16}};
  EXPECT_EQ(ParseConditionsState(FormatConditionsState(state)), state);
  // An older server knew no stall.
  const auto older = ParseConditionsState(
      R"({"plan":{"values":[0.1,0,0,0.2,0],"measured":[true,false,false,true,false]},)"
      R"("planned_at":0,"measured":[[0.1,0,1],[0,0,0],[0,0,0],[0,0,0],[0,0,0]],)"
      R"("iterations":1,"calls":0})");
  ASSERT_TRUE(older);
  EXPECT_EQ(older->plan.Of(Condition::kLatency), 0.2);
  EXPECT_EQ(older->plan.Of(Condition::kStall), 0);
  EXPECT_FALSE(older->plan.IsMeasured(Condition::kStall));
  EXPECT_EQ(ParseConditionsState(""), std::nullopt);
  EXPECT_EQ(ParseConditionsState(R"({"plan":{"values":[0,0,0,0,0],"measured":[1,0,0,0,0]}})"),
            std::nullopt);
}

TEST(JobSpec, ConditionsWithoutNoiseAndLatencyAreMeasured) {
  const auto measures = [](const std::string& conditions) {
    const auto spec =
        MakeJobSpec(R"({"schedule":"1f1b","microbatches":4,"stages":2)" +
                        (conditions.empty() ? "" : ",\"conditions\":" + conditions) + "}",
                    "");
    EXPECT_TRUE(spec) << conditions;
    return spec && ParseConditionsState(spec->conditions_json).has_value();
  };
  EXPECT_TRUE(measures("{}"));
  EXPECT_TRUE(measures(R"({"max_changes":20,"call_ahead":"predicted"})"));
  EXPECT_FALSE(measures(""));
  EXPECT_FALSE(measures(R"({"noise":"1%"})"));
  EXPECT_FALSE(measures(R"({"switch_latency":"15ms"})"));
  EXPECT_FALSE(measures(R"({"rank_noise":0})"));
}

TEST(Reading, OtherConditionsMakeAnotherJob) {
  ConditionsState state;
  store::StoredJob stored;
  stored.job.conditions_json = FormatConditionsState(state);
  Known known;
  known.built.job = std::shared_ptr<const Job>(std::shared_ptr<const Job>(), nullptr);
  EXPECT_TRUE(HasNewJob(stored, known));
  static const Job kJob;
  known.built.job = std::shared_ptr<const Job>(std::shared_ptr<const Job>(), &kJob);
  EXPECT_TRUE(HasNewJob(stored, known));
  known.conditions = state.plan;
  EXPECT_FALSE(HasNewJob(stored, known));
  // What is only measured, or being planned for, changes no plan.
  state.measured.calls = 3;
  state.next = PlannedConditions{.measured = {true}};
  stored.job.conditions_json = FormatConditionsState(state);
  EXPECT_FALSE(HasNewJob(stored, known));
  state.plan.values[0] = 0.5;
  stored.job.conditions_json = FormatConditionsState(state);
  EXPECT_TRUE(HasNewJob(stored, known));
}

class MeasuredConditionsTest : public ServiceTest {
 protected:
  static void Report(const std::shared_ptr<ManagedJob>& job, double noise, double latency) {
    std::vector<ClientReport> clients;
    for (int rank = 0; rank < 4; ++rank) {
      clients.push_back({.rank = rank, .state = "following"});
      clients.back().conditions = Measured(noise, latency);
    }
    ASSERT_TRUE(sync::Report(*job, {}, clients).has_value());
  }
  static bool Settles(const std::shared_ptr<ManagedJob>& job, double latency) {
    return Eventually([&] {
      const JobView view = job->View();
      return view.conditions && view.conditions->plan.any_measured() && !view.conditions->next &&
             std::abs(view.conditions->plan.Of(Condition::kLatency) - latency) < 1e-4 &&
             view.refined;
    });
  }
  static Conditions Planned(const std::shared_ptr<ManagedJob>& job) {
    return ConditionsOf(job->board().Current()->curve->job().settings);
  }
  static std::vector<double> Delays(const std::shared_ptr<ManagedJob>& job) {
    return job->board().Current()->curve->job().settings.comm_delay_seconds;
  }
  // What the ranks of a pipeline say of iterations with such transfers. Their clocks are apart.
  static std::vector<IterationReport> Timelines(const std::shared_ptr<ManagedJob>& job,
                                                double transfer_seconds, int dp_rank) {
    CostedPipeline pipeline = job->board().Current()->curve->job().pipeline;
    for (Precedence& precedence : pipeline.dag.precedences) {
      const auto rank_of = [&](int i) {
        return pipeline.dag.computations[static_cast<std::size_t>(i)].rank;
      };
      if (rank_of(precedence.from) != rank_of(precedence.to)) {
        precedence.delay_seconds = transfer_seconds;
      }
    }
    const std::vector<double> durations(static_cast<std::size_t>(pipeline.dag.size()), 1.0);
    const Timing timing = Replay(pipeline.dag, durations);
    std::vector<IterationReport> reports;
    for (int iteration = 0; iteration < 160; iteration += 10) {
      for (int pp_rank = 0; pp_rank < 2; ++pp_rank) {
        IterationReport report = {
            .rank = 2 * dp_rank + pp_rank, .iteration = iteration, .time_seconds = 10};
        for (const int i : pipeline.dag.rank_order[static_cast<std::size_t>(pp_rank)]) {
          const auto at = static_cast<std::size_t>(i);
          report.rows.push_back({.begin_seconds = pp_rank + timing.start_seconds[at],
                                 .end_seconds = pp_rank + timing.end_seconds[at]});
        }
        reports.push_back(report);
      }
    }
    return reports;
  }
};

TEST_F(MeasuredConditionsTest, PlansAreMadeOnceForWhatIsMeasured) {
  auto job = Create(kMeasuring);
  RegisterAll(*job);
  AwaitRefined(*job);
  // First for what is assumed.
  EXPECT_EQ(job->View().conditions->plan, PlannedConditions());
  EXPECT_EQ(Planned(job).noise.per_computation, 0.01);
  EXPECT_EQ(Planned(job).switching.call_ahead, CallAhead::kPredicted);
  EXPECT_EQ(Planned(job).max_slowdown, 0.002);
  ASSERT_TRUE(job->board().Current()->PlanOf(0)->expected);
  const std::int64_t first = job->board().Current()->version.version;
  Report(job, 0.002, 0.05);
  ASSERT_TRUE(Settles(job, 0.05));
  EXPECT_NEAR(Planned(job).noise.per_computation, 0.002, 1e-4);
  EXPECT_NEAR(Planned(job).switching.latency_seconds, 0.05, 1e-4);
  const std::int64_t second = job->board().Current()->version.version;
  EXPECT_GT(second, first);
  // What is measured after that is shown, and too soon for other plans.
  now_ = now_ + 10;
  Report(job, 0.002, 0.1);
  ASSERT_TRUE(Eventually(
      [&] { return job->View().conditions->measured.Of(Condition::kLatency).value == 0.1; }));
  EXPECT_FALSE(job->View().conditions->next);
  EXPECT_EQ(job->board().Current()->version.version, second);
  // A new process knows all of that, and plans nothing anew.
  const std::string id = job->id();
  const ConditionsState before = *job->View().conditions;
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(*job->View().conditions, before);
  EXPECT_EQ(job->board().Current()->version.version, second);
  EXPECT_NEAR(Planned(job).switching.latency_seconds, 0.05, 1e-4);
  EXPECT_TRUE(job->View().refined);
  // Ten minutes later it may.
  now_ = now_ + 601;
  Report(job, 0.002, 0.1);
  ASSERT_TRUE(Settles(job, 0.1));
  EXPECT_GT(job->board().Current()->version.version, second);
}

// A stage of slower GPUs than the profile's: new plans know it, also after a restart.
TEST_F(MeasuredConditionsTest, PlansAreMadeForTheTimesThatTrainingShows) {
  auto job = Create(kMeasuring);
  RegisterAll(*job);
  AwaitRefined(*job);
  Report(job, 0.002, 0.05);
  ASSERT_TRUE(Settles(job, 0.05));
  const auto stage_seconds = [&](int stage) {
    const Profile& profile = job->board().Current()->curve->job().profile;
    return profile.Find(stage, ComputationType::kForward)->options.front().time_seconds;
  };
  EXPECT_EQ(stage_seconds(1), 1.5);
  std::vector<IterationReport> reports;
  for (int iteration = 0; iteration < 30; ++iteration) {
    for (int rank = 0; rank < 4; ++rank) {
      const int stage = rank % 2;
      IterationReport report = {.rank = rank, .iteration = iteration, .time_seconds = 10};
      for (const auto type : {ComputationType::kForward, ComputationType::kBackward}) {
        const OptionTable& table = *job->board().Current()->curve->job().profile.Find(stage, type);
        report.kinds.push_back(
            {.key = {stage, type, 1400},
             .count = 4,
             .time_seconds = (stage == 1 ? 1.02 : 1.0) * table.options.front().time_seconds,
             .is_steady = true});
      }
      reports.push_back(report);
    }
  }
  ASSERT_TRUE(sync::Report(*job, reports, {}).has_value());
  now_ = now_ + 10;
  const std::int64_t before = job->board().Current()->version.version;
  Report(job, 0.002, 0.05);
  ASSERT_TRUE(Eventually([&] {
    const JobView view = job->View();
    return view.conditions && !view.conditions->plan.times.empty() && view.refined;
  }));
  EXPECT_GT(job->board().Current()->version.version, before);
  EXPECT_NEAR(stage_seconds(1), 1.53, 0.002);
  EXPECT_NEAR(stage_seconds(0), 1.0, 0.001);
  const JobView view = job->View();
  EXPECT_TRUE(std::any_of(view.notes.begin(), view.notes.end(), [](const Note& note) {
    return note.text.find("training shows") != std::string::npos;
  }));
  const std::string id = job->id();
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  ASSERT_NE(job, nullptr);
  EXPECT_NEAR(stage_seconds(1), 1.53, 0.002);
}

TEST_F(MeasuredConditionsTest, PlansAreMadeForTheTransfersThatTrainingShows) {
  auto job = Create(kMeasuring);
  RegisterAll(*job);
  AwaitRefined(*job);
  Report(job, 0.002, 0.05);
  ASSERT_TRUE(Settles(job, 0.05));
  EXPECT_TRUE(Delays(job).empty());
  constexpr double kTransfer = 0.05;
  const std::vector<IterationReport> reports = Timelines(job, kTransfer, /*dp_rank=*/0);
  ASSERT_TRUE(sync::Report(*job, reports, {}).has_value());
  const JobView seen = job->View();
  ASSERT_EQ(seen.measured.transfers.size(), 1U);
  EXPECT_NEAR(seen.measured.transfers[0].seconds, kTransfer, 1e-6);
  now_ = now_ + 10;
  Report(job, 0.002, 0.05);
  ASSERT_TRUE(Eventually([&] {
    const JobView view = job->View();
    return view.conditions && !view.conditions->plan.transfers.empty() && view.refined;
  }));
  ASSERT_EQ(Delays(job).size(), 1U);
  EXPECT_NEAR(Delays(job)[0], kTransfer, 1e-6);
  const std::string id = job->id();
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(Delays(job).size(), 1U);
}

TEST_F(MeasuredConditionsTest, TransfersThatAreGivenStayAsTheyAre) {
  constexpr double kGiven = 0.01;
  nlohmann::json settings = nlohmann::json::parse(kMeasuring);
  settings["comm_delay"] = kGiven;
  const auto job = Create(settings.dump());
  RegisterAll(*job);
  AwaitRefined(*job);
  Report(job, 0.002, 0.05);
  ASSERT_TRUE(Settles(job, 0.05));
  const std::int64_t version = job->board().Current()->version.version;
  ASSERT_TRUE(sync::Report(*job, Timelines(job, 5 * kGiven, 0), {}).has_value());
  ASSERT_EQ(job->View().measured.transfers.size(), 1U);
  // They are shown. What is measured with them is too soon for other plans.
  now_ = now_ + 10;
  Report(job, 0.002, 0.1);
  ASSERT_TRUE(Eventually(
      [&] { return job->View().conditions->measured.Of(Condition::kLatency).value == 0.1; }));
  EXPECT_FALSE(job->View().conditions->next);
  EXPECT_EQ(job->board().Current()->version.version, version);
  // Nor do plans that are made for another figure take them in.
  now_ = now_ + 601;
  Report(job, 0.002, 0.1);
  ASSERT_TRUE(Settles(job, 0.1));
  EXPECT_TRUE(job->View().conditions->plan.transfers.empty());
  EXPECT_EQ(Delays(job), std::vector<double>{kGiven});
}

// One pipeline is measured: all are alike, and their iterations of one number are not one.
TEST_F(MeasuredConditionsTest, RowsOfOtherPipelinesAreIgnored) {
  const auto job = Create(kMeasuring);
  RegisterAll(*job);
  AwaitRefined(*job);
  ASSERT_TRUE(sync::Report(*job, Timelines(job, 0.2, /*dp_rank=*/1), {}).has_value());
  EXPECT_TRUE(job->View().measured.transfers.empty());
  ASSERT_TRUE(sync::Report(*job, Timelines(job, 0.05, /*dp_rank=*/0), {}).has_value());
  const JobView seen = job->View();
  ASSERT_EQ(seen.measured.transfers.size(), 1U);
  EXPECT_NEAR(seen.measured.transfers[0].seconds, 0.05, 1e-6);
}

// The store has the wish; whoever claims the work next makes the plans.
TEST_F(MeasuredConditionsTest, ARestartWhilePlansAreMadeLosesNothing) {
  auto job = Create(kMeasuring);
  RegisterAll(*job);
  AwaitRefined(*job);
  Report(job, 0.02, 0.05);
  ASSERT_TRUE(Eventually([&] {
    const auto conditions = job->View().conditions;
    return conditions->next || conditions->plan.any_measured();
  }));
  const std::string id = job->id();
  job.reset();
  Restart();
  job = sync::Find(*service_, id);
  ASSERT_NE(job, nullptr);
  ASSERT_TRUE(Settles(job, 0.05));
  EXPECT_NEAR(Planned(job).noise.per_computation, 0.02, 1e-3);
}

TEST_F(MeasuredConditionsTest, TheFirstPlansKnowTheLatencyOfTheSweep) {
  nlohmann::json settings = nlohmann::json::parse(kUnmeasured);
  settings["conditions"] = nlohmann::json::object();
  settings["microbatches"] = 2;
  settings["effort"] = 0.001;
  const auto job = Create(settings.dump(), "");
  RegisterAll(*job);
  std::vector<ClientReport> clients;
  for (int rank = 0; rank < 4; ++rank) {
    clients.push_back({.rank = rank, .state = "profiling"});
    clients.back().conditions =
        RankConditions{.latency_seconds = RankFigure{0.04, 0.0005}, .calls = 30};
  }
  job->Report({}, clients, [](const auto& outcome) { EXPECT_TRUE(outcome); });
  ASSERT_TRUE(
      Eventually([&] { return job->View().conditions->plan.Of(Condition::kLatency) == 0.04; }));
  for (int rank = 0; rank < 4; ++rank) ASSERT_TRUE(Measure(*job, Sweep(rank)));
  AwaitRefined(*job);
  EXPECT_EQ(Planned(job).switching.latency_seconds, 0.04);
  EXPECT_EQ(Planned(job).noise.per_computation, 0.01);
  EXPECT_FALSE(job->View().conditions->plan.any_measured());
}

TEST_F(MeasuredConditionsTest, AJobThatIsToldItsConditionsKeepsThem) {
  nlohmann::json settings = nlohmann::json::parse(kSmallSettings);
  settings["conditions"] = {{"noise", "1%"}, {"switch_latency", "5ms"}};
  settings["microbatches"] = 2;
  settings["effort"] = 0.001;
  const auto job = Create(settings.dump());
  RegisterAll(*job);
  AwaitRefined(*job);
  const std::int64_t version = job->board().Current()->version.version;
  Report(job, 0.05, 0.1);
  job->Tick();
  EXPECT_FALSE(job->View().conditions);
  EXPECT_EQ(job->View().measured.Of(Condition::kLatency).value, 0.1);  // But it is shown.
  EXPECT_EQ(job->board().Current()->version.version, version);
  EXPECT_EQ(Planned(job).switching.latency_seconds, 0.005);
}

}  // namespace
}  // namespace perseus::server
