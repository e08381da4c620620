// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include "server/curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "perseus/plan_file.h"
#include "server/characterize.h"
#include "server/job_spec.h"
#include "server/service_testing.h"

namespace perseus::server {
namespace {

class CurveTest : public ::testing::Test {
 protected:
  CurveTest() {
    store::JobRecord record;
    record.settings_json = MakeJobSpec(kSmallSettings, kSmallProfile)->settings_json;
    record.profile_csv = kSmallProfile;
    job_ = *BuildJob(record);
    record_ = *Characterizer("j", job_, [](double) { return true; }).Ladder(PlanTarget{}, 2, 7);
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
  for (const char* const text : {"1.0x", "1.1x", "economic", "fastest", "tstar", "30"}) {
    const PlanTarget target = *ParsePlanTarget(text);
    EXPECT_EQ(*curve_->TargetSeconds(target), *planner->TargetSeconds(target)) << text;
  }
  EXPECT_FALSE(curve_->TargetSeconds(*ParsePlanTarget("0.5x")));
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
  EXPECT_EQ(*(*curve)->ComputationsTail((*curve)->fastest(), 1),
            *curve_->ComputationsTail(curve_->fastest(), 1));
}

// However often an operator sets another target, the ladder stays, and so do the last targets'
// plans.
TEST_F(CurveTest, PlansOfEarlierTargetsGo) {
  const auto planner = job_->MakePlanner();
  std::shared_ptr<const Curve> curve = curve_;
  std::int64_t last = curve->NextId();
  for (int i = 0; i < 40; ++i) {
    const double seconds = curve->frontier().fastest_seconds * (1.01 + 0.001 * i);
    const Plan plan = *planner->PlanFor(seconds, {}, 0.01);
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

TEST_F(CurveTest, ComputationsAreInExecutionOrder) {
  const auto text = curve_->ComputationsTail(curve_->fastest(), 1);
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
  EXPECT_EQ(text, curve_->ComputationsTail(curve_->fastest(), 1));  // Shared.
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
  Plan same = planner->Evaluate(options);
  same.requested_time_seconds = plan.requested_time_seconds;
  const PlanDocument expected = job_->Document(*planner, same);
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
