// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/planning/curve.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perseus/plan_file.h"
#include "server/domain/published_plan.h"
#include "server/planning/characterize.h"
#include "server/planning/job_spec.h"
#include "server/runtime/plan_board.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

std::shared_ptr<const Job> JobOf(const std::string& settings,
                                 const std::string& profile = kSmallProfile) {
  store::JobRecord record;
  record.settings_json = MakeJobSpec(settings, profile)->settings_json;
  record.profile_csv = profile;
  return *BuildJob(record);
}

store::CurveRecord RecordOf(const std::shared_ptr<const Job>& job) {
  return *Characterizer("j", job, [](double) { return true; }).Ladder(PlanTarget{}, 2, 7);
}

class CurveTest : public ::testing::Test {
 protected:
  CurveTest() : CurveTest(JobOf(kSmallSettings)) {}
  explicit CurveTest(const std::shared_ptr<const Job>& job) : CurveTest(job, RecordOf(job)) {}
  CurveTest(std::shared_ptr<const Job> job, store::CurveRecord record)
      : job_(std::move(job)), record_(std::move(record)) {
    curve_ = *Curve::Make(job_, record_);
  }

  std::shared_ptr<const Job> job_;
  store::CurveRecord record_;
  std::shared_ptr<const Curve> curve_;
};

TEST_F(CurveTest, SaysWhatThePlannerSays) {
  const auto planner = job_->MakePlanner();
  ASSERT_TRUE(planner);
  EXPECT_EQ(curve_->baseline_time_seconds(), planner->baseline().iteration_time_seconds);
  EXPECT_EQ(curve_->frontier().tstar_seconds, planner->frontier().tstar_seconds);
  EXPECT_EQ(FormatFrontierCsv(curve_->frontier()), FormatFrontierCsv(planner->frontier()));
  ASSERT_EQ(curve_->plans().size(), kLadderPlans + 1);
  EXPECT_EQ(curve_->fastest().requested_time_seconds, planner->frontier().fastest_seconds);
  EXPECT_EQ(curve_->NextId(), 7 + kLadderPlans + 1);
  for (const CurvePlan& plan : curve_->plans()) {
    EXPECT_LE(plan.iteration_time_seconds, plan.requested_time_seconds * (1 + 1e-9));
  }
  for (const char* const text : {"1.0x", "1.1x", "min-energy", "fastest", "tstar", "30"}) {
    const PlanTarget target = *ParsePlanTarget(text);
    EXPECT_EQ(*curve_->TargetSeconds(target), *planner->TargetSeconds(target)) << text;
  }
  EXPECT_FALSE(curve_->TargetSeconds(*ParsePlanTarget("0.5x")));
}

// The profile, with rows of what it costs to set no clock, as so many times what the highest costs.
std::string WithDefaultClocks(const Profile& profile, double seconds, double joules) {
  std::string text = kSmallProfile;
  for (const OptionTable& table : profile.tables) {
    const Option& highest = table.options[static_cast<std::size_t>(table.baseline)];
    text += fmt::format("{},{},default,{},{}\n", table.stage, ComputationTypeName(table.type),
                        seconds * highest.time_seconds, joules * highest.energy_joules);
  }
  return text;
}

TEST_F(CurveTest, PlansAreComparedWithNoClockSetWhereTheProfileSaysIt) {
  for (const CurvePlan& plan : curve_->plans()) EXPECT_FALSE(plan.default_clocks);
  const auto job = JobOf(kSmallSettings, WithDefaultClocks(job_->profile, 0.9, 1.2));
  const auto curve = *Curve::Make(job, RecordOf(job));
  EXPECT_EQ(curve->baseline_energy_joules(), curve_->baseline_energy_joules());
  ASSERT_EQ(curve->plans().size(), curve_->plans().size());
  for (const CurvePlan& plan : curve->plans()) {
    ASSERT_TRUE(plan.default_clocks);
    EXPECT_GT(plan.default_clocks->slowdown_percent,
              100 * (plan.iteration_time_seconds / curve->baseline_time_seconds() - 1));
    EXPECT_GT(plan.default_clocks->saving_percent, plan.saving_percent);
    EXPECT_EQ(curve->Document(plan).default_clocks, plan.default_clocks);
  }
}

TEST_F(CurveTest, LooksUpTheSlowestPlanThatEndsInTime) {
  EXPECT_EQ(curve_->At(0).id, curve_->fastest().id);
  EXPECT_EQ(curve_->At(1e9).id, curve_->plans().back().id);
  for (const CurvePlan& plan : curve_->plans()) {
    EXPECT_GE(curve_->At(plan.requested_time_seconds).requested_time_seconds,
              plan.requested_time_seconds);
    EXPECT_LE(curve_->At(plan.requested_time_seconds + 1e-6).requested_time_seconds,
              plan.requested_time_seconds + 1e-6);
  }
}

TEST_F(CurveTest, TheRecordReadsBackToTheSame) {
  const store::CurveRecord again = curve_->Record("j", "1.0x", nullptr);
  EXPECT_EQ(again.frontier_json, record_.frontier_json);
  ASSERT_EQ(again.plans.size(), record_.plans.size());
  const auto curve = Curve::Make(job_, again);
  ASSERT_TRUE(curve);
  EXPECT_EQ((*curve)->RowsTexts((*curve)->fastest()), curve_->RowsTexts(curve_->fastest()));
}

// However often an operator sets another target, the ladder stays, and so do the last targets'
// plans.
TEST_F(CurveTest, PlansOfEarlierTargetsGo) {
  const auto planner = job_->MakePlanner();
  std::shared_ptr<const Curve> curve = curve_;
  std::int64_t last = curve->NextId();
  for (int i = 0; i < 40; ++i) {
    const double seconds = curve->frontier().fastest_seconds * (1.01 + 0.001 * i);
    const RobustSummary plan = {*planner->PlanFor(seconds, {.effort = 0.01}), {}};
    curve = *Curve::Make(job_, curve->Record("j", "1.0x", &plan));
    EXPECT_NE(curve->Find(last), nullptr);
    last = curve->NextId();
  }
  EXPECT_EQ(curve->plans().size(), kLadderPlans + 1 + kMostTargetPlans);
  EXPECT_EQ(last, curve_->NextId() + 40);  // No id twice.
  for (const CurvePlan& plan : curve_->plans()) EXPECT_NE(curve->Find(plan.id), nullptr);
}

TEST_F(CurveTest, ARecordOfAnotherJobIsRefused) {
  store::CurveRecord other = record_;
  other.plans[3].knobs.pop_back();
  EXPECT_FALSE(Curve::Make(job_, other));
  other = record_;
  other.plans[3].knobs[0] = 99;
  EXPECT_FALSE(Curve::Make(job_, other));
  other = record_;
  other.frontier_json = "{}";
  EXPECT_FALSE(Curve::Make(job_, other));
}

TEST_F(CurveTest, SlowedRanksSlowThePipeline) {
  const CurvePlan& fastest = curve_->fastest();
  const double alone = curve_->SlowedSeconds(&fastest, {1, 1});
  EXPECT_EQ(alone, fastest.iteration_time_seconds);
  EXPECT_DOUBLE_EQ(curve_->SlowedSeconds(&fastest, {1.5, 1.5}), 1.5 * alone);
  // The second stage is the longer one: less than all of the first's slowdown is seen.
  EXPECT_LT(curve_->SlowedSeconds(&fastest, {1.2, 1}), curve_->SlowedSeconds(&fastest, {1, 1.2}));
}

// Under the small job's settings, and conditions.
std::string UnderConditions() {
  nlohmann::json settings = nlohmann::json::parse(kSmallSettings);
  settings["conditions"] = {
      {"noise", "1%"}, {"switch_latency", "5ms"}, {"call_ahead", "predicted"}, {"max_changes", 12}};
  return settings.dump();
}

class HeldCurveTest : public CurveTest {
 protected:
  HeldCurveTest() : CurveTest(JobOf(UnderConditions()), Made()) {}

 private:
  // Takes seconds.
  static const store::CurveRecord& Made() {
    static const store::CurveRecord record = RecordOf(JobOf(UnderConditions()));
    return record;
  }
};

TEST_F(HeldCurveTest, EveryPlanIsExpectedToEndInTime) {
  ASSERT_EQ(curve_->plans().size(), 12U);
  double effective = std::numeric_limits<double>::infinity();  // Without waiting.
  for (const CurvePlan& plan : curve_->plans()) {
    ASSERT_TRUE(plan.expected);
    EXPECT_EQ(plan.iteration_time_seconds, plan.expected->iteration_time_seconds);
    EXPECT_EQ(plan.saving_percent, plan.expected->saving_percent);
    const double here = plan.energy_joules -
                        curve_->frontier().total_blocking_power_watts * plan.iteration_time_seconds;
    EXPECT_LE(here, effective);
    effective = here;
    const double accepted = curve_->baseline_time_seconds() * plan.requested_time_seconds /
                            curve_->planned_baseline_seconds() * 1.001;
    EXPECT_LE(plan.iteration_time_seconds,
              accepted + 4 * plan.expected->iteration_time_spread_seconds);
  }
  EXPECT_GT(curve_->plans()[5].saving_percent, 1);
  // Noise makes the slowest of several ranks slower than any of them alone.
  EXPECT_GT(curve_->baseline_time_seconds(), curve_->planned_baseline_seconds());
}

// Where a GPU at default clocks is as at its highest clock, that is no other baseline: comparisons
// of jobs with conditions run at default clocks, too.
TEST_F(HeldCurveTest, PlansUnderConditionsAreComparedWithNoClockSet) {
  const auto job = JobOf(UnderConditions(), WithDefaultClocks(job_->profile, 1, 1));
  const auto curve = *Curve::Make(job, record_);
  ASSERT_EQ(curve->baseline_time_seconds(), curve_->baseline_time_seconds());
  for (const CurvePlan& plan : curve->plans()) {
    ASSERT_TRUE(plan.default_clocks);
    EXPECT_NEAR(plan.default_clocks->saving_percent, plan.saving_percent, 1e-4);
    EXPECT_NEAR(plan.default_clocks->slowdown_percent,
                100 * (plan.iteration_time_seconds / curve->baseline_time_seconds() - 1), 1e-4);
  }
  EXPECT_FALSE(curve_->plans().front().default_clocks);
}

TEST_F(HeldCurveTest, TimesAsRunAndAsPlannedAreToldApart) {
  EXPECT_EQ(*curve_->TargetSeconds(PlanTarget{}), curve_->planned_baseline_seconds());
  EXPECT_DOUBLE_EQ(curve_->FrontierSeconds(curve_->baseline_time_seconds()),
                   curve_->planned_baseline_seconds());
  EXPECT_DOUBLE_EQ(curve_->SlowedSeconds(nullptr, {1, 1}), curve_->baseline_time_seconds());
  const CurvePlan& last = curve_->plans().back();
  EXPECT_DOUBLE_EQ(curve_->SlowedSeconds(&last, {2, 2}), 2 * last.iteration_time_seconds);
}

// What is accepted beyond a plan's time is no reason to end later than the straggler.
TEST_F(HeldCurveTest, StragglersAreAnsweredByTheSlowestPlanThatIsExpectedToEndInTime) {
  const Shape shape = {.pipeline_parallel = 2, .data_parallel = 2};
  const double target = curve_->planned_baseline_seconds();
  for (const CurvePlan& each : curve_->plans()) {
    for (const double factor : {1 - 1e-6, 1 + 1e-6, 1.01}) {
      const double seconds = factor * each.iteration_time_seconds;
      if (seconds <= 1.001 * curve_->baseline_time_seconds()) continue;
      const store::StragglerRecord straggler = {
          .id = 1,
          .pipeline = 1,
          .delay_seconds = seconds - curve_->fastest().iteration_time_seconds};
      const Assignment answer = Assign(*curve_, target, shape, {straggler}, {});
      EXPECT_TRUE(answer.for_straggler);
      const CurvePlan& plan = *curve_->Find(answer.plan);
      EXPECT_LE(plan.iteration_time_seconds, seconds);
      for (const CurvePlan& later : curve_->plans()) {
        if (later.requested_time_seconds <= plan.requested_time_seconds) continue;
        EXPECT_GT(later.iteration_time_seconds, seconds);
      }
    }
  }
}

TEST_F(HeldCurveTest, TheRecordReadsBackToTheSame) {
  const RobustSummary more =
      *Characterizer("j", job_, [](double) { return true; }).For(*ParsePlanTarget("1.07x"));
  ASSERT_TRUE(more.expected);
  const std::int64_t id = curve_->NextId();
  const store::CurveRecord record = curve_->Record("j", "1.07x", &more);
  const auto curve = *Curve::Make(job_, record);
  EXPECT_EQ(curve->Find(id)->expected, more.expected);
  EXPECT_EQ(curve->Find(7)->expected, curve_->Find(7)->expected);
  EXPECT_EQ(curve->baseline_time_seconds(), curve_->baseline_time_seconds());
  const PlanDocument document = curve->Document(*curve->Find(id));
  EXPECT_EQ(document.expected, more.expected);
  EXPECT_EQ(document.conditions, ConditionsOf(job_->settings));
  // What knows no conditions stays as it would be without.
  EXPECT_LT(document.iteration_time_seconds, more.expected->iteration_time_seconds);
  EXPECT_EQ(document.baseline.iteration_time_seconds, curve->planned_baseline_seconds());
  EXPECT_TRUE(ParsePlanJson(FormatPlanJson(document), "plan.json"));

  store::CurveRecord other = record;
  other.plans.back().id += 1;
  EXPECT_FALSE(Curve::Make(job_, other));
}

// Where waiting depends on the clock, plans under conditions have a clock for it, which ranks are
// told; plans without conditions, which would wait at it in gaps that are too short, have none.
TEST(CurveWaitingTest, RanksAreToldTheClockAtWhichTheyWait) {
  const std::string profile = std::string(kSmallProfile) +
                              "0,blocking,1400,1,60\n0,blocking,1000,1,15\n"
                              "1,blocking,1400,1,60\n1,blocking,1000,1,15\n";
  nlohmann::json settings = nlohmann::json::parse(kSmallSettings);
  settings.erase("blocking_power");
  settings["effort"] = 0.01;
  const auto on_paper = JobOf(settings.dump(), profile);
  EXPECT_FALSE(on_paper->pipeline.waiting_depends_on_clock());
  EXPECT_EQ(RecordOf(on_paper).frontier_json.find("wait_cheaply"), std::string::npos);

  settings["conditions"] = {{"switch_latency", "1ms"}, {"call_ahead", "predicted"}};
  const auto job = JobOf(settings.dump(), profile);
  const store::CurveRecord record = RecordOf(job);
  const auto curve = *Curve::Make(job, record);
  int waiting = 0;
  for (const CurvePlan& plan : curve->plans()) {
    const bool is_cheap = plan.waiting == Waiting::kCheapest;
    waiting += is_cheap ? 1 : 0;
    for (const std::string& tail : curve->RowsTexts(plan)) {
      const auto json = nlohmann::json::parse("{\"computations\":" + tail);
      EXPECT_EQ(json.value("waiting_mhz", 0), is_cheap ? 1000 : 0);
    }
    EXPECT_EQ(curve->Document(plan).ranks.front().waiting_knob.has_value(), is_cheap);
  }
  EXPECT_GT(waiting, 0);
  const auto again = *Curve::Make(job, curve->Record("j", curve->target(), nullptr));
  for (const CurvePlan& plan : curve->plans()) {
    EXPECT_EQ(again->Find(plan.id)->waiting, plan.waiting);
  }
  EXPECT_FALSE(Curve::Make(on_paper, record));
}

// Of a straggler's time all plans wait until the same moment: their own waiting is no loss.
TEST(HeldPlanTest, WhatIsSlowerAndSavesLessForItsOwnWaitStays) {
  const auto job = JobOf(UnderConditions());
  const double watts = job->pipeline.total_blocking_power_watts;
  ASSERT_GT(watts, 0);
  const auto held = [&](double seconds, double joules_without_waiting) {
    ExpectedFigures expected;
    expected.iteration_time_seconds = seconds;
    expected.energy_joules = joules_without_waiting + watts * seconds;
    expected.saving_percent = 100 * (1 - expected.energy_joules / 1e6);
    Plan plan;
    plan.requested_time_seconds = seconds;
    return RobustSummary{plan, expected};
  };
  std::vector<RobustSummary> plans = {held(1, 1000), held(2, 1000 - 0.5 * watts), held(3, 1000)};
  ASSERT_LT(plans[1].expected->saving_percent, plans[0].expected->saving_percent);
  CarryForward(*job, &plans);
  EXPECT_EQ(plans[1].expected->iteration_time_seconds, 2);
  EXPECT_EQ(plans[2].expected->iteration_time_seconds, 2);  // The last was worse.
  EXPECT_EQ(plans[2].plan.requested_time_seconds, 3);
}

// A search that is told to end ends soon, whatever it is at: how often it is asked is bounded.
// A job's first plans: soon, and hardly worse than the later ones.
TEST(CharacterizerTest, TheFirstPlansAreNearlyAsGoodAsTheLaterOnes) {
  const auto job = JobOf(kSmallSettings);
  const auto keep_going = [](double) { return true; };
  const auto first =
      Curve::Make(job, *Characterizer("j", job, keep_going).Ladder(PlanTarget{}, 1, 1));
  const auto later = Curve::Make(job, RecordOf(job));
  ASSERT_TRUE(first && later);
  ASSERT_EQ((*first)->plans().size(), (*later)->plans().size());
  for (const CurvePlan& plan : (*first)->plans()) {
    const double seconds = plan.requested_time_seconds;
    EXPECT_LE(plan.energy_joules, 1.02 * (*later)->At(seconds).energy_joules) << seconds;
  }
}

TEST(CharacterizerTest, EndsWhereverItIsToldTo) {
  const auto job = JobOf(UnderConditions());
  int asked = 0;
  std::set<double> at_the_end;
  ASSERT_TRUE(Characterizer("j", job, [&](double share) {
                ++asked;
                if (share > 0.9) at_the_end.insert(share);
                return true;
              }).Ladder(PlanTarget{}, 1, 1));
  // Of what plans come to, which takes a third of the time.
  EXPECT_GT(at_the_end.size(), 10U);
  std::mt19937 random(3);
  for (int round = 0; round < 8; ++round) {
    int left = std::uniform_int_distribution<int>(0, asked - 1)(random);
    int after = 0;
    double last = 0;
    const auto record = Characterizer("j", job, [&](double share) {
                          EXPECT_GE(share, last * (left > 0 ? 1 : 0));
                          last = share;
                          if (left == 0) ++after;
                          return left > 0 && left-- > 0;
                        }).Ladder(PlanTarget{}, 1, 1);
    ASSERT_FALSE(record);
    EXPECT_EQ(record.error().code, ErrorCode::kCancelled);
    EXPECT_LE(after, 4);
  }
}

TEST_F(CurveTest, ComputationsAreInExecutionOrder) {
  const auto text = PlanTexts().Of(curve_, curve_->fastest(), 1);
  EXPECT_EQ(text->back(), '}');
  const auto computations = nlohmann::json::parse(text->substr(0, text->size() - 1));
  ASSERT_EQ(computations.size(), 8);
  std::string order;
  double end = 0;
  for (const auto& computation : computations) {
    ASSERT_EQ(computation.size(), 6);
    order += computation[0].get<std::string>() + computation[2].dump();
    EXPECT_EQ(computation[1], 1);
    EXPECT_GE(computation[4].get<double>(), end - 1e-6);
    end = computation[4].get<double>() + computation[5].get<double>();
  }
  EXPECT_EQ(order, "F0B0F1B1F2B2F3B3");
}

TEST_F(CurveTest, TextsAreSharedAndThoseOfAnotherCurveAreItsOwn) {
  PlanTexts texts;
  const auto text = texts.Of(curve_, curve_->fastest(), 1);
  EXPECT_EQ(*text, curve_->RowsTexts(curve_->fastest())[1]);
  EXPECT_EQ(texts.Of(curve_, curve_->fastest(), 1), text);
  // Another curve, whose plan of this id is another one.
  store::CurveRecord record = record_;
  std::swap(record.plans.front().knobs, record.plans.back().knobs);
  const auto other = Curve::Make(job_, record);
  ASSERT_TRUE(other);
  const std::int64_t id = curve_->fastest().id;
  EXPECT_NE(*texts.Of(*other, *(*other)->Find(id), 1), *text);
  EXPECT_EQ(*texts.Of(curve_, curve_->fastest(), 1), *text);
}

TEST_F(CurveTest, ThePlanDocumentIsThePlannersOwn) {
  const auto planner = job_->MakePlanner();
  const CurvePlan& plan = curve_->plans()[20];
  std::vector<CostOption> options;
  for (int i = 0; i < job_->pipeline.dag.size(); ++i) {
    for (const CostOption& option : job_->pipeline.TableOf(i).all_options) {
      if (option.knob == plan.knobs[i]) options.push_back(option);
    }
  }
  Plan same = *planner->Evaluate(options);
  same.requested_time_seconds = plan.requested_time_seconds;
  const PlanDocument expected = *job_->Document(*planner, same);
  const PlanDocument document = curve_->Document(plan);
  EXPECT_EQ(document.energy_joules, expected.energy_joules);
  EXPECT_EQ(document.knob_changes, expected.knob_changes);
  EXPECT_EQ(document.distinct_knobs, expected.distinct_knobs);
  EXPECT_DOUBLE_EQ(document.lower_bound_joules, expected.lower_bound_joules);
  EXPECT_DOUBLE_EQ(document.saving_percent, expected.saving_percent);
  EXPECT_TRUE(ParsePlanJson(FormatPlanJson(document), "plan.json"));
}

}  // namespace
}  // namespace perseus::server
