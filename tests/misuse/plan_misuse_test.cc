// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "misuse/misuse_testing.h"
#include "perseus/emulator.h"
#include "perseus/frontier.h"
#include "perseus/pipeline.h"
#include "perseus/plan.h"
#include "perseus/planner.h"
#include "perseus/policy.h"
#include "perseus/robust_plan.h"

namespace perseus::misuse {
namespace {

Planner PlannerOf(const Job& job) { return *job.MakePlanner(); }

struct WrongPipeline {
  std::string field;
  std::function<void(CostedPipeline*)> change;
};

std::vector<WrongPipeline> WrongPipelines() {
  const auto table = [](CostedPipeline* p) -> CostTable& { return p->tables[1]; };
  return {
      {"knob", [=](CostedPipeline* p) { table(p).all_options[2].knob = 3; }},
      {"knob", [=](CostedPipeline* p) { table(p).all_options[0].knob = -1; }},
      {"knob", [=](CostedPipeline* p) { table(p).all_options[1].knob = 0; }},
      {"time_seconds", [=](CostedPipeline* p) { table(p).all_options[1].time_seconds = kNan; }},
      {"time_seconds", [=](CostedPipeline* p) { table(p).all_options[1].time_seconds = -1; }},
      {"time_seconds",
       [=](CostedPipeline* p) { table(p).all_options[1].energy_joules = kInfinite; }},
      {"options", [=](CostedPipeline* p) { table(p).options.clear(); }},
      {"options", [=](CostedPipeline* p) { table(p).all_options.clear(); }},
      {"options", [=](CostedPipeline* p) { table(p).options[0].time_seconds = 99; }},
      {"options", [=](CostedPipeline* p) { table(p).options[0].knob = 1000; }},
      {"baseline", [=](CostedPipeline* p) { table(p).baseline.knob = 1000; }},
      {"baseline", [=](CostedPipeline* p) { table(p).baseline.time_seconds = kNan; }},
      {"blocking_power_watts", [=](CostedPipeline* p) { table(p).blocking_power_watts = kNan; }},
      {"same_kind_as", [=](CostedPipeline* p) { table(p).same_kind_as = 99; }},
      {"tables", [=](CostedPipeline* p) { table(p).type = static_cast<ComputationType>(77); }},
      {"table_of", [](CostedPipeline* p) { p->table_of[3] = 99; }},
      {"table_of", [](CostedPipeline* p) { p->table_of[3] = -1; }},
      {"table_of", [](CostedPipeline* p) { p->table_of.pop_back(); }},
      {"rank_blocking_power_watts",
       [](CostedPipeline* p) { p->rank_blocking_power_watts.clear(); }},
      {"rank_blocking_power_watts",
       [](CostedPipeline* p) { p->rank_blocking_power_watts[0] = -1; }},
      {"total_blocking_power_watts",
       [](CostedPipeline* p) { p->total_blocking_power_watts = kNan; }},
      {"computations", [](CostedPipeline* p) { p->dag.computations.clear(); }},
      {"computations", [](CostedPipeline* p) { p->dag.computations[0].id.stage = 9; }},
      {"rank_order", [](CostedPipeline* p) { p->dag.rank_order[0][1] = 999; }},
      {"rank_order", [](CostedPipeline* p) { p->dag.num_ranks = 7; }},
      {"rank_order", [](CostedPipeline* p) { p->dag.computations[2].rank = -1; }},
      {"first_precedence", [](CostedPipeline* p) { p->dag.first_precedence.pop_back(); }},
      {"first_precedence", [](CostedPipeline* p) { p->dag.first_precedence[2] = 1000; }},
      {"precedences", [](CostedPipeline* p) { p->dag.precedences[1].from = 500; }},
      {"precedences", [](CostedPipeline* p) { p->dag.precedences[1].from = -5; }},
      {"precedences", [](CostedPipeline* p) { p->dag.precedences[1].delay_seconds = kNan; }},
      {"start_delay_seconds", [](CostedPipeline* p) { p->dag.start_delay_seconds.clear(); }},
      {"start_delay_seconds", [](CostedPipeline* p) { p->dag.start_delay_seconds[0] = -1; }},
      {"end_delay_seconds", [](CostedPipeline* p) { p->dag.end_delay_seconds = kNan; }},
  };
}

TEST(PlannerMisuse, RefusesWhatCanBeNoPipeline) {
  const Job job = SmallJob();
  ASSERT_EQ(FieldOf(job.pipeline.Validate()), "");
  int number = 0;
  for (const WrongPipeline& wrong : WrongPipelines()) {
    CostedPipeline pipeline = job.pipeline;
    wrong.change(&pipeline);
    EXPECT_EQ(FieldOf(Planner::Create(pipeline, {})), wrong.field) << "pipeline " << number++;
  }
  EXPECT_TRUE(IsInvalid(Planner::Create(CostedPipeline(), {})));
  EXPECT_TRUE(IsInvalid(CostPipeline(job.profile, PipelineDag(), job.costs)));
}

TEST(PlannerMisuse, NegativeEnergiesSaveNothing) {
  CostedPipeline pipeline = SmallJob().pipeline;
  for (CostTable& table : pipeline.tables) {
    for (CostOption& option : table.all_options) option.energy_joules *= -1;
    for (CostOption& option : table.options) option.energy_joules *= -1;
    table.baseline.energy_joules *= -1;
  }
  EXPECT_TRUE(IsInvalid(Planner::Create(pipeline, {})));
}

TEST(PlannerMisuse, NumbersOfARequestAreChecked) {
  const Planner planner = PlannerOf(SmallJob());
  const double seconds = planner.baseline().iteration_time_seconds;
  for (const double wrong : {kNan, -1.0, 0.0, -kInfinite}) {
    EXPECT_FALSE(planner.PlanFor(wrong)) << wrong;
    EXPECT_FALSE(planner.TargetSeconds({PlanTarget::Kind::kSeconds, wrong})) << wrong;
    EXPECT_FALSE(planner.TargetSeconds({PlanTarget::Kind::kBaselineFactor, wrong})) << wrong;
    EXPECT_TRUE(IsInvalid(planner.PlanFor(seconds, {.effort = wrong}))) << wrong;
  }
  EXPECT_TRUE(IsInvalid(planner.PlanFor(kInfinite)));
  EXPECT_FALSE(planner.TargetSeconds({PlanTarget::Kind::kSeconds, kInfinite}));
  EXPECT_FALSE(planner.TargetSeconds({static_cast<PlanTarget::Kind>(99), 1}));
  EXPECT_TRUE(IsInvalid(
      planner.PlanFor(seconds, {.constraints = {.granularity = static_cast<Granularity>(200)}})));
  EXPECT_TRUE(IsInvalid(planner.PlanFor(seconds, {.constraints = {.time_margin_fraction = kNan}})));
  EXPECT_TRUE(IsInvalid(planner.AddDiscreteBound(nullptr)));
}

// Of another shape, of the same shape with other costs, and of the same costs with other delays.
std::vector<Job> OtherJobs() {
  JobFile slower = SmallSettings();
  slower.comm_delay_seconds = {0.005};
  return {SmallJob(1, 6), SmallJob(1.5), *Job::Make(SmallProfile(), slower)};
}

TEST(MixedJobs, APlanOfAnotherJobIsRefusedByEveryDoor) {
  const Job job = SmallJob();
  const Planner planner = PlannerOf(job);
  for (const Job& other : OtherJobs()) {
    const Planner others = PlannerOf(other);
    Plan foreign = others.baseline();
    EXPECT_TRUE(IsInvalid(CheckPlan(planner.pipeline(), foreign)));
    EXPECT_TRUE(IsInvalid(planner.AddDiscreteBound(&foreign)));
    EXPECT_TRUE(IsInvalid(MakePlanDocument(planner, foreign, {})));
    EXPECT_TRUE(IsInvalid(job.Document(planner, foreign)));
    EXPECT_TRUE(IsInvalid(job.Document(others, foreign)));
    EXPECT_TRUE(IsInvalid(job.Plan(others)));
    EXPECT_TRUE(IsInvalid(job.MakePlan(others)));
    EXPECT_TRUE(IsInvalid(ReplayUnder(planner, foreign, {.iterations = 2})));
    EXPECT_TRUE(IsInvalid(EmulateUnder(planner, {&foreign}, {})));
    EXPECT_TRUE(IsInvalid(foreign.KnobOf(planner.pipeline(), {ComputationType::kForward, 0, 0})));
    EmulationSpec spec;
    spec.target_seconds = planner.baseline().iteration_time_seconds;
    const auto policy = MakeSinglePlanPolicy("plan", foreign);
    EXPECT_TRUE(IsInvalid(Emulate(planner, *policy, spec)));
    const auto theirs = MakeSinglePlanPolicy("max-clocks", others.baseline());
    EXPECT_TRUE(IsInvalid(Emulate(planner, *theirs, spec)));
  }
  EXPECT_TRUE(IsInvalid(EmulateUnder(planner, {nullptr}, {})));
}

TEST(MixedJobs, APlanThatWasFilledInByHandIsCheckedByItsOptions) {
  const Planner planner = PlannerOf(SmallJob());
  const auto refused = [&](const std::function<void(Plan*)>& change) {
    Plan plan = planner.baseline();
    plan.pipeline = 0;
    change(&plan);
    return IsInvalid(MakePlanDocument(planner, plan, {})) &&
           IsInvalid(planner.Evaluate(plan.options));
  };
  EXPECT_FALSE(refused([](Plan*) {}));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options.clear(); }));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options.pop_back(); }));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options.push_back(plan->options[0]); }));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options[0].knob = 1'000'000; }));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options[0].knob = -1; }));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options[0].time_seconds = kNan; }));
  EXPECT_TRUE(refused([](Plan* plan) { plan->options[0].energy_joules = -1; }));
}

TEST(MixedJobs, TheSamePipelineIsTheSame) {
  const Job job = SmallJob();
  const Job again = SmallJob();
  EXPECT_EQ(job.pipeline.Fingerprint(), again.pipeline.Fingerprint());
  EXPECT_TRUE(CheckPlan(PlannerOf(job).pipeline(), PlannerOf(again).baseline()));
  for (const Job& other : OtherJobs()) {
    EXPECT_NE(job.pipeline.Fingerprint(), other.pipeline.Fingerprint());
  }
}

TEST(PlanMisuse, KnobOfNamesAComputation) {
  const Planner planner = PlannerOf(SmallJob());
  const Plan& plan = planner.baseline();
  const auto knob = plan.KnobOf(planner.pipeline(), {ComputationType::kForward, 1, 3});
  ASSERT_TRUE(knob) << knob.error().message;
  EXPECT_EQ(knob->number, 1400);
  EXPECT_TRUE(IsInvalid(plan.KnobOf(planner.pipeline(), {ComputationType::kForward, 1, 4})));
  EXPECT_TRUE(IsInvalid(plan.KnobOf(planner.pipeline(), {ComputationType::kBackwardInput, 1, 0})));
  const PipelineDag& dag = planner.pipeline().dag;
  EXPECT_EQ(dag.Find({ComputationType::kForward, 0, -1}), std::nullopt);
  EXPECT_EQ(dag.computations[*dag.Find({ComputationType::kBackward, 0, 2})].id.microbatch, 2);
}

TEST(ReplayMisuse, AnotherNumberOfDurationsHasNoTime) {
  const PipelineDag& dag = SmallJob().pipeline.dag;
  const Timing none = Replay(dag, std::vector<double>{1, 2});
  EXPECT_TRUE(std::isnan(none.iteration_time_seconds));
  const std::vector<bool> critical = CriticalComputations(dag, none);
  EXPECT_EQ(critical, std::vector<bool>(critical.size(), false));
  EXPECT_TRUE(IsInvalid(CountKnobChanges(dag, std::vector<int>{1})));
  EXPECT_EQ(Frontier().EnergyAt(1), 0);
}

TEST(ReplayMisuse, NumbersOfASpecAreChecked) {
  const Planner planner = PlannerOf(SmallJob());
  const Plan& plan = planner.baseline();
  EXPECT_TRUE(ReplayUnder(planner, plan, {.iterations = 3}));
  EXPECT_TRUE(IsInvalid(ReplayUnder(planner, plan, {.iterations = 0})));
  EXPECT_TRUE(IsInvalid(ReplayUnder(planner, plan, {.pipelines = 0})));
  EXPECT_TRUE(IsInvalid(ReplayUnder(planner, plan, {.pipelines = -3})));
  Conditions conditions;
  conditions.noise.per_stage = kNan;
  EXPECT_TRUE(IsInvalid(ReplayUnder(planner, plan, {.conditions = conditions})));
  EXPECT_TRUE(IsInvalid(EmulateUnder(planner, {&plan}, {.conditions = conditions})));
  EXPECT_TRUE(IsInvalid(EmulateUnder(planner, {&plan}, {.pipelines = 0})));
  conditions = {};
  conditions.switching.latency_seconds = 0.001;
  conditions.switching.call_ahead = static_cast<CallAhead>(200);
  EXPECT_TRUE(IsInvalid(ReplayUnder(planner, plan, {.conditions = conditions})));
  EXPECT_TRUE(IsInvalid(EmulateUnder(planner, {&plan}, {.conditions = conditions})));
}

TEST(FrontierMisuse, AProblemWithWrongIndicesHasNoSize) {
  TimeCostProblem problem;
  problem.curves = {{{1, 2}, {2, 1}}};
  problem.curve_of = {0, 5};
  EXPECT_TRUE(IsInvalid(SizeOf(problem, 0)));
  problem.curve_of = {0, 0};
  problem.precedences = {{0, 9, 0}};
  EXPECT_TRUE(IsInvalid(SizeOf(problem, 0)));
  EXPECT_TRUE(IsInvalid(SolveFrontier(problem, {})));
  EXPECT_TRUE(IsInvalid(SizeOf({}, 0)));
}

}  // namespace
}  // namespace perseus::misuse
