// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <string>

#include "formats/sample_plan.h"
#include "perseus/plan_document.h"
#include "perseus/plan_file.h"

namespace perseus {
namespace {

void ExpectRefused(const PlanDocument& plan, const std::string& reason) {
  const Result<std::string> text = FormatZeusPlan(plan);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, ErrorCode::kInfeasible);
  EXPECT_EQ(text.error().message, "no Zeus plan file is written: " + reason + "; use plan.json");
}

TEST(ZeusPlanFile, IsAPythonListOfRanks) {
  const Result<std::string> text = FormatZeusPlan(SamplePlan());
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(*text,
            "# Frequency plan by perseus 9.8.7: 2 stages, 1 microbatches.\n"
            "# Iteration 1.2 s, energy 480.5 J of one pipeline, 12.50 % less than at maximum "
            "clocks.\n"
            "# One list a pipeline rank, for zeus.optimizer.pipeline_frequency.server.scheduler:\n"
            "# PointSolution, or PointSolution3D with data or tensor parallelism.\n"
            "[\n"
            "    [('forward', 1410), ('backward', 1305)],\n"
            "    [('forward', 1410), ('backward', 1410)],\n"
            "]\n");
}

TEST(ZeusPlanFile, RefusesVirtualStages) {
  PlanDocument plan = SamplePlan();
  plan.virtual_stages = 2;
  ExpectRefused(plan, "each rank holds 2 stages, and Zeus knows one stage a rank");
}

TEST(ZeusPlanFile, RefusesLabels) {
  PlanDocument plan = SamplePlan();
  plan.knobs_are_numbers = false;
  ExpectRefused(plan, "the profile's knobs are labels, and Zeus knows only SM clocks in MHz");
}

TEST(ZeusPlanFile, RefusesFractionsOfAMegahertz) {
  PlanDocument plan = SamplePlan();
  plan.ranks[1].computations[0].knob = {"1410.5", 1410.5};
  ExpectRefused(plan, "the clock 1410.5 is not a whole number of MHz, and Zeus knows no other");
}

TEST(ZeusPlanFile, RefusesASplitBackward) {
  PlanDocument plan = SamplePlan();
  plan.ranks[1].computations[1].id.type = ComputationType::kBackwardInput;
  ExpectRefused(plan,
                "the schedule has backward_input computations, and Zeus knows only forward and "
                "backward");
}

TEST(ZeusPlanFile, RefusesFusedComputations) {
  PlanDocument plan = SamplePlan();
  plan.ranks[0].computations[0].fused = ComputationId{ComputationType::kBackward, 0, 0};
  ExpectRefused(plan,
                "the schedule runs two computations as one, and Zeus knows them only one by one");
}

TEST(ZeusPlanFile, KeepsTextOfTheUserOutOfTheComments) {
  PlanDocument plan = SamplePlan();
  plan.schedule = "x\n__import__('os')";
  plan.profile_source = "y\n1/0";
  const Result<std::string> text = FormatZeusPlan(plan);
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(text->find("import"), std::string::npos);
  EXPECT_EQ(text->find("1/0"), std::string::npos);
}

}  // namespace
}  // namespace perseus
