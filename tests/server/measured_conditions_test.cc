// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// Plans for what ranks measure of their conditions, from report to restart.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perseus/conditions.h"
#include "perseus/costed_pipeline.h"
#include "perseus/job.h"
#include "perseus/pipeline.h"
#include "server/conditions_testing.h"
#include "server/detect/conditions_watch.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

// As SmallSettings; noise and latency are measured.
constexpr const char* kMeasuring =
    R"({"schedule":"1f1b","microbatches":2,"data_parallel":2,"blocking_power":20,)"
    R"("effort":0.001,"stages":2,"conditions":{"max_slowdown":0.002}})";

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
        report.timeline.emplace();
        for (const int i : pipeline.dag.rank_order[static_cast<std::size_t>(pp_rank)]) {
          const auto at = static_cast<std::size_t>(i);
          report.timeline->begin_ns.push_back(1e9 * (pp_rank + timing.start_seconds[at]));
          report.timeline->end_ns.push_back(1e9 * (pp_rank + timing.end_seconds[at]));
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
