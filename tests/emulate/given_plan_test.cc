// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "perseus/plan_document.h"
#include "perseus/plan_file.h"
#include "perseus/policy.h"
#include "plan/pipelines.h"
#include "support/mentions.h"

namespace perseus {
namespace {

using plan_testing::Blocking;
using plan_testing::Costed;
using plan_testing::DagOf;
using plan_testing::RandomRows;
using testing::HasSubstr;

Planner PlannerOf(const std::string& schedule, int stages, int microbatches, int virtual_stages = 1,
                  bool labels = false) {
  std::mt19937 random(1);
  plan_testing::ProfileShape shape;
  shape.stages = stages;
  shape.clocks = 4;
  shape.labels = labels;
  auto planner = Planner::Create(
      Costed(RandomRows(random, shape), DagOf(schedule, stages, microbatches, {}, virtual_stages),
             Blocking(70)),
      {});
  EXPECT_TRUE(planner) << planner.error().message;
  return *std::move(planner);
}

PlanDocument DocumentOf(const Planner& planner) {
  const auto plan =
      planner.PlanFor(1.05 * planner.baseline().iteration_time_seconds, {.effort = 0.05});
  EXPECT_TRUE(plan) << plan.error().message;
  return *MakePlanDocument(planner, *plan, {});
}

// The policy's plan is that of the document.
void ExpectSame(const Result<std::unique_ptr<Policy>>& policy, const PlanDocument& document) {
  ASSERT_TRUE(policy) << policy.error().message;
  EXPECT_FALSE((*policy)->reacts());
  const auto plan = (*policy)->PlanFor(1e-3);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->iteration_time_seconds, document.iteration_time_seconds);
  EXPECT_EQ(plan->energy_joules, document.energy_joules);
  EXPECT_EQ(plan->knob_changes, document.knob_changes);
  EXPECT_GT(plan->distinct_knobs, 1);
}

TEST(GivenPlan, RunsThePlanOfADocument) {
  for (const bool labels : {false, true}) {
    const Planner planner = PlannerOf("1f1b", 3, 5, 1, labels);
    const PlanDocument document = DocumentOf(planner);
    const auto policy = MakePolicyFromPlan(document, planner);
    ExpectSame(policy, document);
    EXPECT_EQ((*policy)->name(), "plan");
  }
}

TEST(GivenPlan, RunsFusedComputations) {
  const Planner planner = PlannerOf("dualpipev", 4, 8, 2);
  const PlanDocument document = DocumentOf(planner);
  ExpectSame(MakePolicyFromPlan(document, planner), document);
}

TEST(GivenPlan, FindsClocksByNumber) {
  const Planner planner = PlannerOf("1f1b", 2, 3);
  PlanDocument document = DocumentOf(planner);
  for (PlannedComputation& computation : document.ranks[0].computations) {
    computation.knob.label += ".0";
  }
  ExpectSame(MakePolicyFromPlan(document, planner), document);
}

TEST(GivenPlan, RunsWhatZeusWouldRun) {
  const Planner planner = PlannerOf("1f1b", 3, 5);
  const PlanDocument document = DocumentOf(planner);
  const auto text = FormatZeusPlan(document);
  ASSERT_TRUE(text) << text.error().message;
  const auto policy = MakePolicyFromZeusPlan(*text, "zeus_plan.py", planner);
  ExpectSame(policy, document);
  EXPECT_EQ((*policy)->name(), "zeus-plan");
}

std::string Message(const Result<std::unique_ptr<Policy>>& policy) {
  EXPECT_FALSE(policy);
  if (policy) return "";
  EXPECT_EQ(policy.error().code, ErrorCode::kInvalidInput);
  return policy.error().message;
}

TEST(GivenPlan, RefusesAPlanForAnotherJob) {
  const Planner planner = PlannerOf("1f1b", 3, 5);
  EXPECT_THAT(Message(MakePolicyFromPlan(DocumentOf(PlannerOf("1f1b", 2, 5)), planner)),
              Mentions("2", "3"));
  EXPECT_THAT(Message(MakePolicyFromPlan(DocumentOf(PlannerOf("1f1b", 3, 4)), planner)),
              Mentions("0:", "8", "10"));
  EXPECT_THAT(Message(MakePolicyFromPlan(DocumentOf(PlannerOf("gpipe", 3, 5)), planner)),
              Mentions("0", "3:", "0F3", "0B0"));
  PlanDocument document = DocumentOf(planner);
  document.ranks[2].computations[4].knob = {"777", 777};
  EXPECT_THAT(Message(MakePolicyFromPlan(document, planner)),
              Mentions("2", "4:", "'777'", "4", "'1410'", "'1140'"));
}

TEST(GivenPlan, RefusesAPlanForZeusOfAnotherJob) {
  const Planner planner = PlannerOf("1f1b", 2, 1);
  const auto message = [&planner](const std::string& text) {
    return Message(MakePolicyFromZeusPlan(text, "z.py", planner));
  };
  EXPECT_THAT(message("[[('forward', 1410), ('backward', 1410)]]"), Mentions("z.py", "1", "2"));
  EXPECT_THAT(message("[[('forward', 1410), ('backward', 1410)],\n [('forward', 1410)]]"),
              Mentions("z.py", "1:", "1", "2"));
  EXPECT_THAT(message("[[('forward', 1410), ('backward', 1410)],\n"
                      " [('backward', 1410), ('forward', 1410)]]"),
              Mentions("z.py:2:3:", "1", "0:", "1F0"));
  EXPECT_THAT(message("[[('forward', 1410), ('backward', 1411)],\n"
                      " [('forward', 1410), ('backward', 1410)]]"),
              Mentions("z.py:1:22:", "0", "1:", "'1411'", "4", "'1410'", "'1140'"));
  EXPECT_THAT(message("[[("), Mentions("z.py:1:4:", "'forward'", "'backward'"));
  const std::string right =
      "[[('forward', 1410), ('backward', 1410)],[('forward', 1410), ('backward', 1410)]]";
  EXPECT_TRUE(MakePolicyFromZeusPlan(right, "z.py", planner));
  EXPECT_THAT(Message(MakePolicyFromZeusPlan(right, "z.py", PlannerOf("1f1b", 2, 1, 1, true))),
              Mentions("z.py:", "MHz,"));
}

TEST(GivenPlan, RefusesAPlanForZeusWhereComputationsAreFused) {
  const auto schedule = ParseSchedule("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", "fused.csv");
  ASSERT_TRUE(schedule) << schedule.error().message;
  const auto dag = BuildDag(*schedule, {});
  ASSERT_TRUE(dag) << dag.error().message;
  const auto planner = Planner::Create(
      Costed("0,forward,1410,1,300\n0,backward,1410,2,600\n", *dag, Blocking(70)), {});
  ASSERT_TRUE(planner) << planner.error().message;
  EXPECT_THAT(
      Message(MakePolicyFromZeusPlan("[[('forward', 1410), ('forward', 1410), ('backward', 1410)]]",
                                     "z.py", *planner)),
      Mentions("z.py:1:22:", "0", "1:", "0F1;0B0)OVERLAP_F_B"));
}

}  // namespace
}  // namespace perseus
